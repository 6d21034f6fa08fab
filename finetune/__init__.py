"""Fine-tuning of any Chinese encoder on classification and span extraction, seeded and to the last digit."""

"""Fine-tuning of any Chinese encoder on classification and span extraction, seeded and to the last digit."""

from provenance import quiet_interrupt

quiet_interrupt()  # before the seconds that its modules take to load

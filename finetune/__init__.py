"""Fine-tuning of any encoder for classification and span extraction."""

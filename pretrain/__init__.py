"""ELECTRA pretraining: generator, discriminator, objectives, one training loop, export."""

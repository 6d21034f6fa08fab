"""Six Chinese tasks, seeds, records, statistics and tables."""

"""Six Chinese tasks, seeds, records, statistics and tables."""

from provenance import quiet_interrupt

quiet_interrupt()  # before the seconds that its modules take to load

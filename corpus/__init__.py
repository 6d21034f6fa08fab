"""From raw Chinese text to clean documents and packed token rows."""

from provenance import quiet_interrupt

quiet_interrupt()  # before the seconds that its modules take to load

"""From raw Chinese text to clean documents and packed token rows."""

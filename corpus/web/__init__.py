"""Web pages to plain text."""

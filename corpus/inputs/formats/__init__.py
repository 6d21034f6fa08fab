"""One reader for each format: documents out of a part of an input, plain text that no rule has touched."""

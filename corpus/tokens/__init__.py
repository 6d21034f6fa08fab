"""Documents to tokens with word starts, and tokens to packed rows."""

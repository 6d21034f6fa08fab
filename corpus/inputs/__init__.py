"""What a build reads: the inputs that a user names, found, fetched, opened and cut into parts."""

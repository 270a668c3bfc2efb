"""Hash learning: what a switch hashes, from the next hops that it chose for known headers."""

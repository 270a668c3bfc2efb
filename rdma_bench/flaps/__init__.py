"""A link of this machine's own that goes down and comes back under a real job, and what TCP makes of it."""

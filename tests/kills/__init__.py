"""Commands that write, killed at random moments: what they leave is whole, and nobody else's is touched."""

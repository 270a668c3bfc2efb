"""Chaos: a job of eight ranks is disturbed at random moments, and judged by what it then does."""

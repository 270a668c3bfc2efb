"""Stragglers of a job from its spans: who is slow at what, who arrives last, and what its removal would gain."""

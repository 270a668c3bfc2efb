"""Ranks as processes of this machine: their start, supervision, messages, and stack dumps when one hangs."""

"""Retransmission timers: profiles of adapters, predictions from them, and selection of settings."""

"""Retransmission timers: what is known of adapters, what it predicts, and which settings do what is wanted."""

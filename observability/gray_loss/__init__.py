"""Gray loss under spraying: the link that loses a small share of packets, from counts by path."""

"""Equal-cost paths of a live network, found by asking it: one UDP source port after another, one hop after another."""

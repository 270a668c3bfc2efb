"""Discovery of the equal-cost paths of a live network, by probes of one UDP source port and one hop after another."""

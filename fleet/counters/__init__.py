"""Counters of a whole fleet: snapshots of all nodes, and what rose between two of them, link by link."""

"""Timeouts of a cluster, from the adapter to the scheduler, on one ladder."""

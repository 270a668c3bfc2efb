"""Hosts of a cluster, from the inventories that people have."""

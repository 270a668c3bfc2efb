"""Counters of NICs: snapshots in the forms that tools print, their meaning, and what rose between two of them."""

"""Collective algorithms, a file each: from the shape of a group to the schedule of one collective."""

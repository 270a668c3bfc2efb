"""Slow truths: the room's compiled kernels once more in plain Python, to be read and to hold the fast ones to."""

"""Ways to a node: SSH, Slurm, and this machine itself; each runs one script there and returns what it printed."""

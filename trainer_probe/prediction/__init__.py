"""What a training step is expected to take on a cluster, with an interval, and what to change first."""

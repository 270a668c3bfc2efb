"""Data parallelism: what each rank keeps of values, gradients and optimizer state, and when they move."""

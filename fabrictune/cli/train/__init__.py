"""`fabrictune train`: the reference trainer."""

"""Job start-up: ordered process groups, made by their members only, over a key-value store."""

"""Hardware profiles: the rates, latencies and costs of a cluster's GPUs and links, each value with its source."""

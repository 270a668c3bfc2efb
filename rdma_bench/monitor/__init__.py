"""Monitor of a host's NICs: counters by the millisecond, settings by the second, alerts, and OpenMetrics."""

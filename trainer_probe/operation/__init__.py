"""A job over weeks: driver, an executor a node, rules for what to do about a fault, and backends that run nodes."""

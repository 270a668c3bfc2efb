"""Configuration of the packet engine, one subject a file: wire, switches, hosts, probes, faults."""

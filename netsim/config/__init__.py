"""What the packet engine can be told, a subject a file: the wire, switches, hosts, probes."""

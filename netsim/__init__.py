"""Network simulation: a packet engine in C++ behind one `run`, its configuration, workloads and conformance."""

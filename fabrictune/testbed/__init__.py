"""A miniature cluster of this machine: namespaces as hosts and switches, veth pairs as links, the kernel's own ECMP."""

"""`fabrictune topo`: fabrics."""

"""`fabrictune sim`: the packet engine."""

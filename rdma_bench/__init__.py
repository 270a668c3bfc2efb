"""RDMA retransmission: what the timers of a queue pair promise, what adapters do, and what survives a link flap."""

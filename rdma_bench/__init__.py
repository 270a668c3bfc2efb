"""RDMA retransmission: timers of a queue pair by the standard and on adapters, and the survival of link flaps."""

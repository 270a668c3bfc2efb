"""`fabrictune rdma`: RDMA devices and their retransmission timers."""

"""RDMA device for hosts without one: the kernel's soft-RoCE (rdma_rxe) in a small virtual machine of our own."""

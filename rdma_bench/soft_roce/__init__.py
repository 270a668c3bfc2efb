"""A real RDMA device for whoever has none: the kernel's soft-RoCE (rdma_rxe) in a small virtual machine of our own."""

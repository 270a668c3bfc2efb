"""Measurements on RDMA devices, controlled from one place: two workers, one at each end, and their results."""

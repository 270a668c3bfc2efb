"""Measurements on RDMA devices, led from one place: two workers, one at each end, and what they found."""

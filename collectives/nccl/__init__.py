"""What NCCL and its tools write, read back: logs, topology and graph dumps, the tables of nccl-tests."""

"""Readers of NCCL's output: logs, topology and graph dumps, tables of nccl-tests."""

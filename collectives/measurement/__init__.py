"""Collectives as they were measured: by our own bench, or by nccl-tests."""

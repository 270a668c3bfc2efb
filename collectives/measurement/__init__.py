"""Measured collectives: by the bench of this package, or by nccl-tests."""

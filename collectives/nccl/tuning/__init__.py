"""NCCL's choice of algorithm, protocol and channels, and the time that the choice takes."""

"""Bandwidth of DeepEP's normal kernels between hosts, as published for H800 with a NIC of 400 Gb/s a GPU.

The expected figures and the settings were written down before the first run of the engine (decision 0080). Bandwidth is
theirs: bytes of one copy of a token for each host it goes to, the sender's own included, over the time of the exchange.

Source: DeepEP, docs/legacy.md, "Normal kernels with NVLink and RDMA forwarding"; tests/legacy/test_internode.py.
"""

NUM_TOKENS = 4096
WIDTH = 7168
NUM_CHOICES = 8
MOST_GROUPS = 4
NUM_EXPERTS = 256
GPUS_PER_HOST = 8
SLICE_TOKENS = 32  # its largest chunk over RDMA
BAND = 0.15

# GB/s: ranks, then dispatch in FP8 and combine in BF16. Inside a host the bottleneck is NVLink, of which the rank's own
# part crosses nothing: this row is the rate of NVLink for the others.
INSIDE_HOST = (153.0, 158.0)
PUBLISHED = {16: (43.0, 43.0), 32: (58.0, 57.0), 64: (51.0, 50.0)}

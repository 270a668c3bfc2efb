"""What PyTorch's profiler notes beside a collective's kernel, and its observer at the call."""

ALL_REDUCE_OF_TWO = {
    "Collective name": "allreduce",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "Group size": 2,
    "dtype": "Float",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
}
COLLECTIVE_OF_TWO = {
    "collective_name": "allreduce",
    "dtype": "Float",
    "in_msg_nelems": 1024,
    "out_msg_nelems": 1024,
    "global_rank_start": 0,
    "global_rank_stride": 1,
    "pg_size": 2,
    "pg_name": "0",
}

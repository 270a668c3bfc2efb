"""What people give as a communication trace and no format reads, with the next step for each.

Source: mlcommons/chakra, jsonizer; aliyun/aicb; NCCL and nccl-tests; SQLite's
file format (an Nsight Systems export).
"""

import re

from fabrictune.foundation.unread_formats import UnreadFormat


def _format(pattern: bytes, what: str, next_step: str) -> UnreadFormat:
    return UnreadFormat(pattern=re.compile(pattern, re.MULTILINE), what=what, next_step=next_step)


UNREAD_TRACES = (
    _format(
        rb'"workload_graph":|\A\s*\{\s*"(?:version|attr)":[^}]*\}\s*\{\s*"id":',
        "a Chakra trace written as JSON",
        "give the *.et file that it was made from",
    ),
    _format(
        rb"\ASQLite format 3\0|\ANVIDIA Nsight|\Ansys",
        "a report of Nsight Systems",
        "profile with torch.profiler, whose trace has the ranks and sizes of collectives",
    ),
    _format(
        rb'\A\s*\[\s*\{\s*"(?:name|ph|cat|ts|pid)":',
        "a list of events without the head of a PyTorch profile",
        "export the profile with torch.profiler's export_chrome_trace",
    ),
    _format(
        rb"^#\s{0,9}(?:nThread|nccl-tests version|Collective test starting:)",
        "the output of nccl-tests",
        "read it with `fabrictune coll import`",
    ),
    _format(
        rb" NCCL (?:INFO|WARN) ",
        "a log of NCCL, which has no sizes",
        "name it in a scenario (workload: observed), or profile the job with torch.profiler",
    ),
    _format(
        rb"\Aid\tName\tParameter_size|\Atrain_iter:",
        "an input of AICB's workload generator",
        "generate a workload with AICB, and give that",
    ),
    _format(
        rb"\ANodes\s+\d+\s+Connections\s",
        "a connection matrix of htsim, which has messages and no collectives",
        "write its messages as sends of a Chakra trace",
    ),
)

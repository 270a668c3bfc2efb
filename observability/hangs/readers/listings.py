"""Listings of queue pairs as evidence: a queue pair in an error state says so of its process.

The host is the one that the listing's file is called after. A listing numbers no requests; which queue pairs are those
of a request that hangs follows from the processes at both of their ends (`hangs/queue_pairs.py`).

Left out: queue pairs without a process, which are the kernel's own.
"""

from collections.abc import Sequence

from fabrictune.observability.hangs.evidence import UNKNOWN, Evidence, Sign, SignKind, Who
from fabrictune.rdma_bench.resources import ListedQueuePair

SOURCE = "queue pairs"
MAX_FAILED = 10_000


def listing_evidence(queue_pairs: Sequence[ListedQueuePair]) -> Evidence:
    """Return what a host's listing says of its processes."""
    failed = [one for one in queue_pairs if one.has_failed and one.pid != UNKNOWN][:MAX_FAILED]
    return Evidence(
        source=SOURCE,
        signs=tuple(
            Sign(
                who=Who(host=one.host, pid=one.pid),
                kind=SignKind.FAILED,
                text=f"queue pair {one.local_qpn} of {one.device} is in state {one.state}",
                where=one.where,
            )
            for one in failed
        ),
        tells_all=False,
    )

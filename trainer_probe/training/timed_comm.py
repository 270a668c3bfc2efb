"""The communication of a rank whose requests are timed by the clock of its device's work."""

from typing import TYPE_CHECKING, Any

import torch

from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.clocks import Clock, HostClock
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.ledger import Ledger
from fabrictune.trainer_probe.stream_clock import StreamClock, cuda_event

if TYPE_CHECKING:
    from fabrictune.trainer_probe.operation.pages import RankPage


def timed_comm(layout: ParallelLayout, member: Member, device: torch.device, *, page: "RankPage | None" = None) -> Comm:
    """Return the communication of a rank on its device: on a GPU, whose calls return at once, timed by its stream.

    With a page, its requests and waits are written there too.
    """
    clock: Clock[Any] = StreamClock(cuda_event) if device.type == "cuda" else HostClock()
    groups = layout.axis_groups()
    if page is None:
        return Comm(layout, member, Ledger(member.rank, groups, clock))
    from fabrictune.trainer_probe.operation.watched import WatchedLedger

    return Comm(layout, member, WatchedLedger(member.rank, groups, clock, page))

"""Process groups of torch, made in order by their members only.

A rank joins and makes the default group, then each of its groups in the plan's order. Before torch makes a group
all its members have arrived, so a rank that is missing is named, where a backend would only say that a connection or a
key did not come.

`global-barriers` is the way of torch before 2.1, which later ones still have (`TORCH_DIST_INIT_BARRIER=1`): every rank
makes every group and waits for all ranks after each. It is here to be compared with.

gloo connects two ranks when they first communicate, as NCCL does. Left to itself it connects all pairs of each group:
for the default group alone, which hardly anything uses, a rank would have a socket for every other rank of the job.

NCCL's kernels run in streams of high priority: what communicates needs few of a GPU's processors, and needs them while
a product occupies the others.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch.distributed as dist
from torch.distributed.distributed_c10d import _set_pg_timeout

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.ordered_backend import ORDERED, register_ordered_backend
from fabrictune.collectives.startup.rendezvous import start
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.collectives.startup.store_runner import perform, within

Method = Literal["ordered", "global-barriers"]

_WITHOUT_TIMEOUTS = ("fake", ORDERED)  # torch's changes only those of gloo and NCCL
_LAZY_CONNECTIONS = "TORCH_GLOO_LAZY_INIT"  # read by torch as it makes a group


@dataclass(frozen=True, kw_only=True)
class Member:
    """A rank of a job that has started, with the process groups it is in, by name. The default group is torch's own."""

    rank: int
    plan: GroupPlan
    process_groups: Mapping[str, dist.ProcessGroup]
    elapsed_s: float  # from the store's being there to the last group's
    store: dist.Store | None = None  # kept alive: over gloo two ranks connect through it when they first meet


def start_process_groups(
    store: dist.Store,
    plan: GroupPlan,
    rank: int,
    *,
    timeout_s: float,
    request_timeout_s: float | None = None,
    backend: str = "gloo",
    method: Method = "ordered",
) -> Member:
    """Make torch's default group and this rank's groups of the plan, over a backend of torch's or `ordered`.

    All has happened, or StartupError is raised, when `timeout_s` and a grace of a few seconds have passed. A later
    request fails after `request_timeout_s`, as long as start-up by default, until `limit_requests` says otherwise.
    """
    os.environ.setdefault(_LAZY_CONNECTIONS, "1")
    if backend == ORDERED:
        register_ordered_backend()
    forming = _Forming(store, plan, rank, backend, timedelta(seconds=request_timeout_s or timeout_s))
    started_s = time.monotonic()
    deadline_s = started_s + timeout_s

    def begin() -> None:
        if method == "ordered":
            perform(store, start(plan, rank, _token(), forming.form), deadline_s=deadline_s)
        else:
            forming.form_all_with_barriers()

    within(timeout_s, begin)
    elapsed_s = time.monotonic() - started_s
    return Member(rank=rank, plan=plan, process_groups=forming.made, elapsed_s=elapsed_s, store=store)


def limit_requests(groups: Iterable[dist.ProcessGroup], timeout_s: float) -> None:
    """Let requests of these groups fail that are made from now on and are not complete after `timeout_s`."""
    for group in groups:
        if dist.get_backend(group) not in _WITHOUT_TIMEOUTS:
            _set_pg_timeout(timedelta(seconds=timeout_s), group)


class _Forming:
    """Group creation by torch, after the members' rendezvous or, the old way, with all ranks waiting."""

    def __init__(self, store: dist.Store, plan: GroupPlan, rank: int, backend: str, timeout: timedelta) -> None:
        self.made: dict[str, dist.ProcessGroup] = {}
        self._store, self._plan, self._rank = store, plan, rank
        self._backend, self._timeout = backend, timeout

    def form(self, group: ProcessGroup) -> Steps[None]:
        """Make a group whose members have arrived."""
        if group is self._plan.everyone:
            self._form_default()
        else:
            self._form_group(group, is_local=True)
        yield from ()  # torch asks the store itself

    def form_all_with_barriers(self) -> None:
        """Make every group, also those of others, with torch's barrier over all ranks after each."""
        os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
        self._form_default()
        for group in self._plan.groups:
            self._form_group(group, is_local=False)

    def _form_default(self) -> None:
        dist.init_process_group(
            self._backend, store=self._store, rank=self._rank, world_size=self._plan.world_size, timeout=self._timeout
        )

    def _form_group(self, group: ProcessGroup, *, is_local: bool) -> None:
        made = dist.new_group(
            list(group.members),
            timeout=self._timeout,
            pg_options=self._options(),
            use_local_synchronization=is_local,
            group_desc=group.name,
        )
        if self._rank in group.members:
            self.made[group.name] = made

    def _options(self) -> Any:
        """Return options of a group's backends: gloo has none that matter, and takes NCCL's."""
        if "nccl" not in self._backend or not dist.is_nccl_available():
            return None
        options = dist.ProcessGroupNCCL.Options()
        options.is_high_priority_stream = True
        options._timeout = self._timeout  # torch warns of another than the group's
        return options


def _token() -> str:
    """Return a name for this process that no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"

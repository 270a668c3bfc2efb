"""The clock of a dry run: it advances by the time that a GPU takes for each operation torch dispatches.

Operations on one stream run one after another, each once the host has issued it; a host issues them ahead, from the
beginning of a part of the step on. Where costs fuse, operations on entries that follow one another are one kernel,
which reads what the others made before it and writes what is kept after it (`fused_kernel.py`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from torch.utils._python_dispatch import TorchDispatchMode

from fabrictune.foundation.units import PS_PER_NS
from fabrictune.trainer_probe.planning.fused_kernel import FusedKernel, is_fusible
from fabrictune.trainer_probe.planning.operation_costs import Bound, OperationCosts, Work
from fabrictune.trainer_probe.planning.operation_work import work_of

Part = Literal["forward", "backward", "weights", "optimizer", "rest"]
Key = tuple[Part, str, Bound]  # part of the step, name of the operation, and what bounds its time

DURATIONS = 3  # place of the durations among the totals
_OF_LAYERS = frozenset({"forward", "backward", "weights"})  # parts in which layers run, which a compiler fuses


class OperationClock(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A clock that advances with operations, executed while it is entered or replayed."""

    def __init__(self, costs: OperationCosts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.calls = Counter[Key]()
        self.flops = Counter[Key]()
        self.bytes = Counter[Key]()
        self.duration_ps = Counter[Key]()
        self._costs = costs
        self._part: Part = "rest"
        self._now_ps = 0
        self._issued_ps = 0  # when the host has issued all operations so far
        self._open: FusedKernel | None = None

    @property
    def elapsed_ps(self) -> int:
        """The time so far."""
        self._close_kernel()
        return self._now_ps

    def now_ns(self) -> int:
        """Return the time so far, in ns."""
        return round(self.elapsed_ps / PS_PER_NS)

    def advance(self, duration_ps: int) -> None:
        """Let time pass, as for operations that are replayed."""
        self._close_kernel()
        self._now_ps += duration_ps

    @contextmanager
    def in_part(self, part: Part) -> Iterator[None]:
        """Count the operations of the block to a part of the step, which the host begins with no lead."""
        self._close_kernel()
        before, self._part, self._issued_ps = self._part, part, self._now_ps
        try:
            yield
        finally:
            self._close_kernel()
            self._part, self._issued_ps = before, self._now_ps

    def totals(self) -> tuple[Counter[Key], ...]:
        """Return copies of all counts."""
        self._close_kernel()
        return tuple(Counter(counts) for counts in self._counts)

    def add(self, totals: Sequence[Counter[Key]]) -> None:
        """Count operations again; the time does not advance."""
        for counts, more in zip(self._counts, totals, strict=True):
            counts.update(more)

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and advance by its time."""
        keywords = kwargs or {}
        result = operator(*args, **keywords)
        work = work_of(operator, args, keywords, result)
        if work.flops or work.bytes:
            self._count(operator, args, keywords, result, work)
        elif operator.namespace == "c10d":
            self._close_kernel()
        return result

    @property
    def _counts(self) -> tuple[Counter[Key], ...]:
        return self.calls, self.flops, self.bytes, self.duration_ps

    def _count(
        self, operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any, work: Work
    ) -> None:
        name = str(operator.overloadpacket).removeprefix("aten.")
        if not (self._costs.fuses and self._part in _OF_LAYERS and is_fusible(operator)):
            self._close_kernel()
            self._advance(name, work)
            return
        if self._open is None:
            self._open = FusedKernel()
        self._open.append(name, operator, arguments, keywords, result)

    def _close_kernel(self) -> None:
        """Advance by the fused operations so far, as one kernel."""
        kernel, self._open = self._open, None
        if kernel is not None:
            self._advance(kernel.name, Work(flops=0, bytes=kernel.traffic_bytes()))

    def _advance(self, name: str, work: Work) -> None:
        cost = self._costs.cost(work)
        self._issued_ps += cost.issue_ps
        waited_ps = max(self._issued_ps - self._now_ps, 0) if cost.issue_ps else 0
        key: Key = (self._part, name, cost.bound)
        self.calls[key] += 1
        self.flops[key] += work.flops
        self.bytes[key] += work.bytes
        self.duration_ps[key] += cost.work_ps
        if cost.launch_ps or waited_ps:
            self.duration_ps[self._part, name, "launch"] += cost.launch_ps + waited_ps
        self._now_ps += cost.work_ps + cost.launch_ps + waited_ps

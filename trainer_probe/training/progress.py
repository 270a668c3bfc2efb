"""Progress of a training run: the report of each step on the way out, requests to stop on the way in."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from fabrictune.trainer_probe.comm import Comm

Message = TypeVar("Message")
_BUSY = 2.0**-20  # of one request to stop


@dataclass(frozen=True, kw_only=True)
class RoutingReport:
    """The routing of a step's tokens to experts."""

    balance_loss: float  # mean over tokens and layers, without its coefficient; 1 where all experts are alike
    dropped_fraction: float  # choices beyond their expert's capacity, of all


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """One training step. Exposed communication is the time a rank waits for requests, averaged over ranks."""

    step: int
    loss: float  # mean over the step's tokens
    gradient_norm: float  # over all parameters, before clipping
    learning_rate: float
    loss_scale: float  # in this step; 1 where the precision needs none
    is_skipped: bool  # without an update, since its gradients were not finite
    elapsed_ns: int
    tokens_per_s: float
    mfu_fraction: float  # NaN where no peak is known
    exposed_ns: Mapping[str, int]  # by axis
    routing: RoutingReport | None = None  # of a model with experts
    num_busy: int = 0  # ranks on which a hook was busy at the step's end


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a run says to its user besides its steps."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """Callbacks of a run on one rank."""

    on_step: Callable[[StepReport], None]  # on every rank, with the same numbers
    is_stopped: Callable[[], bool]  # polled on every rank; True on any of them ends the run of all after the step
    peak_flops_per_s: float | None = None  # of one device; looked up by its name where not given
    on_note: Callable[[str], None] = lambda text: None  # on rank 0


@dataclass(frozen=True, kw_only=True)
class Channel(Generic[Message]):
    """A rank's connection to the process that started it; without effect on ranks other than the first."""

    send: Callable[[Message], None] = lambda message: None
    is_stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, kw_only=True)
class StepSums:
    """Figures of a step of which each rank knows a part, summed over ranks."""

    loss: float
    num_stop_requests: int
    num_busy: int
    exposed_ns: Mapping[str, float]
    routing: RoutingReport | None


def sum_over_ranks(
    comm: "Comm",
    *,
    loss_share: float,
    is_stopped: bool,
    is_busy: bool = False,
    exposed_ns: Mapping[str, int],
    routing_sums: tuple[float, float, float, float],
) -> StepSums:
    """Return the sums over all ranks, on each of them; tensor-parallel ranks have the same share of the loss.

    `routing_sums` are a rank's balance losses, their tokens, its dropped choices and all choices. Requests to stop and
    busy ranks are counted in one number, exactly below 2**20 ranks.
    """
    import torch

    axes = comm.layout.axes
    own = [loss_share / comm.layout.tp, is_stopped + is_busy * _BUSY, *routing_sums]
    own += [float(exposed_ns.get(axis, 0)) for axis in axes]
    sums = torch.tensor(own, dtype=torch.float64)
    for axis in comm.layout.rank_axes:
        comm.all_reduce(sums, axis=axis, tag="driver.report").wait()
    loss, counted, balance, num_tokens, num_dropped, num_choices, *exposed = sums.tolist()
    return StepSums(
        loss=loss,
        num_stop_requests=int(counted),
        num_busy=round((counted - int(counted)) / _BUSY),
        exposed_ns=dict(zip(axes, exposed, strict=True)),
        routing=RoutingReport(balance_loss=balance / num_tokens, dropped_fraction=num_dropped / num_choices)
        if num_choices
        else None,
    )


@contextmanager
def stop_signals(on_stop: Callable[[], None], signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Call `on_stop` at the first of each of these signals while the block runs; a second has its usual effect."""
    before = {number: signal.getsignal(number) for number in signals}

    def on_first(number: int, frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        on_stop()

    for number in signals:
        signal.signal(number, on_first)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

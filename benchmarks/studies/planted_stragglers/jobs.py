"""Simulated jobs: the spans of a training under 1F1B with noise, in which faults are planted.

One rank a machine; ranks are numbered data parallel first. A replica's pass waits for the message of its neighbour, a
stage's gradients are summed over replicas after its last backward pass, and a report over all ranks ends a step. The
simulation goes forward in time by recurrence over passes, replicas side by side; it shares nothing with the replay.

Shapes: D replicas, P stages, S steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN, Operation

MS = 1_000_000.0
FORWARD_NS, BACKWARD_NS, OPTIMIZER_NS, LOADER_NS = 5 * MS, 10 * MS, 4 * MS, 0.05 * MS
MESSAGE_NS, GRADIENTS_NS, REPORT_NS = 0.4 * MS, 6 * MS, 0.1 * MS
MESSAGE_BYTES, GRADIENT_BYTES, REPORT_BYTES = 6_291_456, 1_000_000_000, 64
RANK_NOISE, PASS_NOISE, TRANSFER_NOISE = 0.004, 0.01, 0.1  # standard deviations, of a logarithm
HICCUP_CHANCE, HICCUP = 0.002, 0.3  # a pass that takes longer, in any job


@dataclass(frozen=True, kw_only=True)
class JobSize:
    """A simulated job."""

    dp: int
    pp: int
    num_batches: int = 8
    num_steps: int = 12

    @property
    def layout(self) -> ParallelLayout:
        """Its layout."""
        return ParallelLayout(dp=self.dp, pp=self.pp)


SIZES = {64: JobSize(dp=16, pp=4), 256: JobSize(dp=32, pp=8), 1024: JobSize(dp=128, pp=8)}


@dataclass(kw_only=True)
class Disturbance:
    """What faults do to a job: factors and additions by rank, replica and stage."""

    work_SDP: FloatArray  # factor of passes
    link_DP: FloatArray  # factor of a rank's transfers
    loss_DP: FloatArray  # mean of a random addition to that factor
    losses_DP: FloatArray  # expected losses of a transfer, of which that addition is the sum
    loading_SDP: FloatArray  # added to the wait for data
    collection_SDP: FloatArray  # a collection of garbage in the step's first backward pass
    delay_SDP: FloatArray  # before the gradients are summed, of which no span tells
    clock_DP: FloatArray  # ahead

    @classmethod
    def none(cls, size: JobSize) -> "Disturbance":
        """Return the disturbance of a job without faults."""
        cells, places = (size.num_steps, size.dp, size.pp), (size.dp, size.pp)
        return cls(
            work_SDP=np.ones(cells),
            link_DP=np.ones(places),
            loss_DP=np.zeros(places),
            losses_DP=np.ones(places),
            loading_SDP=np.zeros(cells),
            collection_SDP=np.zeros(cells),
            delay_SDP=np.zeros(cells),
            clock_DP=np.zeros(places),
        )


def simulate(size: JobSize, disturbance: Disturbance, seed: int) -> Spans:
    """Return the spans of a job."""
    return _Job(size, disturbance, np.random.default_rng(seed)).run()


class _Job:
    def __init__(self, size: JobSize, disturbance: Disturbance, random: np.random.Generator) -> None:
        self._size, self._disturbance, self._random = size, disturbance, random
        self._rank_factor_DP = np.exp(random.normal(0, RANK_NOISE, (size.dp, size.pp)))
        self._rows: list[dict[str, FloatArray | int]] = []
        self._now_DP = np.zeros((size.dp, size.pp))
        self._sequences: dict[tuple[int, int], int] = {}
        self._sent: list[tuple[int, FloatArray, FloatArray, dict[str, Any]]] = []  # waited for at the step's end

    def run(self) -> Spans:
        for step in range(self._size.num_steps):
            self._step(step)
        return self._spans()

    def _step(self, step: int) -> None:
        size, faults = self._size, self._disturbance
        everyone = np.arange(size.pp)
        begin_DP = self._now_DP.copy()
        self._add(SpanKind.LOADER, step, everyone, LOADER_NS + faults.loading_SDP[step])
        self._pipeline(step)
        self._await_sent(step)
        self._now_DP = self._now_DP + faults.delay_SDP[step]
        self._joint(step, Operation.REDUCE_SCATTER, GRADIENTS_NS, GRADIENT_BYTES)
        self._add(SpanKind.OPTIMIZER, step, everyone, OPTIMIZER_NS * self._noise((size.dp, size.pp)))
        self._joint(step, Operation.ALL_GATHER, GRADIENTS_NS, GRADIENT_BYTES)
        self._report(step)
        self._note(SpanKind.STEP, step, everyone, begin_DP, begin_DP, self._now_DP)

    def _pipeline(self, step: int) -> None:
        """Run the passes of a step stage by stage in an order in which what each waits for has run."""
        size = self._size
        orders = [_one_forward_one_backward(stage, size) for stage in range(size.pp)]
        issued: dict[tuple[str, int, int], FloatArray] = {}  # when the sender has issued the message of a pass
        places = [0] * size.pp
        while any(place < len(order) for place, order in zip(places, orders, strict=True)):
            for stage in range(size.pp):
                while places[stage] < len(orders[stage]):
                    kind, batch = orders[stage][places[stage]]
                    source = stage - 1 if kind == "forward" else stage + 1
                    has_source = 0 <= source < size.pp
                    if has_source and (kind, source, batch) not in issued:
                        break
                    self._pass(step, stage, kind, batch, issued.get((kind, source, batch)), source)
                    target = stage + 1 if kind == "forward" else stage - 1
                    if 0 <= target < size.pp:
                        issued[kind, stage, batch] = self._now_DP[:, stage].copy()
                    places[stage] += 1

    def _pass(self, step: int, stage: int, kind: str, batch: int, sent: FloatArray | None, source: int) -> None:
        faults, column = self._disturbance, np.array([stage])
        if sent is not None:
            self._message(step, source, stage, kind, batch, sent)
        base = FORWARD_NS if kind == "forward" else BACKWARD_NS
        duration = base * self._noise(self._size.dp) * self._rank_factor_DP[:, stage] * faults.work_SDP[step, :, stage]
        duration = duration * np.where(self._random.random(self._size.dp) < HICCUP_CHANCE, 1 + HICCUP, 1)
        collection = faults.collection_SDP[step, :, stage] if (kind, batch) == ("backward", 0) else 0.0
        began = self._now_DP[:, stage].copy()
        if np.any(collection):
            self._note(
                SpanKind.GARBAGE_COLLECTION,
                step,
                column,
                began[:, None],
                began[:, None],
                (began + collection)[:, None],
                keep=np.asarray(collection)[:, None] > 0,
            )
        self._now_DP[:, stage] += duration + collection
        span = SpanKind.FORWARD if kind == "forward" else SpanKind.BACKWARD
        now = self._now_DP[:, stage][:, None]
        self._note(span, step, column, began[:, None], began[:, None], now, batch=batch)

    def _message(self, step: int, source: int, stage: int, kind: str, batch: int, issued: FloatArray) -> None:
        """Let a stage wait for a message that the source has issued; both sides get their spans."""
        arrived = self._now_DP[:, stage].copy()
        slow = np.maximum(self._link(source), self._link(stage))
        done = np.maximum(issued, arrived) + MESSAGE_NS * self._noise(self._size.dp, TRANSFER_NOISE) * slow
        first, last = source * self._size.dp, stage * self._size.dp
        replica = np.arange(self._size.dp)
        sequence = self._next(source, stage)
        common: dict[str, Any] = {"group_kind": 1, "sequence": sequence, "bytes": MESSAGE_BYTES, "batch": batch}
        self._note(
            SpanKind.REQUEST,
            step,
            np.array([stage]),
            arrived[:, None],
            arrived[:, None],
            done[:, None],
            operation=Operation.RECEIVE,
            peer=(first + replica)[:, None],
            **common,
        )
        self._sent.append((source, issued, done, {**common, "peer": (last + replica)[:, None]}))
        self._now_DP[:, stage] = done

    def _await_sent(self, step: int) -> None:
        """Let every stage wait for its messages, after its last pass."""
        for source, issued, done, more in self._sent:
            began = self._now_DP[:, source].copy()
            self._now_DP[:, source] = np.maximum(began, done)
            times = (issued[:, None], began[:, None], self._now_DP[:, source][:, None])
            self._note(SpanKind.REQUEST, step, np.array([source]), *times, operation=Operation.SEND, **more)
        self._sent.clear()

    def _joint(self, step: int, operation: Operation, transfer_ns: float, num_bytes: int) -> None:
        """Let every stage's replicas wait for one another."""
        issued = self._now_DP.copy()
        slow_P = np.max(np.stack([self._link(stage) for stage in range(self._size.pp)], axis=1), axis=0)
        noise_P = self._noise(self._size.pp, TRANSFER_NOISE / 5)
        done = np.broadcast_to(issued.max(axis=0) + transfer_ns * noise_P * slow_P, issued.shape)
        self._now_DP = done + np.abs(self._random.normal(0, 2e-3 * MS, issued.shape))
        stages = np.arange(self._size.pp)
        sequence = self._next(-1, 0)
        kinds: dict[str, Any] = {"operation": operation, "sequence": sequence, "bytes": num_bytes, "group_kind": 0}
        self._note(SpanKind.REQUEST, step, stages, issued, issued, self._now_DP, **kinds)

    def _report(self, step: int) -> None:
        """Let all ranks wait for one another: along the stages of each replica, then across replicas."""
        issued = self._now_DP.copy()
        done = issued.max(axis=1, keepdims=True) + REPORT_NS * self._noise((self._size.dp, 1), TRANSFER_NOISE)
        self._now_DP = np.broadcast_to(done, issued.shape) + np.abs(self._random.normal(0, 2e-3 * MS, issued.shape))
        kinds: dict[str, Any] = {
            "operation": Operation.ALL_REDUCE,
            "sequence": self._next(-1, 1),
            "bytes": REPORT_BYTES,
            "group_kind": 1,
        }
        self._note(SpanKind.REQUEST, step, np.arange(self._size.pp), issued, issued, self._now_DP, **kinds)
        self._joint(step, Operation.ALL_REDUCE, REPORT_NS, REPORT_BYTES)

    def _link(self, stage: int) -> FloatArray:
        """Return the factor of a stage's transfers, drawn anew where packets are lost."""
        loss, losses = self._disturbance.loss_DP[:, stage], self._disturbance.losses_DP[:, stage]
        return self._disturbance.link_DP[:, stage] + loss * self._random.gamma(losses, 1 / losses)

    def _add(
        self, kind: SpanKind, step: int, stages: "np.ndarray[tuple[int], np.dtype[np.int64]]", ns: FloatArray
    ) -> None:
        began = self._now_DP.copy()
        self._now_DP = began + ns
        self._note(kind, step, stages, began, began, self._now_DP)

    def _next(self, source: int, target: int) -> int:
        number = self._sequences.get((source, target), 0)
        self._sequences[source, target] = number + 1
        return number

    def _noise(self, shape: int | tuple[int, ...], deviation: float = PASS_NOISE) -> FloatArray:
        return np.exp(self._random.normal(0, deviation, shape))

    def _note(
        self,
        kind: SpanKind,
        step: int,
        stages: "np.ndarray[tuple[int], np.dtype[np.int64]]",
        issue: FloatArray,
        start: FloatArray,
        end: FloatArray,
        *,
        batch: int = UNKNOWN,
        operation: int = UNKNOWN,
        group_kind: int = UNKNOWN,
        sequence: int = UNKNOWN,
        peer: "np.ndarray[tuple[int, int], np.dtype[np.int64]] | int" = UNKNOWN,
        bytes: int = UNKNOWN,  # noqa: A002  # a column's name
        keep: "np.ndarray[tuple[int, int], np.dtype[np.bool_]] | bool" = True,
    ) -> None:
        """Keep the spans of all replicas of some stages."""
        dp = self._size.dp
        rank = stages[None, :] * dp + np.arange(dp)[:, None]
        clock = self._disturbance.clock_DP[:, stages]
        tp_groups = self._size.layout.world_size
        group = {0: tp_groups + stages[None, :], 1: tp_groups + self._size.pp + np.arange(dp)[:, None]}

        def column(value: Any) -> FloatArray:
            return np.asarray(np.broadcast_to(value, rank.shape)[np.broadcast_to(keep, rank.shape)])

        self._rows.append(
            {
                "rank_N": column(rank),
                "step_N": column(step),
                "kind_N": column(int(kind)),
                "operation_N": column(int(operation)),
                "group_N": column(group.get(group_kind, UNKNOWN)),
                "sequence_N": column(sequence),
                "peer_N": column(peer),
                "micro_batch_N": column(batch),
                "chunk_N": column(0 if batch != UNKNOWN else UNKNOWN),
                "bytes_N": column(bytes),
                "issue_ns_N": column(issue + clock),
                "start_ns_N": column(start + clock),
                "end_ns_N": column(end + clock),
            }
        )

    def _spans(self) -> Spans:
        columns = {
            name: np.concatenate([np.round(np.asarray(row[name])).astype(np.int64) for row in self._rows])
            for name in self._rows[0]
        }
        order = np.lexsort((columns["issue_ns_N"], columns["rank_N"]))
        columns = {name: values[order] for name, values in columns.items()}
        layout = self._size.layout
        num_ranks = layout.world_size
        axes = ["tp"] * num_ranks + ["dp"] * self._size.pp + ["pp"] * self._size.dp + [""]
        return Spans(
            layout=layout,
            groups=layout.axis_groups(),
            host_R=tuple(f"node{rank:04d}" for rank in range(num_ranks)),
            clock_error_ns_R=np.full(num_ranks, 50_000),
            num_dropped_R=np.zeros(num_ranks, np.int64),
            tag_N=("",) * len(order),
            axis_N=tuple(map(axes.__getitem__, columns["group_N"].tolist())),
            **columns,
        )


def _one_forward_one_backward(stage: int, size: JobSize) -> list[tuple[str, int]]:
    """Return a stage's passes in order."""
    warm_up = min(size.pp - 1 - stage, size.num_batches)
    order = [("forward", batch) for batch in range(warm_up)]
    for batch in range(size.num_batches - warm_up):
        order += [("forward", warm_up + batch), ("backward", batch)]
    return order + [("backward", batch) for batch in range(size.num_batches - warm_up, size.num_batches)]

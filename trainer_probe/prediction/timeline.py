"""The timeline of a program at its prices, for all variants at once.

Ranks at one place do the same at the same time. A collective of theirs takes its time from the moment it is made, one
after another on each axis; a wait for it is exposed as far as the work since has not covered it, and that work has lost
the share of the GPU that the collective took. A message of the pipeline arrives its duration after it is sent, one
after another out of each rank. What leads to an instant is carried with it: where something is waited for, the later
of both; so the causes at the end are those of the critical path, and their sum is the step.

Left out: messages of the pipeline beside gradients on one NIC.

Shapes: K variants, P pipeline places, C causes of time. Causes are kept by place for the first variant, P C, and over
all places for each variant, C K.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.prediction.prices import CAUSE, CAUSES, LAUNCHES, SHARED_GPU, SYNCHRONISATION, Prices
from fabrictune.trainer_probe.prediction.program import EventKind, ProgramRequest, StepProgram

_PP = "pp"


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The step of each variant, and what its critical path consists of."""

    step_K: FloatArray  # s
    causes_PC: FloatArray  # s; their sum is the first variant's step
    causes_CK: FloatArray  # s; their sums are the steps


@dataclass(kw_only=True)
class _Causes:
    """What led to an instant: seconds by cause, of the first variant by place too."""

    first_PC: FloatArray
    all_CK: FloatArray

    @classmethod
    def none(cls, num_places: int, num_variants: int) -> "_Causes":
        """Return those of the step's beginning."""
        first_PC, all_CK = np.zeros((num_places, len(CAUSES))), np.zeros((len(CAUSES), num_variants))
        return cls(first_PC=first_PC, all_CK=all_CK)

    def copy(self) -> "_Causes":
        """Return those that later ones do not change."""
        return _Causes(first_PC=self.first_PC.copy(), all_CK=self.all_CK.copy())

    def add(self, place: int, cause: str, seconds_K: FloatArray) -> None:
        """Add the seconds of one cause."""
        self.first_PC[place, CAUSE[cause]] += seconds_K[0]
        self.all_CK[CAUSE[cause]] += seconds_K

    def add_work(self, place: int, seconds_CK: FloatArray) -> None:
        """Add the seconds of each cause."""
        self.first_PC[place] += seconds_CK[:, 0]
        self.all_CK += seconds_CK

    def add_block(self, block: "_Causes") -> None:
        """Add those of a block."""
        self.first_PC += block.first_PC
        self.all_CK += block.all_CK

    def take(self, others: "_Causes", is_later_K: BoolArray) -> None:
        """Take others' in the variants in which they are what is waited for."""
        if is_later_K[0]:
            self.first_PC = others.first_PC.copy()
        self.all_CK = np.where(is_later_K, others.all_CK, self.all_CK)


@dataclass(frozen=True, kw_only=True)
class _Pending:
    """A request that is under way."""

    request: ProgramRequest
    begin_K: FloatArray
    end_K: FloatArray
    share_K: FloatArray | None = None  # of the GPU that it takes
    number: int = 0  # of a receive among those from its sender


@dataclass(frozen=True, kw_only=True)
class _Message:
    """A message of the pipeline: its arrival, and what led to it."""

    arrival_K: FloatArray
    causes: _Causes


@dataclass(kw_only=True)
class _Instant:
    """The moment up to which a rank's events are timed, and what led to it."""

    now_K: FloatArray
    issued_K: FloatArray  # when the host has issued the operations so far, which it does ahead within a pass
    causes: _Causes
    free_K: dict[str, FloatArray] = field(default_factory=dict)  # by axis: when its last request is done
    pending: list[_Pending] = field(default_factory=list)
    event: int = 0  # next
    num_received: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))  # by sender
    has_to_synchronise: bool = False


def time_program(program: StepProgram, prices: Prices) -> StepTimes:
    """Return the step of each variant of the prices."""
    run = _Run(program, prices)
    places = set(range(len(program.steps)))
    while places:
        num_timed = run.num_timed
        places -= {place for place in sorted(places) if run.advance(place)}
        assert run.num_timed > num_timed, "programs of pipelines are proved free of deadlocks"
    ends = [instant.now_K for instant in run.instants]
    causes, last_K = [instant.causes for instant in run.instants], np.argmax(ends, axis=0)
    columns = [causes[place].all_CK[:, variant] for variant, place in enumerate(last_K.tolist())]
    return StepTimes(
        step_K=np.max(ends, axis=0), causes_PC=causes[last_K[0]].first_PC, causes_CK=np.stack(columns, axis=1)
    )


class _Run:
    """The state of all places."""

    def __init__(self, program: StepProgram, prices: Prices) -> None:
        self._program, self._prices = program, prices
        self._num_variants = prices.synchronisation_K.shape[0]
        self._segment_SK = prices.segment_SCK.sum(1)
        self.instants = [self._start() for _ in program.steps]
        self.num_timed = 0  # events
        self._messages: defaultdict[tuple[int, int], list[_Message]] = defaultdict(list)
        self._block_times = cache(self._time_block)

    def advance(self, place: int) -> bool:
        """Time the events of a place until its step ends, or a message is missing; returns whether it ended."""
        steps, instant = self._program.steps[place], self.instants[place]
        while instant.event < len(steps) and self._execute(place, instant, *steps[instant.event]):
            instant.event += 1
            self.num_timed += 1
        return instant.event == len(steps)

    def _start(self) -> _Instant:
        start_K = np.zeros(self._num_variants)
        causes = _Causes.none(len(self._program.steps), self._num_variants)
        return _Instant(now_K=start_K, issued_K=start_K, causes=causes)

    def _time_block(self, number: int, place: int) -> _Instant:
        instant = self._start()
        for kind, value in self._program.blocks[number]:
            is_done = self._execute(place, instant, kind, value)
            assert is_done, "passes exchange no messages of the pipeline"
        return instant

    def _execute(self, place: int, instant: _Instant, kind: EventKind, value: int) -> bool:
        """Time an event; returns False where it must wait for a message that has not been sent yet."""
        if kind == EventKind.WAIT:
            return self._wait(place, instant, instant.pending[value])
        if kind == EventKind.ISSUE:
            self._issue(place, instant, value)
            return True
        if instant.has_to_synchronise:
            instant.now_K = instant.issued_K = instant.now_K + self._prices.synchronisation_K
            instant.causes.add(place, SYNCHRONISATION, self._prices.synchronisation_K)
            instant.has_to_synchronise = False
        if kind == EventKind.RUN:
            block = self._block_times(value, place)
            instant.now_K = instant.now_K + block.now_K
            instant.causes.add_block(block.causes)
            instant.issued_K = instant.now_K
        else:
            self._work(place, instant, value)
        return True

    def _work(self, place: int, instant: _Instant, value: int) -> None:
        """Advance by a segment; the GPU waits where the host has not issued its operations yet."""
        prices, factor_K = self._prices, self._prices.place_factor_PK[place]
        instant.issued_K = instant.issued_K + prices.issue_SK[value]
        done_K = instant.now_K + self._segment_SK[value] * factor_K
        instant.now_K = np.maximum(done_K, instant.issued_K)
        instant.causes.add_work(place, prices.segment_SCK[value] * factor_K)
        instant.causes.add(place, LAUNCHES, instant.now_K - done_K)

    def _issue(self, place: int, instant: _Instant, value: int) -> None:
        request, duration_K = self._program.requests[value], self._prices.request_RK[value]
        if request.axis == _PP and request.kind == Operation.RECEIVE:
            number = instant.num_received[request.peer]
            instant.num_received[request.peer] += 1
            pending = _Pending(request=request, begin_K=instant.now_K, end_K=instant.now_K, number=number)
            instant.pending.append(pending)
            return
        free_K = instant.free_K.get(request.axis)
        begin_K = instant.now_K if free_K is None else np.maximum(instant.now_K, free_K)
        end_K = begin_K + duration_K
        instant.free_K[request.axis] = end_K
        share_K = self._prices.share_RK[value]
        instant.pending.append(_Pending(request=request, begin_K=begin_K, end_K=end_K, share_K=share_K))
        if request.axis == _PP and request.kind == Operation.SEND:
            causes = instant.causes.copy()
            causes.add(place, _PP, end_K - instant.now_K)
            message = _Message(arrival_K=end_K, causes=causes)
            self._messages[request.rank, request.peer].append(message)

    def _wait(self, place: int, instant: _Instant, pending: _Pending) -> bool:
        request = pending.request
        if request.axis == _PP:
            if request.kind == Operation.RECEIVE:
                messages = self._messages[request.peer, request.rank]
                if len(messages) <= pending.number:
                    return False
                self._receive(instant, messages[pending.number])
            else:
                self._expose(place, instant, pending)
            instant.has_to_synchronise = True
            return True
        lost_K = pending.share_K * np.maximum(np.minimum(instant.now_K, pending.end_K) - pending.begin_K, 0.0)
        instant.now_K = instant.now_K + lost_K
        instant.causes.add(place, SHARED_GPU, lost_K)
        self._expose(place, instant, pending)
        return True

    @staticmethod
    def _receive(instant: _Instant, message: _Message) -> None:
        instant.causes.take(message.causes, message.arrival_K > instant.now_K)
        instant.now_K = np.maximum(instant.now_K, message.arrival_K)

    @staticmethod
    def _expose(place: int, instant: _Instant, pending: _Pending) -> None:
        instant.causes.add(place, pending.request.axis, np.maximum(pending.end_K - instant.now_K, 0.0))
        instant.now_K = np.maximum(instant.now_K, pending.end_K)

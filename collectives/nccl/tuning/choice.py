"""NCCL's choice for a collective: the cheapest candidate of its tuning model, or what a tuner plug-in names.

Source: NVIDIA/nccl v2.27.7-1, src/enqueue.cc: updateCollCostTable, topoGetAlgoInfo; ext-tuner/example/plugin.c.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.tuning.candidates import Candidate, candidates_of, time_us
from fabrictune.collectives.nccl.tuning.channels import Shape, ring_channels, shape_of
from fabrictune.collectives.nccl.tuning.constants import VERSIONS
from fabrictune.collectives.nccl.tuning.graphs import Graphs, find_graphs
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol
from fabrictune.collectives.nccl.tuning.settings import NcclSettings
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.foundation.traces import Operation

TUNED = (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.BROADCAST)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A candidate and the time by which NCCL compares it at one size."""

    candidate: Candidate
    time_us: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What NCCL takes for one collective, and why."""

    algorithm: Algorithm
    protocol: Protocol
    shape: Shape
    reason: str
    is_forced: bool  # by a tuner plug-in
    compared: tuple[Compared, ...]  # that can run, cheapest first

    @property
    def name(self) -> str:
        """Algorithm and protocol."""
        return f"{self.algorithm} {self.protocol}"

    def close(self, factor: float) -> tuple[Compared, ...]:
        """Return the other candidates that NCCL takes for at most `factor` times as long; none if a tuner chose."""
        if self.is_forced:
            return ()
        return tuple(one for one in self.compared[1:] if one.time_us <= factor * self.compared[0].time_us)


def model_of(system: System, settings: NcclSettings, version: str, graphs: Graphs | None = None) -> Model:
    """Return the tuning model of a system, with its own graphs or found ones; raises InputError for other versions."""
    if version not in VERSIONS:
        nearest = nearest_name(version, VERSIONS)
        raise InputError(Mistake(where="version of NCCL", found=version, allowed=", ".join(VERSIONS), nearest=nearest))
    graphs = graphs or find_graphs(system)
    return Model(
        system=system,
        graphs=graphs,
        constants=VERSIONS[version],
        settings=settings,
        num_channels=ring_channels(system, graphs, settings),
    )


def choose(model: Model, operation: Operation, size_bytes: int) -> Choice:
    """Return NCCL's choice; raises InputError where the settings leave no candidate."""
    assert operation in TUNED, f"{operation.name} has no algorithms"
    candidates = candidates_of(model, operation)
    compared = sorted(
        (
            Compared(candidate=candidate, time_us=time_us(model, candidate, operation, size_bytes))
            for candidate in candidates
            if not candidate.reason and candidate.gb_per_s > 0
        ),
        key=lambda one: one.time_us,
    )
    if not compared:
        raise InputError(_nothing_left(operation, candidates))
    chosen, reason, num_channels, is_forced = compared[0].candidate, _reason(compared), None, False
    for rule in model.settings.rules:
        if rule.matches(operation, size_bytes, model.system.num_hosts, model.system.num_ranks):
            named = [one.candidate for one in compared if one.candidate.name == f"{rule.algorithm} {rule.protocol}"]
            chosen = named[0] if named else chosen
            reason = f"tuner's rule {rule.where}" if named else f"{reason}; rule {rule.where} names what cannot run"
            num_channels, is_forced = rule.num_channels if named else None, bool(named)
            break
    return Choice(
        algorithm=chosen.algorithm,
        protocol=chosen.protocol,
        shape=shape_for(model, operation, chosen, size_bytes, num_channels=num_channels),
        reason=reason,
        is_forced=is_forced,
        compared=tuple(compared),
    )


def shape_for(
    model: Model, operation: Operation, chosen: Candidate, size_bytes: int, *, num_channels: int | None = None
) -> Shape:
    """Return the shape of a collective by a candidate; a number of channels is a tuner plug-in's."""
    return shape_of(
        model.system,
        model.graphs,
        model.settings,
        operation,
        chosen.algorithm,
        chosen.protocol,
        size_bytes,
        num_channels=num_channels or model.num_channels,
        is_forced=num_channels is not None,
    )


def _reason(compared: Sequence[Compared]) -> str:
    if len(compared) == 1:
        return "the only one left"
    ratio = compared[1].time_us / compared[0].time_us
    return f"{compared[1].candidate.name} is {ratio:.2f} times as long"


def _nothing_left(operation: Operation, candidates: Sequence[Candidate]) -> Mistake:
    reasons = {one.name: one.reason for one in candidates if one.reason not in ("", "not of this operation")}
    asked = [name for name, reason in reasons.items() if reason in ("NCCL_ALGO", "NCCL_PROTO")]
    return Mistake(
        where="NCCL_ALGO, NCCL_PROTO",
        found=f"no algorithm and protocol left for {operation.name.lower()}",
        allowed=", ".join(asked),
        next_step="allow one of them",
    )

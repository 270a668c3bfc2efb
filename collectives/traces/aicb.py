"""AICB and SimAI workload text: the layers of one pipeline stage, with the work and the communication of each pass.

The first line has the parallel degrees, the second the number of layers, then a layer a line: name, dependency, and for
the forward pass, the input gradients and the weight gradients each nanoseconds of work, a collective and its bytes. All
ranks of the stage do the same: forward through the layers, then backward through them, each collective waited for but
those of the weight gradients. Forward and input gradients communicate within tensor groups, weight gradients within
data-parallel groups; a suffix names another group (_EP, _DP_EP).

Ranks are numbered tensor first, then expert, then the rest of data parallelism. A smaller number of ranks than the file
has shortens data parallelism and nothing else.

Source: aliyun/aicb and aliyun/SimAI, the workload format of ASTRA-sim 1.0 (HYBRID_TRANSFORMER_FWD_IN_BCKWD).
Left out: pipeline sends (pp_comm), of which the text gives the size and not the order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

MAX_BYTES = 64 * 2**20
MAX_REQUESTS = 3_000_000
HEAD = "HYBRID_TRANSFORMER"
_OPERATIONS = {
    "ALLREDUCE": Operation.ALL_REDUCE,
    "ALLGATHER": Operation.ALL_GATHER,
    "REDUCESCATTER": Operation.REDUCE_SCATTER,
    "ALLTOALL": Operation.ALL_TO_ALL,
}
_PASSES = ("forward", "input gradient", "weight gradient")
_DEGREES = {"tp": "model_parallel_NPU_group", "ep": "ep", "pp": "pp", "gpus": "all_gpus"}


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """The work of a layer in one pass, and what it communicates after it."""

    compute_ps: int
    operation: Operation | None
    axis: str
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Layer:
    name: str
    passes: tuple[_Pass, ...]  # in the order of _PASSES


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """The ranks of one pipeline stage."""

    tp: int
    ep: int
    num_ranks: int

    def group(self, rank: int, axis: str) -> tuple[int, ...]:
        """Return the group of a rank along an axis: tp, dp, ep or dp_ep."""
        tensor, rest = rank % self.tp, rank // self.tp
        expert, block = rest % self.ep, rest // self.ep
        num_blocks = self.num_ranks // (self.tp * self.ep)
        places: Mapping[str, Sequence[tuple[int, int, int]]] = {
            "tp": [(one, expert, block) for one in range(self.tp)],
            "ep": [(tensor, one, block) for one in range(self.ep)],
            "dp_ep": [(tensor, expert, one) for one in range(num_blocks)],
            "dp": [(tensor, one, two) for two in range(num_blocks) for one in range(self.ep)],
        }
        return tuple(one + self.tp * (two + self.ep * three) for one, two, three in places[axis])


def is_aicb(path: Path) -> bool:
    """Return whether the file begins as such a workload."""
    return read_head(path, len(HEAD)) == HEAD.encode()


def read_aicb(path: Path, *, num_ranks: int | None = None) -> CommTrace:
    """Return the requests of `num_ranks` ranks of a stage, by default all; raises TraceError with file and line."""
    lines = read_text(path, max_bytes=MAX_BYTES).splitlines()
    stage = _stage(path, lines, num_ranks)
    layers = _layers(path, lines)
    per_rank = sum(one.operation is not None for layer in layers for one in layer.passes)
    if per_rank * stage.num_ranks > MAX_REQUESTS:
        raise TraceError(
            Mistake(
                where=str(path),
                found=f"{per_rank} requests on each of {stage.num_ranks} ranks",
                allowed=f"{MAX_REQUESTS:,} in all",
                next_step=f"take fewer ranks, a multiple of {stage.tp * stage.ep}",
            )
        )
    requests: list[TraceRow] = []
    for rank in range(stage.num_ranks):
        requests += _requests(layers, stage, rank, first_row=len(requests))
    return build_trace(requests)


def _stage(path: Path, lines: Sequence[str], num_ranks: int | None) -> _Stage:
    words = lines[0].replace(":", " ").split() if lines else []
    degrees = {}
    for name, word in _DEGREES.items():
        place = words.index(word) + 1 if word in words else len(words)
        text = words[place] if place < len(words) else ""
        if not (text.isascii() and text.isdecimal() and 0 < len(text) <= 7 and int(text)):
            raise TraceError(Mistake(where=f"{path}:1, {word}", found=repr(text), allowed="a whole number above 0"))
        degrees[name] = int(text)
    block = degrees["tp"] * degrees["ep"]
    whole = degrees["gpus"] // degrees["pp"]
    num_chosen = whole if num_ranks is None else num_ranks
    if num_chosen % block or not 0 < num_chosen <= whole:
        allowed = f"a multiple of tp * ep = {block}, up to the stage's {whole}"
        raise TraceError(Mistake(where=str(path), found=f"{num_chosen} ranks", allowed=allowed))
    return _Stage(tp=degrees["tp"], ep=degrees["ep"], num_ranks=num_chosen)


def _layers(path: Path, lines: Sequence[str]) -> list[_Layer]:
    declared = lines[1].strip() if len(lines) > 1 else ""
    rows = [(number, line.split()) for number, line in enumerate(lines[2:], 3) if line.strip()]
    if declared != str(len(rows)):
        raise TraceError(Mistake(where=f"{path}:2", found=f"{declared!r} layers declared", allowed=str(len(rows))))
    return [_layer(f"{path}:{number}", fields) for number, fields in rows]


def _layer(where: str, fields: Sequence[str]) -> _Layer:
    if len(fields) != 12:
        allowed = "12: name, dependency, work, collective and bytes three times, update"
        raise TraceError(Mistake(where=where, found=f"{len(fields)} fields", allowed=allowed))
    passes = tuple(
        _pass(f"{where}, {name}", fields[2 + 3 * place : 5 + 3 * place], "dp" if place == 2 else "tp")
        for place, name in enumerate(_PASSES)
    )
    return _Layer(name=fields[0], passes=passes)


def _pass(where: str, fields: Sequence[str], axis: str) -> _Pass:
    work, written, size = fields
    kind, _, suffix = written.partition("_")
    operation = _OPERATIONS.get(kind)
    if written != "NONE" and (operation is None or suffix.lower() not in ("", "ep", "dp_ep")):
        allowed = f"NONE, or {', '.join(_OPERATIONS)}, and _EP or _DP_EP"
        raise TraceError(Mistake(where=where, found=written, allowed=allowed))
    numbers = []
    for text in (work, size):
        if not (text.isascii() and text.isdecimal() and len(text) <= 15):
            raise TraceError(Mistake(where=where, found=repr(text), allowed="a whole number, not negative"))
        numbers.append(int(text))
    has_bytes = operation is not None and numbers[1] > 0
    return _Pass(
        compute_ps=numbers[0] * PS_PER_NS,
        operation=operation if has_bytes else None,
        axis=suffix.lower() or axis,
        num_bytes=numbers[1],
    )


def _requests(layers: Sequence[_Layer], stage: _Stage, rank: int, *, first_row: int) -> Iterator[TraceRow]:
    """Yield a rank's requests: forward through the layers, then backward, weight gradients in parallel."""
    waits: tuple[int, ...] = ()
    worked_ps, row = 0, first_row
    order = [(layer, 0) for layer in layers] + [(layer, place) for layer in reversed(layers) for place in (1, 2)]
    for layer, place in order:
        work = layer.passes[place]
        worked_ps += work.compute_ps
        if work.operation is None:
            continue
        yield TraceRow(
            rank=rank,
            operation=work.operation,
            group=stage.group(rank, work.axis),
            num_bytes=work.num_bytes,
            compute_before_ps=worked_ps,
            waits=waits,
            axis=work.axis,
            tag=f"{layer.name}, {_PASSES[place]}",
        )
        if place < 2:  # what is waited for; weight gradients are reduced while the rest goes on
            worked_ps, waits = 0, (row,)
        row += 1

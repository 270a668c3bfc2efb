"""Workload text of ASTRA-sim 1.0, SimAI and AICB: layers, with the work and the communication of each pass.

The first line names the form of parallelism and may have the parallel degrees, the second has the number of layers,
then a layer a line: name, dependency, and for the forward pass, the input gradients and the weight gradients each
nanoseconds of work, a collective and its bytes. All ranks of a pipeline stage do the same: forward through the layers,
then backward through them, each collective waited for but those of the weight gradients. The form says which groups
communicate in each pass (`layer_forms`); a suffix names another group (_EP, _DP_EP). MICRO runs its collectives one
after another, without work. Layers from a checkpoint to the layer that initiates it run forward once more before that
layer's backward pass. A broadcast, which SimAI skips, comes from its group's first rank.

Ranks are numbered tensor first, then expert, then the rest of data parallelism. A smaller number of ranks than the file
has shortens data parallelism and nothing else. Files of ASTRA-sim, and of AICB before it had `all_gpus`, do not say how
many ranks there are, and forms of two dimensions do not say how many ranks are next to one another: both are given.

Source: aliyun/aicb and aliyun/SimAI; astra-sim/astra-sim, branch ASTRA-sim-1.0, inputs/workload.
Left out: pipeline sends (pp_comm), of which the text gives the size and not the order; the time of a layer's update.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fabrictune.collectives.traces.builder import Program, Request, TraceBuilder
from fabrictune.collectives.traces.layer_forms import (
    CUSTOMIZED,
    FORMS,
    FORWARD,
    INPUT_GRADIENT,
    PASSES,
    SIMAI_FORM,
    WEIGHT_GRADIENT,
    Form,
    Groups,
)
from fabrictune.collectives.traces.rank_groups import RankGroups
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_head, shown
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

MAX_BYTES = 64 * 2**20
MAX_LAYERS = 200_000
MAX_REQUESTS = 3_000_000
_HEAD_BYTES = 4096
_OPERATIONS = {
    "ALLREDUCE": Operation.ALL_REDUCE,
    "ALLGATHER": Operation.ALL_GATHER,
    "REDUCESCATTER": Operation.REDUCE_SCATTER,
    "ALLTOALL": Operation.ALL_TO_ALL,
    "BROADCAST": Operation.BROADCAST,
}
_AXES = ("tp", "tp", "dp")  # of PASSES, whichever ranks a form takes for them
_DEGREES = {"tp": "model_parallel_NPU_group", "ep": "ep", "pp": "pp", "gpus": "all_gpus"}
_HEAD = re.compile(rf"\s*(?:{'|'.join(FORMS)})(?:[ \t][^\n]*|\r)?\n".encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pass:
    """The work of a layer in one pass, and what it communicates after it."""

    compute_ps: int
    operation: Operation | None
    group: str  # kind of RankGroups
    axis: str
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layer:
    name: str
    passes: tuple[_Pass, ...]  # in the order of PASSES


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The first line."""

    name: str
    degrees: Mapping[str, int]  # those that it has, by the keys of _DEGREES
    checkpoints: Sequence[int]  # layers
    initiates: frozenset[int]

    @property
    def form(self) -> Form:
        return FORMS[self.name]


def is_aicb(path: Path) -> bool:
    """Return whether the file begins as such a workload."""
    return _HEAD.match(read_head(path, _HEAD_BYTES)) is not None


def read_aicb(path: Path, *, num_ranks: int | None = None, group_size: int | None = None) -> CommTrace:
    """Return the requests of `num_ranks` ranks of a stage, by default all; raises TraceError with file and line.

    `group_size` is the number of ranks next to one another in a group, for forms whose files do not say it.
    """
    header, groups, layers = _read(path, num_ranks, group_size)
    order = _order(path, layers, header)
    per_rank = sum(layer.passes[place].operation is not None for layer, place in order)
    if not per_rank:
        raise TraceError(Mistake(where=str(path), found="no collective", allowed="a layer with one"))
    if per_rank * groups.num_ranks > MAX_REQUESTS:
        raise TraceError(
            Mistake(
                where=str(path),
                found=f"{per_rank} requests on each of {groups.num_ranks} ranks",
                allowed=f"{MAX_REQUESTS:,} in all",
                next_step=f"take fewer ranks, a multiple of {groups.block}",
            )
        )
    kinds = list(dict.fromkeys(work.group for work in _communicating(order)))
    program, builder = Program(list(_requests(order, kinds))), TraceBuilder()
    for rank in range(groups.num_ranks):
        builder.run(program, rank, [groups.of(rank, kind) for kind in kinds])
    return builder.finish(tuple(_notes(path, header, order, groups.num_ranks)))


def _read(path: Path, num_ranks: int | None, group_size: int | None) -> tuple[_Header, RankGroups, list[_Layer]]:
    lines = read_text(path, max_bytes=MAX_BYTES).splitlines()
    header = _header(path, lines)
    return header, _groups(path, header, num_ranks, group_size), _layers(path, lines, header)


def _notes(path: Path, header: _Header, order: Sequence[tuple[_Layer, int]], num_ranks: int) -> Iterator[str]:
    """Yield what is left out, and what is taken to be simpler than it is."""
    if (stages := header.degrees.get("pp", 1)) > 1:
        yield f"{path}: one of {stages} pipeline stages is read; what they send to one another is left out"
    if num_ranks < (whole := header.degrees.get("gpus", num_ranks * stages) // stages):
        yield f"{path}: {num_ranks} of the stage's {whole} ranks are read"
    has_input_gradients = any(
        place == INPUT_GRADIENT and layer.passes[place].operation is not None for layer, place in order
    )
    if has_input_gradients and header.name != SIMAI_FORM:
        yield f"{path}: collectives of input gradients are waited for; ASTRA-sim overlaps them with the work of weights"


def _header(path: Path, lines: Sequence[str]) -> _Header:
    words = lines[0].replace(":", " ").split() if lines else []
    name = words[0] if words else ""
    where = f"{path}:1"
    if name not in FORMS:
        raise TraceError(Mistake(where=where, found=shown(name), allowed=", ".join(FORMS)))
    degrees = {}
    if FORMS[name].has_degrees:
        degrees = {key: _degree(words, word, where) for key, word in _DEGREES.items() if word in words}
        if "tp" not in degrees:
            raise TraceError(Mistake(where=where, found=f"no {_DEGREES['tp']}", allowed=f"{_DEGREES['tp']}: 8"))
    checkpoints, initiates = (_list(words, word, where) for word in ("checkpoints", "checkpoint_initiates"))
    return _Header(name=name, degrees=degrees, checkpoints=sorted(checkpoints), initiates=frozenset(initiates))


def _degree(words: Sequence[str], word: str, where: str) -> int:
    place = words.index(word) + 1
    text = words[place] if place < len(words) else ""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= 7 and int(text)):
        raise TraceError(Mistake(where=f"{where}, {word}", found=repr(text), allowed="a whole number above 0"))
    return int(text)


def _list(words: Sequence[str], word: str, where: str) -> list[int]:
    """Return the numbers of layers behind a word: how many there are, then each."""
    if word not in words:
        return []
    texts = words[words.index(word) + 1 :]
    numbers = [int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) <= 7]
    if not numbers or len(numbers) <= numbers[0]:
        raise TraceError(Mistake(where=f"{where}, {word}", found=shown(" ".join(texts)), allowed="a number of layers"))
    return numbers[1 : numbers[0] + 1]


def _groups(path: Path, header: _Header, num_ranks: int | None, group_size: int | None) -> RankGroups:
    """Return the groups of the ranks of one pipeline stage."""
    tp, ep = header.degrees.get("tp", 1), header.degrees.get("ep", 1)
    if header.form.needs_group_size:
        tp = group_size or _refuse_without(path, header, "how many ranks are next to one another", "--group-size")
    whole = header.degrees["gpus"] // header.degrees.get("pp", 1) if "gpus" in header.degrees else None
    num_chosen = num_ranks or whole or _refuse_without(path, header, "how many ranks there are", "--ranks")
    if num_chosen % (tp * ep) or not 0 < num_chosen <= (whole or num_chosen):
        block = f"tp * ep = {tp * ep}" if header.form.has_degrees else f"the group size, {tp}"
        allowed = f"a multiple of {block}" + (f", up to the stage's {whole}" if whole is not None else "")
        raise TraceError(Mistake(where=str(path), found=f"{num_chosen} ranks", allowed=allowed))
    return RankGroups(num_ranks=num_chosen, tp=tp, ep=ep)


def _refuse_without(path: Path, header: _Header, what: str, option: str) -> NoReturn:
    found = f"a {header.name} workload, which does not say {what}"
    raise TraceError(Mistake(where=f"{path}:1", found=found, next_step=f"give {option} N to `fabrictune trace`"))


def _layers(path: Path, lines: Sequence[str], header: _Header) -> list[_Layer]:
    declared = lines[1].strip() if len(lines) > 1 else ""
    rows = [(number, line) for number, line in enumerate(lines[2:], 3) if line.strip()]
    if len(rows) > MAX_LAYERS:
        found, next_step = f"{len(rows):,} layers", "generate fewer steps"
        raise TraceError(Mistake(where=str(path), found=found, allowed=f"{MAX_LAYERS:,}", next_step=next_step))
    if declared != str(len(rows)):
        found, next_step = (
            f"{declared!r} layers declared",
            "check that the file was copied whole, or correct the number",
        )
        raise TraceError(Mistake(where=f"{path}:2", found=found, allowed=str(len(rows)), next_step=next_step))
    return [_layer(f"{path}:{number}", line.split(), header, place) for place, (number, line) in enumerate(rows)]


def _layer(where: str, fields: Sequence[str], header: _Header, place: int) -> _Layer:
    is_customized = header.name == CUSTOMIZED
    if len(fields) != 12 + is_customized:
        allowed = "12: name, dependency, work, collective and bytes three times, update"
        allowed = allowed.replace("12", "13") + ", form" if is_customized else allowed
        raise TraceError(Mistake(where=where, found=f"{len(fields)} fields", allowed=allowed))
    form = header.form
    if is_customized:
        if fields[12] not in FORMS:
            raise TraceError(Mistake(where=where, found=f"the form {shown(fields[12])}", allowed=", ".join(FORMS)))
        form = FORMS[fields[12]]
    groups: Groups = form.first_layer or form.groups if place == 0 else form.groups
    passes = tuple(
        _pass(f"{where}, {name}", fields[2 + 3 * number : 5 + 3 * number], groups[number], _AXES[number], header)
        for number, name in enumerate(PASSES)
    )
    return _Layer(name=fields[0], passes=passes)


def _pass(where: str, fields: Sequence[str], group: str, axis: str, header: _Header) -> _Pass:
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
    if has_bytes and not (suffix or group):
        raise TraceError(Mistake(where=where, found=written, allowed=f"NONE, where {header.name} does not communicate"))
    if has_bytes and suffix and "ep" not in header.degrees:
        raise TraceError(Mistake(where=where, found=written, allowed="a group of the first line, which has no ep"))
    return _Pass(
        compute_ps=numbers[0] * PS_PER_NS * header.form.has_work,
        operation=operation if has_bytes else None,
        group=suffix.lower() or group,
        axis=suffix.lower() or ("all" if group == "all" else axis),
        num_bytes=numbers[1],
    )


def _order(path: Path, layers: Sequence[_Layer], header: _Header) -> list[tuple[_Layer, int]]:
    """Return the layers and passes in the order in which they run."""
    form = header.form
    order = [(layer, place) for layer in layers for place in form.forward]
    for number in reversed(range(len(layers))):
        if number in header.initiates and form.backward:
            first = max((place for place in header.checkpoints if place <= number), default=None)
            if first is None:
                found = f"layer {number}, which initiates a checkpoint that no layer before it has"
                raise TraceError(Mistake(where=f"{path}:1", found=found, allowed="a checkpoint at it or before it"))
            order += [(layer, FORWARD) for layer in layers[first:number]]
        backward = [
            place for place in form.backward if number or place != INPUT_GRADIENT or not form.skips_first_gradient
        ]
        order += [(layers[number], place) for place in backward]
    return order


def _communicating(order: Sequence[tuple[_Layer, int]]) -> Iterator[_Pass]:
    return (work for layer, place in order if (work := layer.passes[place]).operation is not None)


def _requests(order: Sequence[tuple[_Layer, int]], kinds: Sequence[str]) -> Iterator[Request]:
    """Yield each rank's requests; those of weight gradients go on while the rest does, if anything follows."""
    wait, worked_ps, row = UNKNOWN, 0, 0
    is_step = any(place != WEIGHT_GRADIENT for _, place in order)
    for layer, place in order:
        work = layer.passes[place]
        worked_ps += work.compute_ps
        if work.operation is None:
            continue
        yield Request(
            operation=work.operation,
            kind=kinds.index(work.group),
            num_bytes=work.num_bytes,
            place=0 if work.operation == Operation.BROADCAST else UNKNOWN,
            compute_before_ps=worked_ps,
            wait=wait,
            axis=work.axis,
            tag=f"{layer.name}, {PASSES[place]}",
        )
        if place != WEIGHT_GRADIENT or not is_step:
            worked_ps, wait = 0, row
        row += 1

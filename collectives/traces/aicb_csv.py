"""AICB's workload and result tables (`*.csv`): the operations of a rank, one a row, for the ranks of each stage.

Before the column names a line may say which ranks do what follows: `[rank0 ~ rank127]`, or one pipeline stage after
another, `[ pp_stage0: [rank0, rank1] ]`. A row has an operation, a group and its size, and bytes; each waits for the
one before it. Sends and receives are with the stage before or after, and are skipped where there is none, as AICB does.

Ranks are numbered as Megatron does (`rank_groups`); degrees are the sizes of the groups. A smaller number of ranks than
the file has shortens data parallelism and nothing else. Tables of AICB's micro-benchmarks have neither ranks nor sizes:
all ranks are one group then, and how many there are is given.

Source: aliyun/aicb, log_analyzer/log.py (columns), workload_applyer.py (what a row does, and its bytes).
Left out: the matrices of computations, which take `_elapsed_time` nanoseconds where that is given and none elsewhere.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.collectives.traces.builder import Program, Request, TraceBuilder
from fabrictune.collectives.traces.rank_groups import RankGroups
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_head, shown
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

MAX_BYTES = 64 * 2**20
MAX_REQUESTS = 3_000_000
MAX_RANKS = 2**20
_MAX_COLUMNS = 64
_COLUMNS = ("comm_type", "comm_group", "msg_size")
_HEAD = re.compile(rb"\s*(?:\[[^\n]*\]\s*\n\s*)?comm_type,comm_group,")
_RANGE = re.compile(r"\[\s*rank(\d{1,7})\s*~\s*rank(\d{1,7})\s*\]")
_STAGE = re.compile(r"\[\s*pp_stage\d{1,5}:\s*\[(rank\d{1,7}(?:, *rank\d{1,7})*)\]\s*\]")
_OPERATIONS = {
    "all_reduce": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "all_gather_into_tensor": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "reduce_scatter_tensor": Operation.REDUCE_SCATTER,
    "all_to_all": Operation.ALL_TO_ALL,
    "broadcast": Operation.BROADCAST,
    "barrier": Operation.BARRIER,
    "isend": Operation.SEND,
    "irecv": Operation.RECEIVE,
}
_SKIPPED = ("epoch_end", "computation")
_KINDS = {
    "dp_group": "dp",
    "tp_group": "tp",
    "pp_group": "pp",
    "ep_group": "ep",
    "ep_dp_group": "dp_ep",
    "ep_tp_group": "tp_ep",
    "embedding_group": "embedding",
    "all": "all",
    "all_nodes": "all",
}
_NEIGHBOURS = {"send_prev": -1, "recv_prev": -1, "send_next": 1, "recv_next": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """An operation of a rank."""

    operation: Operation
    kind: str  # of the group
    group_size: int | None
    num_bytes: int
    stage_offset: int  # to the other rank's stage, of a send or receive
    compute_ps: int  # before it
    tag: str
    where: str


@dataclass(kw_only=True)
class _Block:
    """The rows of some ranks."""

    ranks: range | None
    where: str
    rows: list[_Row] = field(default_factory=list)


def is_aicb_csv(path: Path) -> bool:
    """Return whether the file begins as such a table."""
    return path.suffix == ".csv" and _HEAD.match(read_head(path, 2**16)) is not None


def read_aicb_csv(path: Path, *, num_ranks: int | None = None) -> CommTrace:
    """Return the requests of `num_ranks` ranks, by default of all that the file names; raises TraceError."""
    blocks, num_untimed = _blocks(path)
    groups = _groups(path, blocks, num_ranks)
    num_requests = sum(len(block.rows) for block in blocks) * groups.stage_ranks
    if num_requests > MAX_REQUESTS:
        found = f"up to {num_requests:,} requests of {groups.num_ranks} ranks"
        next_step = f"take fewer ranks, a multiple of {groups.block * groups.pp}"
        raise TraceError(Mistake(where=str(path), found=found, allowed=f"{MAX_REQUESTS:,}", next_step=next_step))
    notes = (f"{path}: computations without a time, taken as 0: {num_untimed}",) if num_untimed else ()
    builder = TraceBuilder()
    for stage, block in enumerate(blocks):
        kinds = list(dict.fromkeys(_kind(row) for row in block.rows if groups.has_stage(stage + row.stage_offset)))
        program = Program(list(_requests(block.rows, stage, groups, kinds)))
        for rank in range(stage * groups.stage_ranks, (stage + 1) * groups.stage_ranks):
            builder.run(program, rank, [(rank,) if is_alone else groups.of(rank, kind) for kind, is_alone in kinds])
    return builder.finish(notes)


def _blocks(path: Path) -> tuple[list[_Block], int]:
    """Return the blocks of a file, and how many computations have no time; raises TraceError with the line."""
    blocks: list[_Block] = []
    columns: Mapping[str, int] = {}
    compute_ps = num_untimed = 0
    for number, line in enumerate(read_text(path, max_bytes=MAX_BYTES).splitlines(), 1):
        where = f"{path}:{number}"
        if line.lstrip().startswith("["):
            blocks.append(_Block(ranks=_ranks(line.strip(), where), where=where))
            columns = {}
        elif line.startswith("comm_type,"):
            columns = {name: place for place, name in enumerate(line.strip().split(",", _MAX_COLUMNS))}
            if missing := [name for name in _COLUMNS if name not in columns]:
                raise TraceError(Mistake(where=where, found=f"no column {missing[0]}", allowed=", ".join(_COLUMNS)))
            compute_ps = 0
        elif line.strip():
            if not columns:
                raise TraceError(Mistake(where=where, found=shown(line), allowed="the names of the columns before it"))
            cells = line.split(",", _MAX_COLUMNS)
            values = {name: cells[place].strip() if place < len(cells) else "" for name, place in columns.items()}
            blocks = blocks or [_Block(ranks=None, where=where)]
            kind = values["comm_type"].removeprefix("CommType.")
            if kind in _SKIPPED:
                elapsed_ps = _elapsed_ps(values) if kind == "computation" else 0
                num_untimed += elapsed_ps is None
                compute_ps += elapsed_ps or 0
                continue
            blocks[-1].rows.append(_row(values, compute_ps, where))
            compute_ps = 0
    if not any(block.rows for block in blocks):
        raise TraceError(Mistake(where=str(path), found="no operation", allowed="rows below the names of the columns"))
    return blocks, num_untimed


def _ranks(line: str, where: str) -> range:
    if match := _RANGE.fullmatch(line):
        ranks = range(int(match[1]), int(match[2]) + 1)
    elif match := _STAGE.fullmatch(line):
        listed = [int(text) for text in re.findall(r"\d+", match[1])]
        ranks = range(listed[0], listed[0] + len(listed))
        ranks = ranks if list(ranks) == listed else range(0)
    else:
        ranks = range(0)
    if not ranks or ranks[-1] > MAX_RANK:
        allowed = "[rank0 ~ rank127] or [ pp_stage0: [rank0, rank1] ], ranks next to one another"
        raise TraceError(Mistake(where=where, found=shown(line), allowed=allowed))
    return ranks


def _row(values: Mapping[str, str], compute_ps: int, where: str) -> _Row:
    written, group = values["comm_type"].removeprefix("CommType."), values["comm_group"].removeprefix("CommGroup.")
    operation, kind = _OPERATIONS.get(written), _KINDS.get(group)
    if operation is None:
        allowed = ", ".join((*_OPERATIONS, *_SKIPPED))
        raise TraceError(Mistake(where=f"{where}, comm_type", found=shown(written), allowed=allowed))
    if kind is None:
        raise TraceError(Mistake(where=f"{where}, comm_group", found=shown(group), allowed=", ".join(_KINDS)))
    is_message = operation in (Operation.SEND, Operation.RECEIVE)
    offset = _NEIGHBOURS.get(values.get("additional", "")) if is_message else 0
    if offset is None:
        found = shown(values.get("additional", ""))
        raise TraceError(Mistake(where=f"{where}, additional", found=found, allowed=", ".join(_NEIGHBOURS)))
    size = values.get("comm_group_size", "None")
    return _Row(
        operation=operation,
        kind="pp" if is_message else kind,
        group_size=None if is_message or size in ("None", "") else _number(size, f"{where}, comm_group_size"),
        num_bytes=0 if operation == Operation.BARRIER else _number(values["msg_size"], f"{where}, msg_size"),
        stage_offset=offset,
        compute_ps=compute_ps,
        tag=values.get("stage", ""),
        where=where,
    )


def _number(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise TraceError(Mistake(where=where, found=shown(text), allowed="a whole number, not negative"))
    return int(text)


def _elapsed_ps(values: Mapping[str, str]) -> int | None:
    match = re.fullmatch(r"(\d{1,12})(?:\.\d{1,12})?", values.get("_elapsed_time", ""), re.ASCII)
    return int(match[1]) * PS_PER_NS if match else None


def _groups(path: Path, blocks: Sequence[_Block], num_ranks: int | None) -> RankGroups:
    """Return the groups of all ranks, from the sizes of groups and the ranks of the blocks."""
    sizes = _sizes(blocks)
    pp, tp, ep = len(blocks), sizes.get("tp", 1), sizes.get("ep", 1)
    whole = None
    if blocks[0].ranks is not None:
        whole = sum(len(block.ranks or ()) for block in blocks)
        starts = [block.ranks.start if block.ranks else -1 for block in blocks]
        if starts != list(range(0, whole, whole // pp)):
            allowed = "stages of equally many ranks, from rank 0 on"
            raise TraceError(Mistake(where=blocks[-1].where, found="ranks that are no such stage", allowed=allowed))
    chosen = num_ranks or whole or sizes.get("all", sizes.get("dp", 0) * tp * pp)
    if not chosen:
        found, next_step = (
            "a workload that does not say how many ranks there are",
            "give --ranks N to `fabrictune trace`",
        )
        raise TraceError(Mistake(where=str(path), found=found, next_step=next_step))
    if chosen > MAX_RANKS:
        raise TraceError(Mistake(where=str(path), found=f"{chosen:,} ranks", allowed=f"{MAX_RANKS:,}"))
    block = tp * ep * pp
    if chosen % block or not 0 < chosen <= (whole or chosen):
        allowed = f"a multiple of tp * ep * pp = {block}" + (f", up to the file's {whole}" if whole is not None else "")
        raise TraceError(Mistake(where=str(path), found=f"{chosen} ranks", allowed=allowed))
    if chosen == whole:
        _check_sizes(blocks, RankGroups(num_ranks=chosen, tp=tp, ep=ep, pp=pp))
    return RankGroups(num_ranks=chosen, tp=tp, ep=ep, pp=pp)


def _sizes(blocks: Sequence[_Block]) -> dict[str, int]:
    """Return the size of each kind of group; raises TraceError where a kind has two sizes."""
    sizes: dict[str, int] = {}
    for row in (row for block in blocks for row in block.rows if row.group_size):
        if sizes.setdefault(row.kind, row.group_size or 0) != row.group_size:
            found = f"a {row.kind} group of {row.group_size} ranks"
            raise TraceError(Mistake(where=row.where, found=found, allowed=f"{sizes[row.kind]}, as before"))
    return sizes


def _check_sizes(blocks: Sequence[_Block], groups: RankGroups) -> None:
    """Refuse a size of a group that does not follow from the number of ranks and the other sizes."""
    for stage, block in enumerate(blocks):
        for row in block.rows:
            size = len(groups.of(stage * groups.stage_ranks, row.kind))
            if row.group_size not in (None, size, 1):
                found = f"a {row.kind} group of {row.group_size} ranks"
                raise TraceError(Mistake(where=row.where, found=found, allowed=f"{size} of {groups.num_ranks} ranks"))


def _kind(row: _Row) -> tuple[str, bool]:
    """Return the kind of a row's group, and whether each rank is alone in it."""
    return row.kind, row.group_size == 1


def _requests(
    rows: Sequence[_Row], stage: int, groups: RankGroups, kinds: Sequence[tuple[str, bool]]
) -> Iterator[Request]:
    """Yield the requests of each rank of a stage, each waiting for the one before it."""
    wait, worked_ps, number = UNKNOWN, 0, 0
    for row in rows:
        worked_ps += row.compute_ps
        if not groups.has_stage(stage + row.stage_offset):
            continue
        yield Request(
            operation=row.operation,
            kind=kinds.index(_kind(row)),
            num_bytes=row.num_bytes,
            place=_peer_place(row, stage),
            compute_before_ps=worked_ps,
            wait=wait,
            axis=row.kind,
            tag=row.tag,
        )
        wait, worked_ps = number, 0
        number += 1


def _peer_place(row: _Row, stage: int) -> int:
    """Return the peer's place in the group, which is by stage for a send or receive."""
    if row.stage_offset:
        return stage + row.stage_offset
    return 0 if row.operation == Operation.BROADCAST else UNKNOWN

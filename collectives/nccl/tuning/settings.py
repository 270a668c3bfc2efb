"""Settings of NCCL that override its choice: NCCL_ALGO, NCCL_PROTO, numbers of channels, sizes, and a tuner's CSV.

NCCL_ALGO and NCCL_PROTO are lists, of all functions or of one: `ring,tree;allreduce:^nvls`. A list that begins with `^`
names what is not allowed. The CSV is that of NCCL's example tuner: the first row that matches decides.

Source: NVIDIA/nccl v2.28.9-1, src/graph/tuning.cc (parseList), docs of environment variables, ext-tuner/example.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.foundation.foreign_files import read_foreign
from fabrictune.foundation.traces import Operation

FUNCTIONS: Mapping[str, Operation] = {
    "broadcast": Operation.BROADCAST,
    "reduce": Operation.BROADCAST,
    "allgather": Operation.ALL_GATHER,
    "reducescatter": Operation.REDUCE_SCATTER,
    "allreduce": Operation.ALL_REDUCE,
}
MAX_TUNER_BYTES = 2**20
MAX_CHANNELS = 64

Member = TypeVar("Member", Algorithm, Protocol)

_NUMBERS: Mapping[str, tuple[str, int, int]] = {
    "NCCL_MIN_NCHANNELS": ("min_channels", 1, MAX_CHANNELS),
    "NCCL_MAX_NCHANNELS": ("max_channels", 1, MAX_CHANNELS),
    "NCCL_MIN_CTAS": ("min_channels", 1, MAX_CHANNELS),
    "NCCL_MAX_CTAS": ("max_channels", 1, MAX_CHANNELS),
    "NCCL_NVLS_NCHANNELS": ("nvls_channels", 1, MAX_CHANNELS),
    "NCCL_BUFFSIZE": ("buffer_bytes", 2**13, 2**30),
    "NCCL_NVLS_CHUNKSIZE": ("nvls_chunk_bytes", 2**10, 2**30),
    "NCCL_NVLSTREE_MAX_CHUNKSIZE": ("nvls_tree_chunk_bytes", 2**10, 2**30),
    "NCCL_P2P_NET_CHUNKSIZE": ("p2p_chunk_bytes", 2**10, 2**30),
    "NCCL_NVLS_ENABLE": ("nvls_enable", 0, 2),
    "NCCL_PAT_ENABLE": ("pat_enable", 0, 2),
    "NCCL_PXN_DISABLE": ("pxn_disable", 0, 1),
    "NCCL_NET_OVERHEAD": ("post_ns", 0, 10**9),
    "NCCL_IB_QPS_PER_CONNECTION": ("qps_per_connection", 1, 128),
}
KNOWN = ("NCCL_ALGO", "NCCL_PROTO", *_NUMBERS)


@dataclass(frozen=True, kw_only=True)
class TunerRule:
    """A row of a tuner's CSV; None matches everything."""

    operation: Operation
    min_bytes: int
    max_bytes: int
    algorithm: Algorithm
    protocol: Protocol
    num_channels: int | None
    num_hosts: int | None
    num_ranks: int | None
    where: str

    def matches(self, operation: Operation, size_bytes: int, num_hosts: int, num_ranks: int) -> bool:
        """Return whether the rule is for a collective."""
        return (
            self.operation == operation
            and self.min_bytes <= size_bytes <= self.max_bytes
            and self.num_hosts in (None, num_hosts)
            and self.num_ranks in (None, num_ranks)
        )


@dataclass(frozen=True, kw_only=True)
class NcclSettings:
    """What the environment and a tuner plug-in ask of NCCL; None is NCCL's own default."""

    algorithms: Mapping[Operation, frozenset[Algorithm]] = field(default_factory=dict)
    protocols: Mapping[Operation, frozenset[Protocol]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)  # by the names of `_NUMBERS`
    rules: tuple[TunerRule, ...] = ()

    def number(self, name: str, default: int) -> int:
        """Return a setting's number, or NCCL's default."""
        return self.numbers.get(name, default)

    def allows(self, operation: Operation, algorithm: Algorithm) -> bool:
        """Return whether NCCL_ALGO allows an algorithm."""
        return algorithm in self.algorithms.get(operation, frozenset(Algorithm))

    def allows_protocol(self, operation: Operation, protocol: Protocol) -> bool:
        """Return whether NCCL_PROTO allows a protocol."""
        return protocol in self.protocols.get(operation, frozenset(Protocol))

    def names_protocols(self, operation: Operation) -> bool:
        """Return whether NCCL_PROTO decides an operation's protocols, LL128 among them."""
        return operation in self.protocols


def settings_of(environment: Mapping[str, str], *, rules: Sequence[TunerRule] = ()) -> NcclSettings:
    """Return the settings of environment variables; raises InputError with every mistake in them."""
    mistakes: list[Mistake] = []
    numbers: dict[str, int] = {}
    algorithms: Mapping[Operation, frozenset[Algorithm]] = {}
    protocols: Mapping[Operation, frozenset[Protocol]] = {}
    for name, text in environment.items():
        try:
            if name == "NCCL_ALGO":
                algorithms = _lists(name, text, Algorithm)
            elif name == "NCCL_PROTO":
                protocols = _lists(name, text, Protocol)
            elif name in _NUMBERS:
                numbers[_NUMBERS[name][0]] = _number(name, text)
            else:
                raise InputError(
                    Mistake(
                        where=name,
                        found="no setting that NCCL's choice depends on",
                        allowed=", ".join(KNOWN),
                        nearest=nearest_name(name, KNOWN),
                    )
                )
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(*mistakes)
    return NcclSettings(algorithms=algorithms, protocols=protocols, numbers=numbers, rules=tuple(rules))


def read_tuner(path: Path) -> tuple[TunerRule, ...]:
    """Return the rules of a tuner's CSV; raises InputError with every mistake in it."""
    lines = read_foreign(path, max_bytes=MAX_TUNER_BYTES).decode(errors="replace").splitlines()
    rules: list[TunerRule] = []
    mistakes: list[Mistake] = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.lstrip().startswith("#") or cells[0] == "collective_type":
            continue
        try:
            rules.append(_rule(cells, f"{path}:{number}"))
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(*mistakes)
    return tuple(rules)


def _rule(cells: Sequence[str], where: str) -> TunerRule:
    if len(cells) not in (8, 9, 10):
        found = f"{len(cells)} cells"
        allowed = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]"
        raise InputError(Mistake(where=where, found=found, allowed=allowed))
    least, most, channels, hosts, ranks = (_whole(cells[place], where) for place in (1, 2, 5, 6, 7))
    return TunerRule(
        operation=FUNCTIONS[_named(cells[0], tuple(FUNCTIONS), where)],
        min_bytes=least,
        max_bytes=most,
        algorithm=Algorithm(_member(cells[3].replace("_", ""), Algorithm, where)),
        protocol=Protocol(_member(cells[4], Protocol, where)),
        num_channels=_or_any(channels),
        num_hosts=_or_any(hosts),
        num_ranks=_or_any(ranks),
        where=where,
    )


def _or_any(number: int) -> int | None:
    return None if number == -1 else number


def _lists(name: str, text: str, members: type[Member]) -> Mapping[Operation, frozenset[Member]]:
    allowed: dict[Operation, frozenset[Member]] = {}
    for place, entry in enumerate(part for part in text.split(";") if part.strip()):
        prefix, colon, names = entry.rpartition(":")
        if place and not colon:
            raise InputError(Mistake(where=name, found=f"{entry!r} without a function", allowed=", ".join(FUNCTIONS)))
        functions = [_named(prefix, tuple(FUNCTIONS), name)] if colon else list(FUNCTIONS)
        is_excluded = names.startswith("^")
        chosen = {members(_member(one, members, name)) for one in names.removeprefix("^").split(",")}
        kept = frozenset(member for member in members if (member in chosen) != is_excluded)
        allowed |= {FUNCTIONS[function]: kept for function in functions}
    if not allowed:
        raise InputError(Mistake(where=name, found=repr(text), allowed=", ".join(members)))
    return allowed


def _member(text: str, members: type[Algorithm] | type[Protocol], where: str) -> str:
    by_name = {str(member).lower(): str(member) for member in members}
    return by_name[_named(text.strip(), tuple(by_name), where)]


def _named(text: str, names: Sequence[str], where: str) -> str:
    name = text.strip().lower()
    if name not in names:
        nearest = nearest_name(name, names)
        raise InputError(Mistake(where=where, found=repr(text.strip()), allowed=", ".join(names), nearest=nearest))
    return name


def _number(name: str, text: str) -> int:
    _, least, most = _NUMBERS[name]
    number = _whole(text, name)
    if not least <= number <= most:
        raise InputError(Mistake(where=name, found=text, allowed=f"{least} to {most}"))
    return number


def _whole(text: str, where: str) -> int:
    digits = text.strip().removeprefix("-")
    if not digits.isdigit() or len(digits) > 18:
        raise InputError(Mistake(where=where, found=repr(text), allowed="whole numbers"))
    return int(text)

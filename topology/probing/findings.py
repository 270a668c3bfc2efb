"""Findings of a probing: missing answers, duplicates, and paths that no model predicts."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from fabrictune.foundation.finding_rules.paths import (
    CHOICE_DIFFERS,
    CUT_PATHS,
    HOP_UNKNOWN,
    MISSING_PATHS,
    NOTHING_ANSWERS,
    PATH_CHANGED,
    REFUSED_PATHS,
    SILENT_TARGET,
    UNNAMED_HOPS,
    UNPREDICTED_PATHS,
)
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import format_fraction
from fabrictune.topology.probing.comparison import PathComparison, Way
from fabrictune.topology.probing.names import Names, hop_text
from fabrictune.topology.probing.observations import Ending, Hop
from fabrictune.topology.probing.paths import ObservedPath, TargetPaths

MAX_SHOWN = 5  # pieces of evidence
GAP_RULES = tuple(
    rule.id for rule in (REFUSED_PATHS, SILENT_TARGET, CUT_PATHS, NOTHING_ANSWERS, HOP_UNKNOWN, PATH_CHANGED)
)
DIFFERENCE_RULES = tuple(rule.id for rule in (UNNAMED_HOPS, UNPREDICTED_PATHS, MISSING_PATHS, CHOICE_DIFFERS))


def find_gaps(targets: Sequence[TargetPaths], names: Names) -> list[Finding]:
    """Return what is not known of each target's paths, and why it may be."""
    return [finding for target in targets for finding in (*_endings(target, names), *_hops(target, names))]


def find_differences(comparison: PathComparison) -> Iterator[Finding]:
    """Give what a person should look at where the two differ."""
    target = comparison.target_ipv4
    if comparison.unnamed_ipv4:
        addresses = tuple(str(IPv4Address(address)) for address in comparison.unnamed_ipv4)
        actual = f"{len(comparison.unnamed_ipv4)} addresses without a name"
        yield _finding(UNNAMED_HOPS, target, "a name for every hop", actual, addresses)
    if comparison.unpredicted:
        actual = f"{len(comparison.unpredicted)} paths that the model gives to no source port"
        yield _finding(UNPREDICTED_PATHS, target, "only paths of the model", actual, _texts(comparison.unpredicted))
    if comparison.missing:
        actual = f"{len(comparison.missing)} of {len(comparison.predicted)} predicted paths were never taken"
        yield _finding(MISSING_PATHS, target, "every path of the model", actual, _texts(comparison.missing))
    if comparison.num_agreeing < comparison.num_source_ports:
        actual = (
            f"{comparison.num_agreeing} of {comparison.num_source_ports} source ports take the predicted path "
            f"({format_fraction(comparison.chance_fraction)} would by chance)"
        )
        yield _finding(CHOICE_DIFFERS, target, "the predicted path for every source port", actual)


def _endings(target: TargetPaths, names: Names) -> Iterator[Finding]:
    for ending, (rule, actual, expected) in _ENDINGS.items():
        paths = [path for path in target.paths if path.ending is ending and path.hops]
        if paths:
            evidence = tuple(f"{_last(path, names)}: {len(path.source_ports)} source ports" for path in paths)
            found = f"{actual} for {_num_ports(paths)} of {target.num_source_ports} source ports"
            yield _finding(rule, target.target_ipv4, expected, found, evidence)
    mute = [path for path in target.paths if not path.hops]
    if mute:
        found = f"no hop answers for {_num_ports(mute)} of {target.num_source_ports} source ports"
        yield _finding(NOTHING_ANSWERS, target.target_ipv4, "a reply from every hop", found)


_ENDINGS = {
    Ending.REFUSED: (REFUSED_PATHS, "probes rejected on the way", "paths that reach the target"),
    Ending.SILENT: (SILENT_TARGET, "no answer beyond the last hop", "an answer from the target"),
    Ending.CUT: (CUT_PATHS, "target not reached within --max-hops", "paths that reach the target"),
}


def _hops(target: TargetPaths, names: Names) -> Iterator[Finding]:
    for distance in range(1, max((len(path.hops) for path in target.paths), default=0) + 1):
        at_hop = [(path, path.hops[distance - 1]) for path in target.paths if len(path.hops) >= distance]
        silent = [path for path, hop in at_hop if not hop]
        if silent:
            found = f"hop {distance} is unknown for {_num_ports(silent)} of {target.num_source_ports} source ports"
            evidence = _answers([hop for _, hop in at_hop], names)
            yield _finding(HOP_UNKNOWN, target.target_ipv4, "a reply from every hop", found, evidence)
        changed = [path for path, hop in at_hop if len(hop) > 1]
        if changed:
            found = f"different nodes answered as hop {distance} for {_num_ports(changed)} source ports"
            evidence = tuple(hop_text(path.hops[distance - 1], names) for path in changed)
            yield _finding(PATH_CHANGED, target.target_ipv4, "one path per flow", found, evidence)


def _answers(hops: Sequence[Hop], names: Names) -> tuple[str, ...]:
    known = sorted({hop_text(hop, names) for hop in hops if hop})
    return tuple(f"{name} answers for others" for name in known)


def _texts(ways: Sequence[Way]) -> tuple[str, ...]:
    return tuple(" > ".join(way) for way in ways)


def _last(path: ObservedPath, names: Names) -> str:
    return f"last hop {hop_text(path.hops[-1], names)}"


def _num_ports(paths: Sequence[ObservedPath]) -> int:
    return sum(len(path.source_ports) for path in paths)


def _finding(rule: Rule, target_ipv4: int, expected: str, actual: str, evidence: Sequence[str] = ()) -> Finding:
    more = [f"and {len(evidence) - MAX_SHOWN:,} more"] if len(evidence) > MAX_SHOWN else []
    return rule.finding(
        entity=str(IPv4Address(target_ipv4)),
        expected=expected,
        actual=actual,
        confidence=Confidence.MEASURED,
        evidence=(*evidence[:MAX_SHOWN], *more),
    )

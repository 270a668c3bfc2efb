"""Findings of a probing: missing answers, duplicates, and paths that no model predicts."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.topology.probing.comparison import PathComparison, Way
from fabrictune.topology.probing.names import Names, hop_text
from fabrictune.topology.probing.observations import Ending, Hop
from fabrictune.topology.probing.paths import ObservedPath, TargetPaths

MAX_SHOWN = 5  # pieces of evidence


def find_gaps(targets: Sequence[TargetPaths], names: Names) -> list[Finding]:
    """Return what is not known of each target's paths, and why it may be."""
    return [finding for target in targets for finding in (*_endings(target, names), *_hops(target, names))]


def find_differences(comparison: PathComparison) -> Iterator[Finding]:
    """Give what a person should look at where the two differ."""
    target = comparison.target_ipv4
    if comparison.unnamed_ipv4:
        addresses = tuple(str(IPv4Address(address)) for address in comparison.unnamed_ipv4[:MAX_SHOWN])
        actual = f"{len(comparison.unnamed_ipv4)} addresses without a name"
        step = "give --names a file with a line `ADDRESS NODE:PORT` for each"
        yield _finding("probe.unnamed", Severity.WARNING, target, "a name for every hop", actual, step, addresses)
    if comparison.unpredicted:
        actual = f"{len(comparison.unpredicted)} paths that the model gives to no source port"
        step = "compare the fabric of the scenario with the cabling and the routes"
        evidence = _texts(comparison.unpredicted)
        yield _finding("probe.unpredicted", Severity.ERROR, target, "paths of the model", actual, step, evidence)
    if comparison.missing:
        actual = f"{len(comparison.missing)} of {len(comparison.predicted)} predicted paths were never taken"
        step = "look for links that are down, and for tiers that hash alike (polarization)"
        evidence = _texts(comparison.missing)
        yield _finding("probe.missing", Severity.ERROR, target, "every path of the model", actual, step, evidence)
    if comparison.num_agreeing < comparison.num_source_ports:
        actual = (
            f"{comparison.num_agreeing} of {comparison.num_source_ports} source ports take the path predicted, "
            f"where chance gives {comparison.chance_fraction:.0%}"
        )
        step = "give `routing:` the function, fields and seeds of these switches, where the vendor documents them"
        yield _finding("probe.choice-differs", Severity.INFO, target, "the same choice", actual, step)


def _endings(target: TargetPaths, names: Names) -> Iterator[Finding]:
    for ending, (severity, actual, expected, next_step) in _ENDINGS.items():
        paths = [path for path in target.paths if path.ending is ending and path.hops]
        if paths:
            evidence = tuple(f"{_last(path, names)}: {len(path.source_ports)} source ports" for path in paths)
            found = f"{actual} for {_num_ports(paths)} of {target.num_source_ports} source ports"
            yield _finding(f"probe.{ending}", severity, target.target_ipv4, expected, found, next_step, evidence)
    mute = [path for path in target.paths if not path.hops]
    if mute:
        found = f"no hop at all answers for {_num_ports(mute)} of {target.num_source_ports} source ports"
        step = "see whether ICMP is filtered on the way, and whether this machine's own firewall drops it"
        yield _finding(
            "probe.nothing-answers", Severity.ERROR, target.target_ipv4, "a reply from every hop", found, step
        )


_ENDINGS = {
    Ending.REFUSED: (
        Severity.ERROR,
        "refused on the way",
        "paths that reach the target",
        "look for a filter, or a missing route or neighbour, at the hop that refuses",
    ),
    Ending.SILENT: (
        Severity.WARNING,
        "nothing answers beyond the last hop",
        "an answer from the target",
        "an RDMA adapter drops probes without a word: check that the last hop is the target's own switch",
    ),
    Ending.CUT: (
        Severity.WARNING,
        "not at the target yet",
        "paths that reach the target",
        "raise --max-hops",
    ),
}


def _hops(target: TargetPaths, names: Names) -> Iterator[Finding]:
    for distance in range(1, max((len(path.hops) for path in target.paths), default=0) + 1):
        at_hop = [(path, path.hops[distance - 1]) for path in target.paths if len(path.hops) >= distance]
        silent = [path for path, hop in at_hop if not hop]
        if silent:
            found = f"hop {distance} is unknown for {_num_ports(silent)} of {target.num_source_ports} source ports"
            step = "lower --rate or raise --attempts: a hop that limits its ICMP replies then answers more of them"
            evidence = _answers([hop for _, hop in at_hop], names)
            yield _finding(
                "probe.hop-unknown", Severity.WARNING, target.target_ipv4, "every hop known", found, step, evidence
            )
        changed = [path for path, hop in at_hop if len(hop) > 1]
        if changed:
            found = f"hop {distance} answered in two ways for {_num_ports(changed)} source ports"
            step = "probe again: a route changed meanwhile, or packets of one flow are sprayed over several paths"
            evidence = tuple(hop_text(path.hops[distance - 1], names) for path in changed[:MAX_SHOWN])
            yield _finding(
                "probe.path-changed", Severity.WARNING, target.target_ipv4, "one path a flow", found, step, evidence
            )


def _answers(hops: Sequence[Hop], names: Names) -> tuple[str, ...]:
    known = sorted({hop_text(hop, names) for hop in hops if hop})
    return tuple(f"{name} answers for others" for name in known[:MAX_SHOWN])


def _texts(ways: Sequence[Way]) -> tuple[str, ...]:
    return tuple(" > ".join(way) for way in ways)


def _last(path: ObservedPath, names: Names) -> str:
    return f"last hop {hop_text(path.hops[-1], names)}"


def _num_ports(paths: Sequence[ObservedPath]) -> int:
    return sum(len(path.source_ports) for path in paths)


def _finding(
    rule: str,
    severity: Severity,
    target_ipv4: int,
    expected: str,
    actual: str,
    next_step: str,
    evidence: Sequence[str] = (),
) -> Finding:
    return Finding(
        id=rule,
        severity=severity,
        entity=str(IPv4Address(target_ipv4)),
        expected=expected,
        actual=actual,
        next_step=next_step,
        confidence=Confidence.MEASURED,
        evidence=tuple(evidence[:MAX_SHOWN]),
    )

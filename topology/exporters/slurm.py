"""Slurm's topology.conf and topology.yaml of a fabric: a switch for every domain of its hosts.

Source: Slurm, man topology.conf(5) and topology.yaml(5) (topology/tree).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import yaml

from fabrictune.topology.exporters.locality import Domain, Locality, locality_of
from fabrictune.topology.fabric import Fabric

_ENDING = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})", re.DOTALL)


def slurm_conf_text(fabric: Fabric) -> str:
    """Return topology.conf, for TopologyPlugin=topology/tree; raises InputError."""
    locality = locality_of(fabric)
    lines = [_remark(fabric, locality)]
    lines += [f"SwitchName={domain.name} {kind}={members}" for domain, kind, members in _switches(locality)]
    return "\n".join(lines) + "\n"


def slurm_yaml_text(fabric: Fabric) -> str:
    """Return topology.yaml; raises InputError."""
    locality = locality_of(fabric)
    switches = [
        {"switch": domain.name, {"Nodes": "nodes", "Switches": "children"}[kind]: members}
        for domain, kind, members in _switches(locality)
    ]
    content = [{"topology": "default", "cluster_default": True, "tree": {"switches": switches}}]
    return f"{_remark(fabric, locality)}\n{yaml.safe_dump(content, sort_keys=False)}"


def compress_hosts(names: Sequence[str]) -> str:
    """Return names as a list of Slurm's, numbers at their ends joined to ranges: `node[0-3,7],login`."""
    numbers_of: dict[str, list[int]] = defaultdict(list)
    entries: list[str] = []
    for name in dict.fromkeys(names):
        match = _ENDING.fullmatch(name)
        if match:
            numbers_of[match[1]].append(int(match[2]))
        else:
            entries.append(name)
    for stem, numbers in numbers_of.items():
        spans = [f"{first}-{last}" if last > first else str(first) for first, last in _spans(sorted(numbers))]
        is_one = len(spans) == 1 and "-" not in spans[0]
        entries.append(f"{stem}{spans[0]}" if is_one else f"{stem}[{','.join(spans)}]")
    return ",".join(entries)


def _switches(locality: Locality) -> Iterator[tuple[Domain, str, str]]:
    for domain in locality.domains():
        if domain.children:
            yield domain, "Switches", compress_hosts([child.name for child in domain.children])
        else:
            yield domain, "Nodes", compress_hosts(domain.hosts)


def _spans(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            yield first, previous
            first = number
        previous = number
    yield first, previous


def _remark(fabric: Fabric, locality: Locality) -> str:
    num_hosts = sum(len(root.hosts) for root in locality.roots)
    name = re.sub(r"[^\w .:-]", "?", fabric.name)
    return (
        f"# Fabric {name}: {num_hosts} hosts, {locality.num_levels} levels. NodeName must be the fabric's host names."
    )

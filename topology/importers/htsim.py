"""htsim's tree topologies (`.topo`): a few counts for each tier, from which the whole fabric follows.

A header (`Nodes`, `Tiers`, `Podsize`) and a block for each tier from 0 (ToR) upwards: `Downlink_speed_Gbps`,
`Radix_Down`, `Radix_Up` below the top, `Downlink_Latency_ns`, and optionally `Oversubscribed`, which must agree with
these, and `Bundle`, the parallel links to one switch of the tier below. Every node is a host with one NIC. Uplinks are
dealt to the switches above in turn, a bundle at a time, so that a ToR reaches every aggregation switch of its pod.

Source: csg-htsim, sim/datacenter/fat_tree_topology.cpp and sim/datacenter/topologies.
Left out: the latency of switches and the sizes of queues; each such key is noted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, Mistake, quote
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import NO_GROUP, Fabric, NodeKind
from fabrictune.topology.importers.cabling import MAX_MISTAKES, the_only

MAX_NODES = 2**18
HEADER_KEYS = ("nodes", "tiers", "podsize")
NEEDED_KEYS = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")
OPTIONAL_KEYS = ("radix_up", "oversubscribed", "bundle")
TIER_NAMES = ("tor", "agg", "core")

Keys = dict[str, int]


def is_htsim(path: Path) -> bool:
    """Return whether the file's name is that of an htsim topology."""
    return path.suffix == ".topo"


def load_htsim(paths: Sequence[Path]) -> Fabric:
    """Read one topology; raises InputError with every mistake in it."""
    path = the_only(paths)
    text = _Text(path)
    header, blocks = text.read()
    plan = _plan(header, blocks, str(path))
    return _build(path.stem, plan).finish(notes=text.notes)


class _Text:
    """Reads keys and values, without asking yet what they mean together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = read_text(path).splitlines()
        self.mistakes: list[Mistake] = []
        self.notes: list[str] = []

    def read(self) -> tuple[Keys, list[Keys]]:
        """Return the header's keys, and those of each tier; raises FabricError."""
        header: Keys = {}
        blocks: list[Keys] = []
        for row, line in enumerate(self.lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            key = words[0].lower()
            if key == "tier":
                self._begin(row, words, blocks)
            else:
                allowed = (*NEEDED_KEYS, *OPTIONAL_KEYS) if blocks else HEADER_KEYS
                self._take(row, words, blocks[-1] if blocks else header, allowed)
            if len(self.mistakes) >= MAX_MISTAKES:
                break
        self._require(header, HEADER_KEYS, str(self.path))
        for tier, block in enumerate(blocks):
            self._require(block, NEEDED_KEYS, f"{self.path}: tier {tier}")
        if self.mistakes:
            raise FabricError(*self.mistakes)
        return header, blocks

    def _begin(self, row: int, words: list[str], blocks: list[Keys]) -> None:
        """Begin the next tier, which must say that it is this one."""
        if words[1:] != [str(len(blocks))] or len(blocks) == len(TIER_NAMES):
            self._mistake(f"{self.path}:{row}", quote(" ".join(words)), "tiers 0, 1 and perhaps 2, in this order")
        blocks.append({})

    def _take(self, row: int, words: list[str], keys: Keys, allowed: Sequence[str]) -> None:
        key = words[0].lower()
        if key not in allowed:
            self.notes.append(f"{self.path}:{row}: {words[0]} left out")
        elif key in keys:
            self._mistake(f"{self.path}:{row}", f"{words[0]} a second time", "each key once in its tier")
        elif len(words) != 2 or not words[1].isascii() or not words[1].isdigit() or not 0 < int(words[1][:10]) < 10**9:
            self._mistake(f"{self.path}:{row}", quote(" ".join(words)), f"{words[0]} and a whole number from 1 to 10^9")
        else:
            keys[key] = int(words[1])

    def _require(self, keys: Keys, needed: Sequence[str], where: str) -> None:
        for key in needed:
            if key not in keys and len(self.mistakes) < MAX_MISTAKES:
                self._mistake(where, f"no {key}", ", ".join(needed))

    def _mistake(self, where: str, found: str, allowed: str) -> None:
        self.mistakes.append(Mistake(where=where, found=found, allowed=allowed))


@dataclass(frozen=True, kw_only=True)
class _Tier:
    """The switches of one tier, and their links down."""

    num_switches: int
    radix_down: int
    bundles_up: int  # of one switch; 0 at the top
    bundle: int  # links of a bundle down
    rate_bps: int
    delay_ps: int


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The counts of the fabric, all known and all consistent."""

    num_hosts: int
    num_pods: int
    tiers: tuple[_Tier, ...]


def _plan(header: Keys, blocks: Sequence[Keys], where: str) -> _Plan:
    """Return what follows from the keys; raises FabricError with the first count that does not come out even."""

    def require(is_met: bool, key: str, found: str, allowed: str) -> None:
        if not is_met:
            raise FabricError(Mistake(where=f"{where}: {key}", found=found, allowed=allowed))

    def divide(number: int, divisor: int, key: str, what: str) -> int:
        require(number % divisor == 0, key, f"{number} {what} by {divisor}", "a whole number")
        return number // divisor

    nodes = header["nodes"]
    require(nodes <= MAX_NODES, "Nodes", str(nodes), f"at most {MAX_NODES}")
    require(blocks[:1] != [] and blocks[0].get("bundle", 1) == 1, "tier 0: Bundle", "hosts with several links", "one")
    require(header["tiers"] == len(blocks) >= 2, "Tiers", f"{header['tiers']}, and {len(blocks)} blocks", "2 or 3")
    tiers: list[_Tier] = []
    num_links = nodes  # towards the tier
    for number, block in enumerate(blocks):
        num_switches = divide(num_links, block["radix_down"], f"tier {number}: Radix_Down", "links from below")
        above = blocks[number + 1] if number + 1 < len(blocks) else None
        bundles_up = 0
        if above is not None:
            radix_up = block.get("radix_up", 0)
            require(radix_up > 0, f"tier {number}: Radix_Up", "none", "the links up of one switch")
            bundles_up = divide(radix_up, above.get("bundle", 1), f"tier {number}: Radix_Up", "links up")
            _check_oversubscription(block, above, f"{where}: tier {number}: Oversubscribed")
            num_links = num_switches * radix_up
            require(num_links <= MAX_NODES, f"tier {number}: Radix_Up", f"{num_links} links", f"at most {MAX_NODES}")
        tiers.append(
            _Tier(
                num_switches=num_switches,
                radix_down=block["radix_down"],
                bundles_up=bundles_up,
                bundle=block.get("bundle", 1),
                rate_bps=block["downlink_speed_gbps"] * 10**9,
                delay_ps=block["downlink_latency_ns"] * 1000,
            )
        )
    num_pods = divide(nodes, header["podsize"], "Podsize", "nodes")
    for number, tier in enumerate(tiers[:2]):
        divide(tier.num_switches, num_pods, "Podsize", f"{TIER_NAMES[number]} switches")
    require(len(tiers) == 3 or num_pods == 1, "Podsize", f"{num_pods} pods with two tiers", "one pod of all nodes")
    return _Plan(num_hosts=nodes, num_pods=num_pods, tiers=tuple(tiers))


def _check_oversubscription(block: Keys, above: Keys, where: str) -> None:
    ratio = block.get("oversubscribed")
    down = block["radix_down"] * block["downlink_speed_gbps"]
    up = block["radix_up"] * above["downlink_speed_gbps"]
    if ratio is not None and down != ratio * up:
        found = f"{ratio}, and {down} Gbps down, {up} Gbps up"
        raise FabricError(Mistake(where=where, found=found, allowed="capacity down over capacity up"))


def _build(name: str, plan: _Plan) -> FabricDraft:
    """Return the fabric; hosts and ToRs have the group of their ToR, aggregation switches that of their pod."""
    draft = FabricDraft(name)
    tors, aggregations = plan.tiers[:2]
    group_of = (  # of a switch of each tier
        lambda tor: tor,
        lambda aggregation: tors.num_switches + aggregation * plan.num_pods // aggregations.num_switches,
        lambda core: NO_GROUP,
    )
    levels = [[draft.add_host(f"host{host}", group=host // tors.radix_down) for host in range(plan.num_hosts)]]
    for number, tier in enumerate(plan.tiers):
        levels.append(
            [
                draft.add_switch(f"{TIER_NAMES[number]}{switch}", tier=number + 1, group=group_of[number](switch))
                for switch in range(tier.num_switches)
            ]
        )
    for number, tier in enumerate(plan.tiers):
        num_parts = (tors.num_switches, plan.num_pods, 1)[number]  # ToRs and their hosts, pods, everything
        bundles_up = plan.tiers[number - 1].bundles_up if number else 1
        for lowers, uppers in zip(_cut(levels[number], num_parts), _cut(levels[number + 1], num_parts), strict=True):
            _cable(draft, lowers, uppers, bundles_up, tier)
    return draft


def _cable(draft: FabricDraft, lowers: Sequence[int], uppers: Sequence[int], bundles_up: int, tier: _Tier) -> None:
    """Deal the bundles of the lower nodes to the upper ones in turn."""
    num_downlinks = dict.fromkeys(uppers, 0)
    for place, lower in enumerate(lowers):
        for uplink in range(bundles_up * tier.bundle):
            upper = uppers[(place * bundles_up + uplink // tier.bundle) % len(uppers)]
            draft.add_link(
                (lower, f"up{uplink}" if draft.node_kind[lower] == NodeKind.SWITCH else f"nic{uplink}"),
                (upper, f"down{num_downlinks[upper]}"),
                rate_bps=tier.rate_bps,
                delay_ps=tier.delay_ps,
            )
            num_downlinks[upper] += 1


def _cut(nodes: Sequence[int], num_parts: int) -> list[Sequence[int]]:
    size = len(nodes) // num_parts
    return [nodes[start : start + size] for start in range(0, len(nodes), size)]

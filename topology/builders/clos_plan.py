"""Counts of a CLOS fabric: those given, those derived from them, and contradictions between them.

`clos` says what the words mean. A count that is not given is worked out from the others; where they contradict one
another, or a switch would need more ports than it has, the setting to change is named and nothing is rounded.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from fabrictune.foundation.errors import FabricError, InputError, Mistake
from fabrictune.foundation.units import format_rate

MAX_NICS = 2**18  # a larger fabric is refused rather than built in memory


@dataclass(frozen=True, kw_only=True)
class ClosSpec:
    """Parameters of a CLOS fabric. Counts that are None follow from the others, as `plan_clos` works them out."""

    kind: ClassVar[str] = "clos"  # how the fabric's name begins

    num_hosts: int = field(metadata={"help": "hosts (servers) in all"})
    hosts_per_tor_set: int = field(metadata={"help": "hosts that share one set of ToRs"})
    nics_per_host: int = field(default=8, metadata={"help": "NICs of a host, one a rail"})
    ports_per_nic: Literal[1, 2] = field(default=1, metadata={"help": "links of a NIC, each to another ToR"})
    tors_per_set: int | None = field(default=None, metadata={"help": "ToRs of a set; one for each link of a host"})
    planes: int = field(default=1, metadata={"help": "networks above the ToRs that only hosts join"})
    tiers: Literal[2, 3] = field(default=3, metadata={"help": "2 (ToR, aggregation) or 3 (and core)"})
    switch_radix: int = field(default=64, metadata={"help": "ports of a switch, before splitting"})
    aggregation_radix: int | None = field(default=None, metadata={"help": "the same as switch_radix"})
    core_radix: int | None = field(default=None, metadata={"help": "the same as switch_radix"})
    nic_rate_bps: int = field(default=200_000_000_000, metadata={"help": "rate of a link between NIC and ToR"})
    uplink_rate_bps: int = field(default=400_000_000_000, metadata={"help": "rate of a whole switch port"})
    downlink_split: int = field(default=2, metadata={"help": "NIC links that one ToR port is split into"})
    oversubscription: int = field(default=1, metadata={"help": "capacity down over capacity up at a ToR"})
    uplinks_per_tor: int | None = field(default=None, metadata={"help": "follows from the oversubscription"})
    aggregations_per_pod: int | None = field(default=None, metadata={"help": "as many as a ToR has uplinks"})
    tor_sets_per_pod: int | None = field(default=None, metadata={"help": "as many as the ports allow"})
    aggregation_oversubscription: int = field(default=1, metadata={"help": "the same at an aggregation switch"})
    uplinks_per_aggregation: int | None = field(default=None, metadata={"help": "follows from that oversubscription"})
    num_cores: int | None = field(default=None, metadata={"help": "as few as the ports allow"})
    host_cable_mm: int = field(default=3_000, metadata={"help": "host to ToR"})
    tor_cable_mm: int = field(default=30_000, metadata={"help": "ToR to aggregation"})
    core_cable_mm: int = field(default=100_000, metadata={"help": "aggregation to core"})

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=name, found=str(value), allowed="1 or more")
            for name, value in vars(self).items()
            if isinstance(value, int) and value < (0 if name.endswith("_mm") else 1)
        ]
        if self.tiers not in (2, 3):
            mistakes.append(Mistake(where="tiers", found=str(self.tiers), allowed="2 or 3"))
        if self.ports_per_nic > 2:
            mistakes.append(Mistake(where="ports_per_nic", found=str(self.ports_per_nic), allowed="1 or 2"))
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class ClosPlan:
    """The counts of a CLOS fabric, all known and all consistent; those above the ToRs are of one plane."""

    num_planes: int
    num_sets: int
    tors_per_set: int
    uplinks_per_tor: int
    num_pods: int
    sets_per_pod: int
    aggregations_per_pod: int
    uplinks_per_aggregation: int  # 0 in two tiers
    num_cores: int  # 0 in two tiers

    @property
    def tors_per_pod(self) -> int:
        """ToRs of a pod, in one plane."""
        return self.sets_per_pod * self.tors_per_set // self.num_planes


def preset(setting: str, default: Any) -> Any:
    """Return the field of a child of ClosSpec that only gives a setting another default."""
    return field(default=default, metadata=ClosSpec.__dataclass_fields__[setting].metadata)


def plan_clos(spec: ClosSpec) -> ClosPlan:
    """Return the counts that follow from the spec; raises FabricError naming the setting that does not fit."""
    _require_divides("hosts_per_tor_set", spec.hosts_per_tor_set, "num_hosts", spec.num_hosts)
    links_per_host = spec.nics_per_host * spec.ports_per_nic
    tors_per_set = links_per_host if spec.tors_per_set is None else spec.tors_per_set
    _require_divides("tors_per_set", tors_per_set, "links of a host", links_per_host)
    _require_divides("ports_per_nic", spec.ports_per_nic, "tors_per_set", tors_per_set)
    _require_divides("planes", spec.planes, "tors_per_set", tors_per_set)
    num_nics = spec.num_hosts * spec.nics_per_host
    _require(num_nics <= MAX_NICS, "num_hosts", f"{num_nics} NICs", f"at most {MAX_NICS} NICs")
    num_sets = spec.num_hosts // spec.hosts_per_tor_set
    uplinks = _plan_tor(spec, spec.hosts_per_tor_set * links_per_host // tors_per_set)
    aggregations = uplinks if spec.aggregations_per_pod is None else spec.aggregations_per_pod
    _require_divides("aggregations_per_pod", aggregations, "uplinks of a ToR", uplinks)
    downlinks_per_set = tors_per_set // spec.planes * uplinks // aggregations  # at one aggregation switch
    sets_per_pod = _plan_pod(spec, num_sets, downlinks_per_set)
    num_pods = num_sets // sets_per_pod
    up = 0 if spec.tiers == 2 else _aggregation_uplinks(spec, sets_per_pod * downlinks_per_set)
    return ClosPlan(
        num_planes=spec.planes,
        num_sets=num_sets,
        tors_per_set=tors_per_set,
        uplinks_per_tor=uplinks,
        num_pods=num_pods,
        sets_per_pod=sets_per_pod,
        aggregations_per_pod=aggregations,
        uplinks_per_aggregation=up,
        num_cores=_plan_cores(spec, uplinks_per_pod=aggregations * up, num_pods=num_pods),
    )


def _plan_tor(spec: ClosSpec, num_nics: int) -> int:
    """Return the uplinks of a ToR that serves `num_nics` NICs."""
    _require(
        spec.downlink_split * spec.nic_rate_bps <= spec.uplink_rate_bps,
        "downlink_split",
        f"{spec.downlink_split} NIC links of {format_rate(spec.nic_rate_bps)} on one ToR port",
        f"together at most the port's {format_rate(spec.uplink_rate_bps)}",
    )
    uplinks = spec.uplinks_per_tor
    _require(
        uplinks is None or spec.oversubscription == 1,
        "oversubscription",
        f"{spec.oversubscription}:1, and {uplinks} uplinks_per_tor",
        "one of the two: each follows from the other",
    )
    if uplinks is None:
        uplinks, rest = divmod(num_nics * spec.nic_rate_bps, spec.oversubscription * spec.uplink_rate_bps)
        _require(
            rest == 0 and uplinks > 0,
            "oversubscription",
            f"{num_nics} NICs of {format_rate(spec.nic_rate_bps)} a ToR at {spec.oversubscription}:1",
            f"a whole number of {format_rate(spec.uplink_rate_bps)} uplinks",
            "give uplinks_per_tor",
        )
    down = -(-num_nics // spec.downlink_split)
    _require_ports(
        "switch_radix", spec.switch_radix, "ToR", down, uplinks, "lower hosts_per_tor_set, or split the downlinks"
    )
    return uplinks


def _plan_pod(spec: ClosSpec, num_sets: int, downlinks_per_set: int) -> int:
    """Return how many ToR sets a pod has."""
    radix = _radix(spec, "aggregation_radix")
    if spec.tiers == 2:
        _require(
            spec.tor_sets_per_pod in (None, num_sets),
            "tor_sets_per_pod",
            f"{spec.tor_sets_per_pod} of {num_sets} ToR sets",
            "with two tiers, all of them in one pod",
            "use three tiers",
        )
        _refuse_core_settings(spec)
        _require_ports(*radix, "aggregation switch", num_sets * downlinks_per_set, 0, "use three tiers")
        return num_sets
    if spec.tor_sets_per_pod is not None:
        _require_divides("tor_sets_per_pod", spec.tor_sets_per_pod, "number of ToR sets", num_sets)
        choices = [spec.tor_sets_per_pod]
    else:
        choices = [sets for sets in range(num_sets, 0, -1) if num_sets % sets == 0]
    for sets in choices:
        down = sets * downlinks_per_set
        if down % spec.aggregation_oversubscription == 0 and down + _aggregation_uplinks(spec, down) <= radix[1]:
            return sets
    down = choices[-1] * downlinks_per_set
    up = _aggregation_uplinks(spec, down)
    _require_ports(*radix, "aggregation switch", down, up, "lower tor_sets_per_pod, or use larger switches")
    raise AssertionError("one of the two does not hold")


def _refuse_core_settings(spec: ClosSpec) -> None:
    """Two tiers have no core, so settings of one are a misunderstanding."""
    for name in ("aggregation_oversubscription", "uplinks_per_aggregation", "num_cores", "core_radix"):
        value, default = getattr(spec, name), ClosSpec.__dataclass_fields__[name].default
        _require(
            value == default,
            name,
            f"{value} with two tiers",
            "nothing above the aggregation switches",
            "use three tiers",
        )


def _radix(spec: ClosSpec, setting: str) -> tuple[str, int]:
    """Return the setting that limits a tier's switches, and its value."""
    radix: int | None = getattr(spec, setting)
    return ("switch_radix", spec.switch_radix) if radix is None else (setting, radix)


def _aggregation_uplinks(spec: ClosSpec, down: int) -> int:
    """Return the uplinks of an aggregation switch with `down` downlinks."""
    if spec.uplinks_per_aggregation is not None:
        _require(
            spec.aggregation_oversubscription == 1,
            "aggregation_oversubscription",
            f"{spec.aggregation_oversubscription}:1, and {spec.uplinks_per_aggregation} uplinks_per_aggregation",
            "one of the two: each follows from the other",
        )
        return spec.uplinks_per_aggregation
    up, rest = divmod(down, spec.aggregation_oversubscription)
    _require(
        rest == 0,
        "aggregation_oversubscription",
        f"{down} downlinks of an aggregation switch at {spec.aggregation_oversubscription}:1",
        "a whole number of uplinks",
        "give uplinks_per_aggregation",
    )
    return up


def _plan_cores(spec: ClosSpec, *, uplinks_per_pod: int, num_pods: int) -> int:
    """Return the number of cores: each takes equally many links, and reaches every pod."""
    if spec.tiers == 2:
        return 0
    total = uplinks_per_pod * num_pods
    fewest = -(-total // _radix(spec, "core_radix")[1])
    choices = range(fewest, uplinks_per_pod + 1) if spec.num_cores is None else [spec.num_cores]
    for cores in choices:
        if total % cores == 0 and fewest <= cores <= uplinks_per_pod:
            return cores
    _require(
        False,
        "num_cores",
        f"{total} uplinks from {num_pods} pods to {spec.num_cores or 'any number of'} cores",
        f"a divisor of {total} from {fewest} (port budget) to {uplinks_per_pod} (every pod reaches every core)",
        "change num_cores, the radix or the oversubscription",
    )
    raise AssertionError("refused above")


def _require(is_met: bool, where: str, found: str, allowed: str, next_step: str = "") -> None:
    if not is_met:
        raise FabricError(Mistake(where=where, found=found, allowed=allowed, next_step=next_step))


def _require_divides(where: str, divisor: int, what: str, number: int) -> None:
    _require(number % divisor == 0, where, f"{divisor}, with {what} {number}", f"a divisor of {number}")


def _require_ports(where: str, radix: int, switch: str, down: int, up: int, next_step: str) -> None:
    _require(
        down + up <= radix,
        where,
        f"{down} ports down and {up} up on each {switch}",
        f"at most {radix} ports",
        next_step,
    )

"""What follows from several facts: the class that the job's data land in, on the NIC and on the switch behind it.

`path.data_dscp` is what the job marks its data with: NCCL_IB_TC over four, else the NIC's default for RDMA. From there
the NIC's map gives the priority it pauses on, and the switch's maps the queue that it lands in. CNPs go the same way.
`job.survives_watchdog` compares the silence that a queue pair survives, as a ConnectX-6 was measured, with the time for
which a PFC watchdog keeps a queue dropping.

Source: NCCL user guide, NCCL_IB_TC (the traffic class, DSCP in its upper six bits) and NCCL_IB_TIMEOUT; SONiC,
stock map AZURE (qos_config.j2).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabrictune.fleet.collect.node_reading import NodeReading
from fabrictune.fleet.facts.fact import Device, Fact, FleetFacts, Value, number_of
from fabrictune.fleet.facts.gather import gather_facts
from fabrictune.fleet.facts.links import switch_pairs
from fabrictune.rdma_bench.timers.nccl_defaults import RETRIES, TIMEOUT_SINCE
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE, KNOWN_PROFILES

TRAFFIC_CLASS, TIMEOUT, RETRY_COUNT = "job.env.NCCL_IB_TC", "job.env.NCCL_IB_TIMEOUT", "job.env.NCCL_IB_RETRY_CNT"
NCCL_TIMEOUT = TIMEOUT_SINCE[0][1]


def fleet_facts(readings: Sequence[NodeReading]) -> FleetFacts:
    """Return all facts of a fleet, and those that follow from several."""
    facts = gather_facts(readings)
    derived = [*_of_devices(facts), *_of_neighbours(facts, readings), *_of_watchdogs(facts)]
    return replace(facts, facts=(*facts.facts, *derived))


def _of_devices(facts: FleetFacts) -> Iterator[Fact]:
    for state in facts.named("rdma.state"):
        device: Device = (state.node, state.device)
        marked = _data_dscp(facts, device)
        if marked is None:
            continue
        dscp, where = marked
        yield _fact(device, "path.data_dscp", float(dscp), where)
        yield from _on_nic(facts, device, dscp, where)
        yield from _on_switch(facts, device, dscp, where)


def _data_dscp(facts: FleetFacts, device: Device) -> tuple[int, str] | None:
    """Return the DSCP of a job's data and what says so, None where nothing does."""
    traffic_class = facts.of(TRAFFIC_CLASS, device)
    number = number_of(traffic_class.value) if traffic_class else None
    if traffic_class and number is not None and 0 <= number < 256:
        return int(number) >> 2, f"{traffic_class.where}: NCCL_IB_TC {int(number)}"
    default = facts.of("nic.cm_dscp", device)
    number = number_of(default.value) if default else None
    if default and number is not None and 0 <= number < 64:
        return int(number), f"{default.where}: the device's default, DSCP {int(number)}"
    return None


def _on_nic(facts: FleetFacts, device: Device, dscp: int, marked_at: str) -> Iterator[Fact]:
    mapping, pfc, trust = (facts.of(f"nic.{name}", device) for name in ("dscp_priorities", "pfc", "trust"))
    if mapping is None or pfc is None or (trust and trust.value != "dscp"):
        return
    priority = pairs_of(mapping.value).get(dscp, dscp >> 3)
    is_lossless = str(priority) in str(pfc.value).split(",")
    where = f"{marked_at}; {mapping.where}: DSCP {dscp} is priority {priority}; {pfc.where}: PFC on {pfc.value}"
    yield _fact(device, "path.nic_priority", float(priority), where)
    yield _fact(device, "path.nic_class", "lossless" if is_lossless else "lossy", where)


def _on_switch(facts: FleetFacts, device: Device, dscp: int, marked_at: str) -> Iterator[Fact]:
    port = facts.other_end(device)
    mapping, pfc = (facts.of(name, port) if port else None for name in ("switch.dscp_queues", "switch.pfc"))
    if port is None or mapping is None or pfc is None:
        return
    queues = pairs_of(mapping.value)
    queue = queues.get(dscp, 0)
    lossless = str(pfc.value).split(",")
    where = (
        f"{marked_at}; {' '.join(port)}: {mapping.where}: DSCP {dscp} is queue {queue}; {pfc.where}: PFC on {pfc.value}"
    )
    yield _fact(device, "path.switch_queue", float(queue), where)
    yield _fact(device, "path.switch_class", "lossless" if str(queue) in lossless else "lossy", where)
    cnp = facts.of("nic.cnp_dscp", device)
    number = number_of(cnp.value) if cnp else None
    if cnp and number is not None:
        cnp_queue = queues.get(int(number), 0)
        place = f"{cnp.where}: DSCP {int(number)}; {mapping.where}: it is queue {cnp_queue}"
        yield _fact(device, "path.cnp_queue", "of the data" if cnp_queue == queue else "another", place)


def _of_neighbours(facts: FleetFacts, readings: Sequence[NodeReading]) -> Iterator[Fact]:
    """Yield whether two neighbouring switches choose by the same hash, which leaves paths unused."""
    for near, far, where in switch_pairs(readings, facts.roles):
        names = ("switch.hash_algorithm", "switch.hash_seed", "switch.hash_fields")
        values = [[facts.of(name, (node, "")) for name in names] for node in (near, far)]
        if values[0][1] is None or values[1][1] is None:
            continue
        same = all((a.value if a else None) == (b.value if b else None) for a, b in zip(*values, strict=True))
        seeds = "; ".join(f"{fact.where}: seed {fact.value:g}" for row in values if (fact := row[1]) is not None)
        relation = "the same as its neighbour's" if same else "another than its neighbour's"
        yield _fact((near, ""), f"switch.hash_against.{far}", relation, f"{where}; {seeds}")


def _of_watchdogs(facts: FleetFacts) -> Iterator[Fact]:
    """Yield of each host whether its queue pairs outlive the longest watchdog of the fleet."""
    restorations = [*facts.named("switch.pfcwd_restoration_ms")]
    if not restorations:
        return
    slowest = max(restorations, key=lambda fact: number_of(fact.value) or 0.0)
    detection = facts.of("switch.pfcwd_detection_ms", (slowest.node, slowest.device))
    silence_s = ((number_of(slowest.value) or 0.0) + (number_of(detection.value) or 0.0 if detection else 0.0)) / 1000
    for node in dict.fromkeys(fact.node for fact in facts.named("rdma.state")):
        spec, where = retransmission_of(facts, node)
        if spec is None:
            continue
        survives_s = predict_retransmission(spec, KNOWN_PROFILES[DEFAULT_PROFILE]).longest_flap_ns / 1e9
        told = f"{where}: {survives_s:.3g} s; {slowest.where}: {silence_s:.3g} s"
        yield _fact((node, ""), "job.survives_watchdog", "yes" if survives_s > silence_s else "no", told)


def retransmission_of(facts: FleetFacts, node: str) -> tuple[RetransmissionSpec | None, str]:
    """Return a host's settings of NCCL's timers and what says so; None for values that no adapter takes."""
    timeout, retries = (facts.of(name, (node, "")) for name in (TIMEOUT, RETRY_COUNT))
    exponent, count = (
        number_of(fact.value) if fact else float(default)
        for fact, default in ((timeout, NCCL_TIMEOUT), (retries, RETRIES))
    )
    where = "; ".join(fact.where for fact in (timeout, retries) if fact) or f"{node}: NCCL's defaults"
    if exponent is None or count is None or not (0 < exponent <= 31 and 1 <= count <= 7):
        return None, where
    return RetransmissionSpec(timeout_exponent=int(exponent), retries=int(count)), where


def pairs_of(value: Value) -> dict[int, int]:
    """Return the map of a fact such as `0=1,26=3`."""
    pairs = (pair.split("=") for pair in str(value).split(",") if "=" in pair)
    return {int(first): int(second) for first, second in pairs}


def _fact(device: Device, name: str, value: Value, where: str) -> Fact:
    return Fact(node=device[0], device=device[1], name=name, value=value, where=where)

"""The ladder of timeouts: what each layer waits before it acts, what must wait longer, and what a flap ends.

A layer's time comes from the nodes' own configuration where it is there, else from its documented default, which is
said. Queue pairs are as a ConnectX-6 was measured, or as a profile says. NCCL's port failover takes a failed port's
traffic to another NIC of a fused device, if there is one that works: its recovery then asks the port so often.

Source: rdma_bench/timers; SONiC, doc/Configuration.md (PFC_WD, BGP_NEIGHBOR); FRR, `bfd` and `timers bgp` (hold time
180 s); PyTorch, torch.distributed.init_process_group (10 min for NCCL) and TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC (480 s);
Slurm, slurm.conf(5) (SlurmdTimeout 300 s);
NVIDIA/nccl 2.30, src/transport/net_ib (NCCL_IB_RESILIENCY_*).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabrictune.fleet.facts.derived import retransmission_of
from fabrictune.fleet.facts.fact import Fact, FleetFacts, number_of
from fabrictune.rdma_bench.timers.prediction import predict_retransmission
from fabrictune.rdma_bench.timers.profiles import TimerProfile

BFD, WATCHDOG, FLAP, ERROR, FAILOVER, RECOVERY, BGP, GROUP, HEARTBEAT, SCHEDULER = (
    *("BFD detection", "PFC watchdog", "longest flap survived", "queue pair fails"),
    *("NCCL port failover", "NCCL port recovery gives up"),
    *("BGP hold time", "process group", "torch watchdog", "Slurm node timeout"),
)
DEFAULTS_S = {BGP: 180.0, GROUP: 600.0, HEARTBEAT: 480.0, SCHEDULER: 300.0}
ACTIONS = {
    BFD: "routes around the link",
    WATCHDOG: "drops or forwards for the detection and restoration time, then restores the queue",
    FLAP: "traffic resumes by itself up to here",
    ERROR: "NCCL ends the job with error 12, unless ports fail over",
    FAILOVER: "another NIC of a fused device carries the traffic",
    RECOVERY: "the port is used no more; before that it returns when it answers",
    BGP: "routes around the link, without BFD",
    GROUP: "ends the job: a collective timed out, without its cause",
    HEARTBEAT: "ends the process",
    SCHEDULER: "marks the node down and ends its jobs, where the link carries management",
}
FAILOVER_SETTING = "job.env.NCCL_IB_RESILIENCY_PORT_FAILOVER"
RECOVERY_SETTING = "job.env.NCCL_IB_RESILIENCY_PORT_RECOVERY"
FAILOVER_PROBE_MS, RECOVERY_START_MS, RECOVERY_ATTEMPTS = 10.0, 200.0, 5
RECOVERY_WAITS_MS = (("ALIVE_MSG_TIMEOUT", 4000.0), ("ACK_TIMEOUT", 5000.0))  # of an attempt
ORDER = (  # the first must be longer than the second, and why
    (FLAP, WATCHDOG, "else a pause storm that the switch recovers from ends the job"),
    (FLAP, BFD, "else the job fails before the fabric routes around the link"),
    (FLAP, BGP, "without BFD, else the job fails before the fabric routes around the link"),
    (GROUP, ERROR, "else the job ends without the error that names the link"),
    (HEARTBEAT, ERROR, "else the process ends without the error that names the link"),
    (GROUP, FAILOVER, "else the job ends before its traffic is on the other NIC"),
    (HEARTBEAT, FAILOVER, "else the process ends before its traffic is on the other NIC"),
    (SCHEDULER, FLAP, "else the scheduler ends a job that would have gone on"),
)


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One layer's time."""

    layer: str
    time_s: float
    where: str  # "" for an assumption
    assumed: str = ""


@dataclass(frozen=True, kw_only=True)
class Disorder:
    """Two layers in the wrong order."""

    longer: Rung  # should be
    shorter: Rung
    reason: str


def build_ladder(facts: FleetFacts, profile: TimerProfile, *, group_timeout_s: float | None = None) -> tuple[Rung, ...]:
    """Return the rungs, the shortest first; of several nodes the one that makes things worst."""
    rungs = [*_switch_rungs(facts), *_adapter_rungs(facts, profile)]
    given = {GROUP: group_timeout_s}
    heartbeat = _extreme(facts, "job.env.TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", largest=False)
    slurm = _extreme(facts, "job.slurmd_timeout_s", largest=False)
    hold = _extreme(facts, "switch.bgp_hold_s", largest=True)
    for layer, fact in ((BGP, hold), (GROUP, None), (HEARTBEAT, heartbeat), (SCHEDULER, slurm)):
        if given.get(layer) is not None:
            rungs.append(Rung(layer=layer, time_s=float(given[layer] or 0), where="--group-timeout"))
        elif fact is not None:
            rungs.append(Rung(layer=layer, time_s=number_of(fact.value) or 0.0, where=fact.where))
        else:
            rungs.append(Rung(layer=layer, time_s=DEFAULTS_S[layer], where="", assumed="default"))
    return tuple(sorted(rungs, key=lambda rung: rung.time_s))


def find_disorders(rungs: Sequence[Rung]) -> Iterator[Disorder]:
    """Yield the pairs that stand in the wrong order; BGP's hold time only counts where there is no BFD."""
    of_layer = {rung.layer: rung for rung in rungs}
    for longer, shorter, reason in ORDER:
        if longer not in of_layer or shorter not in of_layer or (shorter == BGP and BFD in of_layer):
            continue
        if of_layer[longer].time_s <= of_layer[shorter].time_s:
            yield Disorder(longer=of_layer[longer], shorter=of_layer[shorter], reason=reason)


def ended_by(rungs: Sequence[Rung], flap_s: float) -> Rung | None:
    """Return the layer that first ends the job in a flap of the job's link, None where it goes on.

    A link that is down longer than the longest flap that is survived ends queue pairs, whenever that shows; with port
    failover that does not end the job. The scheduler's network is taken to be another.
    """
    of_layer = {rung.layer: rung for rung in rungs}
    candidates = [rung for rung in rungs if rung.layer in (GROUP, HEARTBEAT) and rung.time_s < flap_s]
    if FLAP in of_layer and flap_s > of_layer[FLAP].time_s and ERROR in of_layer and FAILOVER not in of_layer:
        candidates.append(of_layer[ERROR])
    return min(candidates, key=lambda rung: rung.time_s, default=None)


def _switch_rungs(facts: FleetFacts) -> Iterator[Rung]:
    if bfd := _extreme(facts, "switch.bfd_detection_s", largest=True):
        yield Rung(layer=BFD, time_s=number_of(bfd.value) or 0.0, where=bfd.where)
    restoration = _extreme(facts, "switch.pfcwd_restoration_ms", largest=True)
    if restoration is not None:
        detection = facts.of("switch.pfcwd_detection_ms", (restoration.node, restoration.device))
        total_ms = (number_of(restoration.value) or 0.0) + ((number_of(detection.value) or 0.0) if detection else 0.0)
        yield Rung(layer=WATCHDOG, time_s=total_ms / 1000, where=restoration.where)


def _adapter_rungs(facts: FleetFacts, profile: TimerProfile) -> Iterator[Rung]:
    hosts = dict.fromkeys(fact.node for fact in facts.named("rdma.state"))
    settings = [(spec, where) for spec, where in (retransmission_of(facts, node) for node in hosts) if spec]
    usable = [(spec, where) for spec, where in settings if spec.retries >= profile.timers.fewest_retries]
    predictions = [(predict_retransmission(spec, profile), where) for spec, where in usable]
    if predictions:
        shortest, where = min(predictions, key=lambda one: one[0].gives_up_ns)
        assumed = f"timers of {profile.name}"
        yield Rung(layer=FLAP, time_s=shortest.longest_flap_ns / 1e9, where=where, assumed=assumed)
        error = Rung(layer=ERROR, time_s=shortest.gives_up_ns / 1e9, where=where, assumed=assumed)
        yield error
        yield from _failover_rungs(facts, list(hosts), error)


def _failover_rungs(facts: FleetFacts, hosts: Sequence[str], error: Rung) -> Iterator[Rung]:
    """Yield when traffic is on another NIC, and when recovery ends, where all hosts have failover on."""
    if not _is_on(facts, hosts, FAILOVER_SETTING):
        return
    switched_s = error.time_s + _setting_s(facts, f"{FAILOVER_SETTING}_PROBE_DELAY", FAILOVER_PROBE_MS)
    where = next(facts.named(FAILOVER_SETTING)).where
    assumed = f"{error.assumed}; a fused device with another NIC that works"
    yield Rung(layer=FAILOVER, time_s=switched_s, where=where, assumed=assumed)
    if _is_on(facts, hosts, RECOVERY_SETTING):
        attempts = _extreme(facts, f"{RECOVERY_SETTING}_ATTEMPTS_MAX", largest=False)
        number = RECOVERY_ATTEMPTS if attempts is None else number_of(attempts.value) or 0.0
        waits_s = (_setting_s(facts, f"{RECOVERY_SETTING}_{name}", default) for name, default in RECOVERY_WAITS_MS)
        begin_s = _setting_s(facts, f"{RECOVERY_SETTING}_START_DELAY", RECOVERY_START_MS)
        ends_s = switched_s + begin_s + number * sum(waits_s)
        yield Rung(layer=RECOVERY, time_s=ends_s, where=next(facts.named(RECOVERY_SETTING)).where, assumed=assumed)


def _is_on(facts: FleetFacts, hosts: Sequence[str], setting: str) -> bool:
    values = {fact.node: number_of(fact.value) for fact in facts.named(setting)}
    return bool(hosts) and all((values.get(host) or 0) > 0 for host in hosts)


def _setting_s(facts: FleetFacts, setting: str, default_ms: float) -> float:
    """Return a setting in milliseconds, or its default, in seconds; of several hosts the largest."""
    fact = _extreme(facts, setting, largest=True)
    return (default_ms if fact is None else number_of(fact.value) or 0.0) / 1000


def _extreme(facts: FleetFacts, name: str, *, largest: bool) -> Fact | None:
    numbers = [(number, fact) for fact in facts.named(name) if (number := number_of(fact.value)) is not None]
    if not numbers:
        return None
    return (max if largest else min)(numbers, key=lambda one: one[0])[1]

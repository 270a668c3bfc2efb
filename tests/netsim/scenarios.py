"""Small random runs: fabric, queue pairs, transfers, configuration and law, all drawn from one number."""

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.foundation.rocev2 import WIRE_OVERHEAD_BYTES
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.config.adaptive_routing import ArsConfig
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.faults import BitErrors, Fault, Flap, LinkDown, SlowPort, SwitchDown
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig, WatchdogConfig
from fabrictune.netsim.config.transport import CnpConfig, RnrConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.faults.timeline import FaultInterval, changes, down_ports, fault_intervals
from fabrictune.netsim.workloads.table import one_message_each
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.netsim import windowed_law

DCQCN_SETTINGS: dict[str, float] = {
    "decrease_interval_ps": 4_000_000,
    "rate_timer_ps": 10_000_000,
    "byte_counter_bytes": 20_000,
}
LAWS: dict[str, tuple[ModuleType, dict[str, float]]] = {
    "none": (load_law("none"), {}),
    "dcqcn": (load_law("dcqcn"), DCQCN_SETTINGS),
    "hpcc": (load_law("hpcc"), {}),
    "hybrid": (load_law("hybrid"), {"queue_target_ps": 0, "flow_scaling_range_ps": 100_000}),  # windows below a packet
    "windowed": (windowed_law, {}),
    "nscc": (load_law("nscc"), {}),
}
RANDOM_LAWS = ("none", "dcqcn", "hpcc", "hybrid", "windowed")
COMPILED: dict[str, CompiledLaw] = {name: compile_law(module, settings) for name, (module, settings) in LAWS.items()}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One run's inputs."""

    network: Network
    traffic: TrafficTrace
    config: PacketConfig
    law: str
    seed: int
    faults: tuple[FaultInterval, ...] = ()


def random_scenario(seed: int) -> Scenario:
    """Return a small run with whatever features the dice give it."""
    dice = np.random.default_rng(seed)
    network = random_network(random_fabric(dice, is_dual=seed % 5 == 0), dice)
    traffic = relayed(random_traffic(len(network.queue_pairs), dice), np.random.default_rng([seed, 5]))
    config = random_config(seed, dice)
    if seed % 2:
        network, traffic, config = with_priorities(network, config, np.random.default_rng([seed, 4]))
    faults, network = random_faults(network, config, np.random.default_rng([seed, 3]))
    return Scenario(
        network=network,
        traffic=traffic,
        config=config,
        faults=faults,
        law=str(dice.choice(RANDOM_LAWS)),
        seed=seed,
    )


def random_fabric(dice: np.random.Generator, *, is_dual: bool) -> Fabric:
    """Return a fat tree of 2 or 16 hosts, or four hosts whose NICs each have a port on two ToRs."""
    radix, rate_bps = int(dice.choice([2, 4, 4, 4])), int(dice.choice([40, 100, 300, 400])) * 10**9
    cable_mm = int(dice.choice([0, 2_000, 100_000]))
    if not is_dual:
        return build_fat_tree(FatTreeSpec(radix=radix, link_rate_bps=rate_bps, cable_mm=cable_mm))
    return build_clos(
        ClosSpec(
            num_hosts=4,
            hosts_per_tor_set=2,
            nics_per_host=1,
            ports_per_nic=2,
            tiers=2,
            nic_rate_bps=rate_bps,
            uplink_rate_bps=rate_bps,
            downlink_split=1,
            uplinks_per_tor=2,
            host_cable_mm=cable_mm,
            tor_cable_mm=cable_mm,
        )
    )


def inputs_of(
    scenario: Scenario, probe: ProbeConfig | None = None, capture: CaptureConfig | None = None
) -> EngineInputs:
    """Return the scenario as an engine reads it."""
    return make_engine_inputs(
        scenario.network,
        scenario.traffic,
        COMPILED[scenario.law],
        scenario.config,
        seed=scenario.seed,
        probe=probe,
        capture=capture,
        faults=scenario.faults,
    )


def random_network(fabric: Fabric, dice: np.random.Generator) -> Network:
    """Return 1 to 12 queue pairs from random NICs to one or two, so that they meet."""
    num_pairs = int(dice.integers(1, 13))
    destination_Q = dice.choice([0, fabric.num_nics // 2], num_pairs)
    source_Q = (destination_Q + dice.integers(1, fabric.num_nics, num_pairs)) % fabric.num_nics
    return build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec())


def random_traffic(num_pairs: int, dice: np.random.Generator) -> TrafficTrace:
    """Return up to 30 transfers of up to 60 packets, each depending on some before it."""
    num_rows = int(dice.integers(1, 31))
    medium_N = dice.choice([Medium.FABRIC, Medium.FABRIC, Medium.FABRIC, Medium.NVLINK, Medium.NONE], num_rows)
    waits = [_some_before(row, dice) if dice.integers(2) else [] for row in range(num_rows)]
    return TrafficTrace(
        source_N=np.zeros(num_rows, np.int64),
        destination_N=np.zeros(num_rows, np.int64),
        medium_N=medium_N.astype(np.int64),
        qp_N=np.where(medium_N == Medium.FABRIC, dice.integers(0, num_pairs, num_rows), UNKNOWN),
        bytes_N=dice.choice([0, 1, 999, 1000, 1001, 20_000, 60_000], num_rows),
        start_ps_N=dice.choice([0, 0, 1_000_000], num_rows),
        delay_ps_N=dice.choice([0, 0, 500_000], num_rows),
        operation_N=np.full(num_rows, UNKNOWN, np.int64),
        dependencies=Dependencies.from_lists(waits),
    )


def relayed(traffic: TrafficTrace, dice: np.random.Generator) -> TrafficTrace:
    """Return, in a third of cases, transfers of which some reach their NIC over NVLink."""
    is_relayed_N = (
        (traffic.medium_N == Medium.FABRIC) & (dice.integers(3, size=len(traffic)) == 0) & (dice.integers(3) == 0)
    )
    gpu_N = dice.integers(0, 2, len(traffic))
    return replace(
        traffic,
        relayed_from_N=np.where(is_relayed_N, gpu_N, UNKNOWN),
        relayed_to_N=np.where(is_relayed_N, 1 - gpu_N, UNKNOWN),
    )


def _some_before(row: int, dice: np.random.Generator) -> list[int]:
    return sorted(set(dice.integers(0, row, 2).tolist())) if row else []


def random_config(seed: int, dice: np.random.Generator) -> PacketConfig:
    """Return a configuration in which queues fill, marks and pauses happen, and sometimes packets are lost.

    In half of the cases a frame is 1000 B, so that queues meet thresholds exactly.
    """
    return PacketConfig(
        mtu_bytes=1000,
        wire_overhead_bytes=int(np.random.default_rng([seed, 5]).choice([0, WIRE_OVERHEAD_BYTES])),
        ack_every_packets=int(dice.choice([1, 1, 3])),
        ecn=EcnConfig(enabled=bool(dice.integers(2)), kmin_bytes=2_000, kmax_bytes=8_000, pmax_fraction=0.5),
        pfc=PfcConfig(
            enabled=bool(dice.integers(4)),
            buffer_bytes=12_000,
            xoff_bytes=5_000,
            headroom_bytes=int(dice.choice([1_000, 400_000])),
            response_ns=int(dice.choice([0, 100])),
        ),
        cnp=CnpConfig(interval_ns=int(dice.choice([0, 500])), handling_delay_ns=int(dice.choice([0, 0, 700, 5_000]))),
        transport=replace(
            random_transport(np.random.default_rng([seed, 2])), timeout_ns=int(dice.choice([30_000, 200_000]))
        ),
        loss_fraction=float(dice.choice([0.0, 0.0, 0.0, 0.0, 0.02, 0.3])),
        time_limit_ns=int(dice.choice([20_000, 10**8])),
        path_choice=random_path_choice(np.random.default_rng([seed, 1])),
        nic=random_nic(np.random.default_rng([seed, 3])),
        host=random_host(np.random.default_rng([seed, 7])),
        queues=QueuesConfig(acknowledgement_class=np.random.default_rng([seed, 6]).choice(["control", "data"])),
    )


def random_host(dice: np.random.Generator) -> HostConfig:
    """Return PCIe that limits nothing in three quarters of the cases, else one slower or faster than the NICs."""
    return HostConfig(
        pcie_generation=dice.choice(np.array([None] * 9 + [3, 4, 5], object)),
        pcie_lanes=int(dice.choice([4, 8, 16])),
        memory=dice.choice(["gpu", "cpu"]),
        nics_per_gpu=int(dice.choice([1, 2])),
        nics_per_switch=int(dice.choice([1, 4])),
    )


def with_trimming(scenario: Scenario, law: str) -> Scenario:
    """Return a scenario under another law, with switches that trim and senders that repeat alone.

    Of priorities the first is lossy, and takes what is trimmed; without any there is no PFC.
    """
    dice, config = np.random.default_rng([scenario.seed, 6]), scenario.config
    trimming = TrimmingConfig(
        enabled=True,
        threshold_bytes=int(dice.choice([1_100, 3_000, 6_000])),
        last_hop_threshold_bytes=dice.choice(np.array([None, 2_000], object)),
        trimmed_bytes=int(dice.choice([60, 300])),
    )
    transport = replace(config.transport, reliability="selective-repeat", window_packets=int(dice.choice([7, 1024])))
    pfc = replace(config.pfc, enabled=False, buffer_bytes=int(dice.choice([4_000, 100_000])))
    queues = config.queues
    if queues.priorities:
        first, *others = queues.priorities
        queues = replace(queues, priorities=(replace(first, lossless=False), *others))
        trimming, pfc = replace(trimming, priority=first.priority), config.pfc
    config = replace(config, queues=queues, trimming=trimming, transport=transport, pfc=pfc)
    return replace(scenario, law=law, config=config)


def random_nic(dice: np.random.Generator) -> NicConfig:
    """Return hosts that take and answer packets at once in half of the cases, and slow ones in the others."""
    if dice.integers(2):
        return NicConfig()
    drain_rate_bps = dice.choice(np.array([None, 7 * 10**9, 90 * 10**9], object))
    return NicConfig(
        drain_rate_bps=drain_rate_bps,
        slow_hosts=("host0",) if drain_rate_bps and dice.integers(2) else (),
        receive_buffer_bytes=12_000,
        xoff_bytes=5_000,
        endpoint_delay_ns=int(dice.choice([0, 300])),
        endpoint_jitter_ns=int(dice.choice([0, 900])),
    )


def random_transport(dice: np.random.Generator) -> TransportConfig:
    """Return go-back-N in half of the cases, and selective repeat with any window in the others."""
    return TransportConfig(
        reliability=dice.choice(["go-back-n", "selective-repeat"]),
        window_packets=int(dice.choice([1, 7, 1024])),
        reorder_window_ns=dice.choice(np.array([None, 0, 300, 5_000], object)),
        retries=3,
        rnr=RnrConfig(
            receives=dice.choice(np.array([None, None, None, 1, 3], object)),
            replenish_ns=int(dice.choice([0, 3_000, 50_000])),
            timer_code=int(dice.choice([1, 4])),
            retries=int(dice.choice([0, 2, 7])),
        ),
    )


def random_faults(
    network: Network, config: PacketConfig, dice: np.random.Generator
) -> tuple[tuple[FaultInterval, ...], Network]:
    """Return no faults in half of the cases, else one of each kind; in half of these routing converges on new paths."""
    if dice.integers(2):
        return (), network
    fabric = network.fabric
    used = np.unique(network.epochs[0].port_QDH)[1:]
    used_nodes = np.unique(fabric.port_node_P[used])
    switches = [fabric.node_name_N[node] for node in used_nodes[fabric.node_kind_N[used_nodes] == NodeKind.SWITCH]]
    names = [fabric.port_label(int(port)) for port in dice.choice(used, 4)]
    at_ns = dice.integers(0, 12_000, 5).tolist()
    lengths_ns = dice.integers(1, 30_000, 5).tolist()
    until_ns = [at + length for at, length in zip(at_ns, lengths_ns, strict=True)]
    choices: list[Fault] = [
        LinkDown(link=names[0], at_ns=at_ns[0], until_ns=until_ns[0]),
        Flap(link=names[1], at_ns=at_ns[1], down_ns=700, period_ns=3_000, count=4),
        BitErrors(link=names[2], at_ns=at_ns[2], ber_fraction=2e-5, until_ns=until_ns[2]),
        SlowPort(port=names[3], at_ns=at_ns[3], rate_bps=7 * 10**9, until_ns=until_ns[3]),
        SwitchDown(switch=str(dice.choice(switches)), at_ns=at_ns[4], until_ns=until_ns[4]),
    ]
    faults = fault_intervals(
        fabric, _without_contradiction([choices[row] for row in sorted(set(dice.integers(0, 5, 3)))]), config
    )
    if dice.integers(2):
        states = down_ports(changes(fabric, faults))
        return faults, follow_failures(network, HashSpec(), states, delay_ps=int(dice.choice([1, 2_000_000])))
    return faults, network


def _without_contradiction(faults: list[Fault]) -> list[Fault]:
    """Return the faults less a flap beside a link that is down, which may be the same link."""
    has_link_down = any(isinstance(fault, LinkDown) for fault in faults)
    return [fault for fault in faults if not (has_link_down and isinstance(fault, Flap))]


def random_path_choice(dice: np.random.Generator) -> PathChoiceConfig:
    """Return fixed paths in half of the cases, and any way to choose in the others."""
    return PathChoiceConfig(
        mode=dice.choice(["hash"] * 4 + ["spray", "flowlet", "adaptive", "weighted", "ars", "entropy"]),
        spray=dice.choice(["random", "round-robin"]),
        gap_ns=int(dice.choice([1, 200, 2_000])),
        flowlet_port=dice.choice(["random", "least-queue"]),
        ties=dice.choice(["random", "first"]),
        queue_step_bytes=int(dice.choice([1, 3_000])),
        queue_levels=int(dice.choice([2, 8])),
        weights=dice.choice(["rate", "links"]),
        acknowledgements=dice.choice(["hash", "same"]),
        ars=random_ars(dice),
        entropy=dice.choice(["random", "reps", "reps"]),
        entropy_values=int(dice.choice([1, 5, 64])),
        freeze_ns=int(dice.choice([0, 3_000, 50_000])),
    )


def random_ars(dice: np.random.Generator) -> ArsConfig:
    """Return adaptive routing whose samples, bands and flowlets are short enough to matter in a small run."""
    return ArsConfig(
        assign_mode=dice.choice(["per_flowlet_quality", "per_packet"]),
        flowlet_idle_time_ns=int(dice.choice([1, 200, 2_000])),
        max_flows=int(dice.choice([1, 3, 512])),
        sampling_interval_ns=int(dice.choice([1, 100, 1_000])),
        past_load_weight=int(dice.choice([0, 1, 16])),
        past_load_max_fraction=float(dice.choice([0.4, 1.0])),
        future_load_weight=int(dice.choice([1, 16])),
        future_load_min_bytes=int(dice.choice([0, 1_000])),
        future_load_max_bytes=int(dice.choice([3_000, 10_000])),
        load_exponent=int(dice.choice([0, 2, 8])),
        load_current=bool(dice.integers(2)),
        quantization_bands=int(dice.choice([2, 8])),
    )


def with_priorities(
    network: Network, config: PacketConfig, dice: np.random.Generator
) -> tuple[Network, TrafficTrace, PacketConfig]:
    """Return queue pairs of one to three priorities that all send at once, and buffers of any kind to meet in."""
    numbers = [int(number) for number in dice.permutation(8)[: dice.integers(1, 4)]]
    queues = QueuesConfig(
        priorities=tuple(_random_priority(number, dice) for number in numbers),
        acknowledgements=_one_of(dice, None, numbers[0]),
        cnp=_one_of(dice, None, numbers[-1]),
    )
    watchdog = WatchdogConfig(
        detect_ns=_one_of(dice, 100, 1_000), restore_ns=1_000, action=_one_of(dice, "drop", "forward")
    )
    pfc = replace(
        config.pfc,
        xoff_bytes=2_500,
        quanta=_one_of(dice, None, 20, 500),
        refresh=_one_of(dice, True, True, False),
        watchdog=_one_of(dice, None, watchdog, watchdog),
    )
    size_bytes, pool_bytes = _one_of(dice, None, 20_000, 5_000_000), _one_of(dice, 2_000, 8_000)
    offset_bytes = _one_of(dice, None, 1)
    buffer = BufferConfig()
    if size_bytes is not None:
        buffer = BufferConfig(size_bytes=size_bytes, headroom_pool_bytes=pool_bytes, resume_offset_bytes=offset_bytes)
    num_pairs = int(dice.integers(4, 13))
    nic_Q = dice.permutation(np.resize(np.arange(network.fabric.num_nics), num_pairs))
    pairs, traffic = one_message_each(nic_Q, np.where(nic_Q == 0, 1, 0), _one_of(dice, 3_000, 20_000))
    pairs = replace(pairs, priority_Q=dice.choice(numbers, num_pairs))
    network = build_network(network.fabric, pairs, HashSpec())
    ecn = replace(config.ecn, not_capable=_one_of(dice, "queue", "drop"))
    nic = replace(config.nic, ecn_capable=_one_of(dice, "data", "data", "acknowledgements", "all"))
    return network, traffic, replace(config, queues=queues, pfc=pfc, buffer=buffer, ecn=ecn, nic=nic)


def _random_priority(number: int, dice: np.random.Generator) -> PriorityConfig:
    return PriorityConfig(
        priority=number,
        weight=_one_of(dice, 0, 1, 3),
        lossless=_one_of(dice, True, True, True, False),
        alpha=_one_of(dice, 0.125, 1.0, 8.0),
        reserve_bytes=_one_of(dice, 0, 700),
        ecn=_one_of(dice, None, EcnConfig(kmin_bytes=500, kmax_bytes=1_500, pmax_fraction=0.8, not_capable="drop")),
    )


def _one_of(dice: np.random.Generator, *values: Any) -> Any:
    return values[dice.integers(len(values))]

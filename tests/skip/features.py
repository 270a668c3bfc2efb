"""Random runs that repeat and have what only the full engine has: priorities, pauses, hosts that take time, faults.

Each is a run of `tests.skip.runs` with some features more, each with a chance of its own.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.faults import BitErrors, Fault, LinkDown, SlowPort
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig, WatchdogConfig
from fabrictune.netsim.config.transport import RnrConfig
from fabrictune.netsim.faults.timeline import changes, down_ports, fault_intervals
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.hashing import HashSpec
from tests.skip.runs import LAWS, Run, random_run

Dice = np.random.Generator


def featured_run(seed: int) -> Run:
    """Return a random run with one to three features, under any law."""
    dice = np.random.default_rng([seed, 57])
    run = random_run(seed)
    if dice.integers(2):
        run = replace(run, law=str(dice.choice(list(LAWS))))
    for place in dice.permutation(len(FEATURES))[: int(dice.integers(1, 4))]:
        run = FEATURES[place](run, dice)
    return run


def with_priorities(run: Run, dice: Dice) -> Run:
    """Return it with pairs of one to three priorities, strict or weighted, perhaps over shared buffers."""
    if run.config.trimming.enabled:
        return run
    numbers = [int(number) for number in dice.permutation(8)[: dice.integers(1, 4)]]
    rules = tuple(
        PriorityConfig(
            priority=number,
            weight=int(dice.choice([0, 1, 3])),
            lossless=bool(dice.integers(4)),
            alpha=float(dice.choice([0.125, 1.0, 8.0])),
            reserve_bytes=int(dice.choice([0, 3_000])),
            ecn=EcnConfig(kmin_bytes=20_000, kmax_bytes=90_000, pmax_fraction=0.1, not_capable="drop")
            if dice.integers(2)
            else None,
        )
        for number in numbers
    )
    own = [None, numbers[0], numbers[-1]]
    queues = QueuesConfig(priorities=rules, acknowledgements=own[dice.integers(3)], cnp=own[dice.integers(3)])
    pairs = run.network.queue_pairs
    pairs = replace(pairs, priority_Q=dice.choice(numbers, len(pairs)))
    pfc = replace(
        run.config.pfc,
        quanta=[None, None, 300, 65_535][dice.integers(4)],
        refresh=bool(dice.integers(4)),
        watchdog=None if dice.integers(3) else WatchdogConfig(detect_ns=100_000, restore_ns=200_000),
    )
    if dice.integers(2):
        pfc = replace(pfc, xoff_bytes=40_000)
    buffer = BufferConfig()
    if dice.integers(2):
        size_bytes = int(dice.choice([12_000_000, 30_000_000]))
        buffer = BufferConfig(size_bytes=size_bytes, headroom_pool_bytes=[None, 400_000][dice.integers(2)])
        pfc = replace(pfc, buffer_bytes=300_000)
    config = replace(run.config, queues=queues, pfc=pfc, buffer=buffer)
    return replace(run, network=replace(run.network, queue_pairs=pairs), config=config)


def with_selective_repeat(run: Run, dice: Dice) -> Run:
    """Return it with senders that repeat only what is lost."""
    transport = replace(
        run.config.transport,
        reliability="selective-repeat",
        window_packets=int(dice.choice([16, 300, 4_096])),
        reorder_window_ns=[None, 0, 5_000][dice.integers(3)],
    )
    return replace(run, config=replace(run.config, transport=transport))


def with_slow_hosts(run: Run, dice: Dice) -> Run:
    """Return it with hosts that take packets at a rate, answer after a delay, or both."""
    drain_rate_bps = [None, 70 * 10**9, 150 * 10**9, 410 * 10**9][dice.integers(4)]
    nic = NicConfig(
        drain_rate_bps=drain_rate_bps,
        slow_hosts=("host0",) if drain_rate_bps and dice.integers(2) else (),
        receive_buffer_bytes=100_000,
        xoff_bytes=50_000,
        endpoint_delay_ns=int(dice.choice([0, 300, 4_000])),
        endpoint_jitter_ns=0 if dice.integers(8) else 500,
    )
    return replace(run, config=replace(run.config, nic=nic))


def with_pcie(run: Run, dice: Dice) -> Run:
    """Return it with PCIe between NICs and memory."""
    host = HostConfig(pcie_generation=int(dice.choice([4, 5, 6])), pcie_lanes=int(dice.choice([8, 16])))
    return replace(run, config=replace(run.config, host=host))


def with_few_receives(run: Run, dice: Dice) -> Run:
    """Return it with receivers that are not always ready."""
    rnr = RnrConfig(
        receives=int(dice.choice([1, 2, 50])), replenish_ns=int(dice.choice([0, 2_000, 30_000])), timer_code=1
    )
    return replace(run, config=replace(run.config, transport=replace(run.config.transport, rnr=rnr)))


def with_trimming(run: Run, dice: Dice) -> Run:
    """Return it with switches that trim."""
    if run.config.queues.priorities or run.capture:
        return run
    run = with_selective_repeat(run, dice)
    trimming = TrimmingConfig(enabled=True, threshold_bytes=int(dice.choice([20_000, 200_000])))
    pfc = PfcConfig(enabled=False, buffer_bytes=400_000)
    return replace(run, config=replace(run.config, trimming=trimming, pfc=pfc))


def with_acknowledgements_in_data(run: Run, dice: Dice) -> Run:
    """Return it with acknowledgements in the class of data."""
    if run.config.queues.priorities or run.config.trimming.enabled:
        return run
    return replace(run, config=replace(run.config, queues=QueuesConfig(acknowledgement_class="data")))


def with_path_choice(run: Run, dice: Dice) -> Run:
    """Return it with switches that choose paths by entropy, by weights, or as exact skip does not know."""
    choice = PathChoiceConfig(
        mode=["entropy", "entropy", "weighted", "spray"][dice.integers(4)],  # type: ignore[arg-type]
        entropy=["random", "reps", "reps"][dice.integers(3)],  # type: ignore[arg-type]
        entropy_values=int(dice.choice([1, 2, 64])),
        acknowledgements=["hash", "same"][dice.integers(2)],  # type: ignore[arg-type]
    )
    run = with_selective_repeat(run, dice)
    return replace(run, config=replace(run.config, path_choice=choice))


def with_loss(run: Run, dice: Dice) -> Run:
    """Return it with wires that lose packets."""
    return replace(run, config=replace(run.config, loss_fraction=float(dice.choice([1e-4, 1e-2]))))


def with_capture(run: Run, dice: Dice) -> Run:
    """Return it with a capture of some pairs or all."""
    if run.config.trimming.enabled:
        return run
    rows = tuple(range(len(run.network.queue_pairs)))
    return replace(
        run,
        capture=CaptureConfig(
            flows=rows if dice.integers(2) else tuple(sorted(set(dice.choice(rows, 2).tolist()))),
            at=["sender", "receiver", "tor0:up0", "tor0:down0"][dice.integers(4)] if dice.integers(2) else "receiver",
            max_packets=int(dice.choice([100, 10_000])),
        ),
    )


def with_faults(run: Run, dice: Dice) -> Run:
    """Return it with one or two faults, in half of the cases with new paths around them."""
    fabric = run.network.fabric
    used = np.unique(run.network.epochs[0].port_QDH)[1:]
    names = [fabric.port_label(int(port)) for port in dice.choice(used, 3)]
    latest_ns = min(run.config.time_limit_ns or 300_000, 300_000)
    at_ns, lengths_ns = dice.integers(0, latest_ns, 3).tolist(), dice.integers(1_000, 200_000, 3).tolist()
    until_ns = [at + length for at, length in zip(at_ns, lengths_ns, strict=True)]
    choices: list[Fault] = [
        LinkDown(link=names[0], at_ns=at_ns[0], until_ns=until_ns[0]),
        BitErrors(link=names[1], at_ns=at_ns[1], ber_fraction=1e-7, until_ns=until_ns[1]),
        SlowPort(port=names[2], at_ns=at_ns[2], rate_bps=30 * 10**9, until_ns=until_ns[2]),
    ]
    chosen = [choices[row] for row in sorted(set(dice.integers(0, 3, 2).tolist()))]
    faults = fault_intervals(fabric, chosen, run.config)
    network = run.network
    if dice.integers(2):
        states = down_ports(changes(fabric, faults))
        network = follow_failures(network, HashSpec(), states, delay_ps=int(dice.choice([1, 20_000_000])))
    return replace(run, network=network, faults=faults)


FEATURES: tuple[Callable[[Run, Dice], Run], ...] = (
    with_priorities,
    with_selective_repeat,
    with_slow_hosts,
    with_pcie,
    with_few_receives,
    with_trimming,
    with_acknowledgements_in_data,
    with_path_choice,
    with_loss,
    with_capture,
    with_faults,
)

"""Results of faults: their tables, dropped packets, aborted queue pairs, and findings about these."""

from collections.abc import Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.simulation import ABORTED_QUEUE_PAIRS, FAULT_DROPS, FAULT_NEVER_BEGAN
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.foundation.retransmission import RNR_RETRIES_FOREVER
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import format_duration, format_fraction
from fabrictune.netsim import _engine
from fabrictune.netsim.config.faults import FAULTS, Fault, SlowPort, SwitchDown
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.faults.timeline import END_OF_TIME_PS, FaultInterval
from fabrictune.netsim.outcome import Outcome
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.lookup import find_port
from fabrictune.topology.network import Network

NEVER_ENDED = -1
MAX_NAMED = 10
BIT_PS = 8 * 10**12
CAUSES = {"link_down": "link down", "no_route": "no route", "bit_error": "bit error"}

_KINDS: Mapping[type, str] = {spec: name for name, spec in FAULTS.items()}


def fault_tables(
    fabric: Fabric, faults: Sequence[Fault], intervals: Sequence[FaultInterval], simulation: _engine.Simulation
) -> dict[str, Columns]:
    """Return the tables `faults`, `goodput` and `drops`, none in a run without faults."""
    if not faults:
        return {}
    goodput = _Goodput(simulation)
    return {
        "faults": _fault_table(fabric, faults, intervals, goodput),
        "goodput": goodput.spans(),
        "drops": _drop_table(simulation),
    }


def check_faults(outcome: Outcome, faults: Sequence[Fault], intervals: Sequence[FaultInterval]) -> CheckReport:
    """Return the checks of queue pairs without retries left, of packets lost to faults, and of faults never begun."""
    network, tables, end_ps = outcome.network, outcome.tables, outcome.run["end_ps"]
    aborted = run_check(
        ABORTED_QUEUE_PAIRS.id,
        f"{len(network.queue_pairs):,} queue pairs",
        [_aborted(network, tables["aborts"], faults, intervals, outcome.config)],
        expected="an answer before the retries are used",
        actual="no queue pair failed",
    )
    if not faults:
        return aborted
    subject = f"{len(faults):,} faults"
    return join_reports(
        aborted,
        run_check(
            FAULT_DROPS.id,
            subject,
            [_lost_to_faults(outcome)],
            expected="no packet lost",
            actual="no packet lost",
        ),
        run_check(
            FAULT_NEVER_BEGAN.id,
            subject,
            [_never_began(network.fabric, faults, intervals, end_ps)],
            expected="faults that begin before the run ends",
            actual=f"all began before {format_duration(end_ps)}",
        ),
    )


def describe_fault(fabric: Fabric, fault: Fault) -> str:
    """Return kind and place of a fault for people."""
    if isinstance(fault, SwitchDown):
        return f"switch_down {fault.switch}"
    name = fault.port if isinstance(fault, SlowPort) else fault.link
    return f"{_KINDS[type(fault)]} {fabric.link_label(find_port(fabric, name, where='faults'))}"


def _fault_table(
    fabric: Fabric, faults: Sequence[Fault], intervals: Sequence[FaultInterval], goodput: "_Goodput"
) -> Columns:
    of_fault = [[interval for interval in intervals if interval.fault == row] for row in range(len(faults))]
    begin_ps = np.array([own[0].begin_ps for own in of_fault], np.int64)
    end_ps = np.array([own[-1].end_ps for own in of_fault], np.int64)
    return {
        "fault": np.arange(len(faults)),
        "description": np.array([describe_fault(fabric, fault) for fault in faults], object),
        "begin_ps": begin_ps,
        "end_ps": np.where(end_ps == END_OF_TIME_PS, NEVER_ENDED, end_ps),
        "times": np.array([len(own) for own in of_fault], np.int64),
        "goodput_before_bps": goodput.between(np.zeros_like(begin_ps), begin_ps),
        "goodput_during_bps": goodput.between(begin_ps, end_ps),
        "goodput_after_bps": goodput.between(end_ps, np.full_like(end_ps, END_OF_TIME_PS)),
    }


class _Goodput:
    """Acknowledged bytes over time, exact where a fault begins or ends."""

    def __init__(self, simulation: _engine.Simulation) -> None:
        milestones = simulation.milestone_columns()
        self.end_ps = simulation.now_ps
        self.time_ps = np.array([0, *milestones["time_ps"], self.end_ps], np.float64)
        self.bytes = np.array([0, *milestones["acknowledged_bytes"], simulation.acknowledged_bytes], np.float64)

    def spans(self) -> Columns:
        """Return the table `goodput`."""
        time_ps = np.unique(np.minimum(self.time_ps, self.end_ps)).astype(np.int64)
        begin_ps, end_ps = time_ps[:-1], time_ps[1:]
        return {"begin_ps": begin_ps, "end_ps": end_ps, "goodput_bps": self.between(begin_ps, end_ps)}

    def between(self, begin_ps: IntArray, end_ps: IntArray) -> IntArray:
        """Return the goodput of all queue pairs in bits a second; -1 where the interval lies outside the run."""
        begin, end = np.minimum(begin_ps, self.end_ps), np.minimum(end_ps, self.end_ps)
        gained = np.interp(end, self.time_ps, self.bytes) - np.interp(begin, self.time_ps, self.bytes)
        rate = np.divide(gained * BIT_PS, end - begin, out=np.full(len(begin), -1.0), where=end > begin)
        rate_bps: IntArray = np.rint(rate).astype(np.int64)
        return rate_bps


def _drop_table(simulation: _engine.Simulation) -> Columns:
    columns = simulation.fault_drop_columns()
    rows = [
        {"port": port, "cause": text, "packets": columns[name][port]}
        for name, text in CAUSES.items()
        for port in np.nonzero(columns[name])[0].tolist()
    ]
    return to_columns("drops", rows)


def _aborted(
    network: Network, aborts: Columns, faults: Sequence[Fault], intervals: Sequence[FaultInterval], config: PacketConfig
) -> Finding | None:
    if not len(aborts["qp"]):
        return None
    fabric, pairs, budget_ps = network.fabric, network.queue_pairs, config.transport.budget_ps
    times_of_qp = list(zip(aborts["qp"].tolist(), aborts["time_ps"].tolist(), strict=True))
    blamed_of_qp = [
        _intervals_behind(network, qp, intervals, since_ps=time_ps - budget_ps, until_ps=time_ps)
        for qp, time_ps in times_of_qp[:MAX_NAMED]
    ]
    blamed = {interval.fault for behind in blamed_of_qp for interval in behind}
    causes = [f"faults[{row}] {describe_fault(fabric, faults[row])}" for row in sorted(blamed)]
    looked_at = f" (behind the first {MAX_NAMED} failures)" if len(times_of_qp) > MAX_NAMED else ""
    qp, time_ps = times_of_qp[0]
    ends = f"{fabric.nic_label(int(pairs.source_nic_Q[qp]))} to {fabric.nic_label(int(pairs.destination_nic_Q[qp]))}"
    return ABORTED_QUEUE_PAIRS.finding(
        entity=_named(causes, "; ") + looked_at if causes else f"queue pair {qp}",
        expected=f"progress within the retry budget of {format_duration(budget_ps)}",
        actual=(
            f"{len(times_of_qp)} {'QP' if len(times_of_qp) == 1 else 'QPs'} failed with {_failure(config)}"
            f"{_since_fault(faults, blamed_of_qp[0], time_ps)}; first QP {qp} ({ends}) at {format_duration(time_ps)}"
        ),
        next_step=(
            "raise the retry budget (engine.transport), or provide new paths within it (convergence_delay)"
            if causes
            else "raise the retry budget (engine.transport), or look for what drops or rejects their packets"
        ),
        confidence=Confidence.PREDICTED,
    )


def _lost_to_faults(outcome: Outcome) -> Finding | None:
    drops = outcome.tables["drops"]
    if not len(drops["packets"]):
        return None
    worst, total = int(np.argmax(drops["packets"])), int(drops["packets"].sum())
    causes = [
        f"{int(drops['packets'][drops['cause'] == cause].sum()):,} {cause}"
        for cause in CAUSES.values()
        if (drops["cause"] == cause).any()
    ]
    share = (
        f", {format_fraction(total / outcome.num_sent)} of {outcome.num_sent:,} data packets"
        if outcome.num_sent
        else ""
    )
    return FAULT_DROPS.finding(
        entity=outcome.network.fabric.link_label(int(drops["port"][worst])),
        expected="no packet loss",
        actual=f"{total:,} packets lost to faults ({', '.join(causes)}){share}",
        confidence=Confidence.PREDICTED,
    )


def _failure(config: PacketConfig) -> str:
    """Return the completion status that verbs report for queue pairs out of retries under these settings."""
    rnr = config.transport.rnr
    if rnr.receives is None or rnr.retries == RNR_RETRIES_FOREVER:
        return "retry-exceeded (IBV_WC_RETRY_EXC_ERR)"
    return "retry-exceeded (IBV_WC_RETRY_EXC_ERR or IBV_WC_RNR_RETRY_EXC_ERR)"


def _since_fault(faults: Sequence[Fault], behind: Sequence[FaultInterval], time_ps: int) -> str:
    """Return the time from the latest fault behind a failure to the failure: ` 59.76 s after link down`."""
    if not behind:
        return ""
    last = max(behind, key=lambda interval: interval.begin_ps)
    kind = _KINDS[type(faults[last.fault])].replace("_", " ")
    return f" {format_duration(time_ps - last.begin_ps)} after {kind}"


def _intervals_behind(
    network: Network, qp: int, intervals: Sequence[FaultInterval], *, since_ps: int, until_ps: int
) -> list[FaultInterval]:
    """Return the intervals of faults on a port of the queue pair's paths at a time in which it waited."""
    starts_ps = [epoch.start_ps for epoch in network.epochs]
    ends_ps = [*starts_ps[1:], END_OF_TIME_PS]
    crossed: set[int] = set()
    for epoch, start_ps, end_ps in zip(network.epochs, starts_ps, ends_ps, strict=True):
        if start_ps <= until_ps and end_ps >= since_ps:
            crossed.update(epoch.port_QDH[qp].ravel().tolist())
    return [
        interval
        for interval in intervals
        if interval.begin_ps <= until_ps and interval.end_ps >= since_ps and crossed & interval.ports
    ]


def _never_began(
    fabric: Fabric, faults: Sequence[Fault], intervals: Sequence[FaultInterval], end_ps: int
) -> Finding | None:
    first: dict[int, FaultInterval] = {}
    for interval in intervals:
        first.setdefault(interval.fault, interval)
    late = [interval for interval in first.values() if interval.begin_ps >= end_ps]
    if not late:
        return None
    shown = [f"faults[{interval.fault}] {describe_fault(fabric, faults[interval.fault])}" for interval in late]
    begins = [format_duration(interval.begin_ps) for interval in late]
    return FAULT_NEVER_BEGAN.finding(
        entity=_named(shown, "; "),
        expected=f"a run that lasts until the fault begins, at {_named(begins, ', ')}",
        actual=f"run ended at {format_duration(end_ps)}",
        confidence=Confidence.CONFIGURED,
    )


def _named(texts: Sequence[str], separator: str) -> str:
    """Return the first of many texts, and how many more there are."""
    more = f" and {len(texts) - MAX_NAMED:,} more" if len(texts) > MAX_NAMED else ""
    return separator.join(texts[:MAX_NAMED]) + more

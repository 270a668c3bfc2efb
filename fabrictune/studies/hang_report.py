"""The study of a job that stands still: evidence, diagnosis, ports, and the record of them."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.hangs import DISAGREEMENT, HELD_UP, HUNG_PORT
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.findings import Severity
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.wording import count, some
from fabrictune.observability.hangs.blame import describe_processes
from fabrictune.observability.hangs.diagnosis import Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.queue_pairs import HungQueuePairs, sample
from fabrictune.observability.hangs.waits import find_group_waits
from fabrictune.studies.counterfactual import Counterfactual, Interval
from fabrictune.studies.hung_ports import HungPorts, describe_ports

KIND = "diagnose"
SEED = 0  # nothing here is drawn at random
MAX_SHOWN_PORTS = 16
MAX_SHOWN_PAIRS = 4
MAX_STORED = 2**63 - 1  # a damaged file may have more
ENDS = ("low", "expected", "high")  # of an interval


@dataclass(frozen=True, kw_only=True)
class HangReport:
    """What is known of a job."""

    job: Job
    diagnosis: Diagnosis | None
    pairs: HungQueuePairs | None = None  # None without a log of NCCL, or a group that it has
    ports: HungPorts | None = None
    why_no_port: str = ""
    healthy: Counterfactual | None = None  # None where nothing hangs or is slow
    notes: tuple[str, ...] = ()


def make_hang_record(report: HangReport, *, sources: Sequence[str], started: float, rules: RuleSettings) -> RunRecord:
    """Return the record of a diagnosis; `started` is what `time.perf_counter` said at the start."""
    checks = check_hang(report)
    run: dict[str, Any] = describe_run(seed=SEED, started=started, configuration={"sources": list(sources)})
    ports = report.ports.ports[:MAX_SHOWN_PORTS] if report.ports else ()
    tables = {
        "hang_healthy": to_columns("hang_healthy", _healthy_rows(report)),
        "hang_processes": to_columns("hang_processes", list(_process_rows(report))),
        "hang_waits": to_columns("hang_waits", _wait_rows(report)),
        "hang_ports": to_columns(
            "hang_ports",
            [
                {
                    "link": port.link,
                    "num_hung": port.num_hung,
                    "num_others": port.num_others,
                    "counters": "; ".join(port.troubles),
                }
                for port in ports
            ],
        ),
    }
    notes = all_notes(report)
    record = RunRecord(
        kind=KIND,
        run={**run, "outcome": outcome(report), **({"notes": notes} if notes else {})},
        tables={name: columns for name, columns in tables.items() if any(len(column) for column in columns.values())},
        findings=checks.findings,
        checks=checks.checks,
    )
    return rules.apply_to(record)


def all_notes(report: HangReport) -> list[str]:
    """Return what was assumed, and what was not read."""
    pairs = report.pairs.notes if report.pairs else ()
    ports = report.ports.notes if report.ports else ()
    return list(dict.fromkeys((*report.notes, *report.job.notes, *pairs, *ports)))


def outcome(report: HangReport) -> dict[str, Any]:
    """Return the answer as JSON values."""
    diagnosis, job = report.diagnosis, report.job
    found: dict[str, Any] = {
        "num_processes": len(job.processes),
        "num_groups": len(job.groups),
        "sources": [{"source": source, "num_files": number} for source, number in job.sources.items()],
        "hangs": diagnosis is not None and diagnosis.cause.stands_still,
    }
    if diagnosis is None:
        return found
    return {
        **found,
        "cause": diagnosis.cause.value,
        "certainty": diagnosis.certainty.value,
        "processes": [vars(job.processes[process]) for process in diagnosis.processes],
        "group": None if diagnosis.group is None else str(job.groups[diagnosis.group]),
        "number": diagnosis.number,
        "request": diagnosis.request,
        "source": diagnosis.source,
        "num_waiting": diagnosis.num_waiting,
        "alternatives": list(diagnosis.alternatives),
        "ports": [port.link for port in report.ports.ports[:MAX_SHOWN_PORTS]] if report.ports else [],
        "healthy": asdict(report.healthy) if report.healthy else None,
    }


def check_hang(report: HangReport) -> CheckReport:
    """Return what stands still, the port behind it, and what does not agree."""
    job = report.job
    subject = (
        f"{count(len(job.processes), 'process').replace('processs', 'processes')} in {count(len(job.groups), 'group')}"
    )
    disagreements = [
        DISAGREEMENT.finding(entity="job", expected="one process a rank", actual=text, confidence=Confidence.MEASURED)
        for text in job.disagreements
    ]
    return join_reports(
        run_check(
            HELD_UP.id,
            subject,
            [_held_up(report.diagnosis, report)] if report.diagnosis else [],
            expected="no process that others wait for",
            actual="nothing stands still in this evidence",
        ),
        _port_check(report),
        run_check(DISAGREEMENT.id, subject, disagreements, expected="one process a rank"),
    )


def _held_up(diagnosis: Diagnosis, report: HangReport) -> Finding:
    job, held = report.job, ""
    if diagnosis.group is not None:
        request = f": {diagnosis.request}" if diagnosis.request else ""
        held = f"; number {diagnosis.number} of {job.groups[diagnosis.group]}{request}"
    waiting = f"; {diagnosis.num_waiting:,} wait" if diagnosis.num_waiting else ""
    others = [f"or: {text}" for text in diagnosis.alternatives]
    edges = [
        f"{job.processes[edge.waiter]} waits for {job.processes[edge.blocker]}: number {edge.number} of "
        f"{job.groups[edge.group]} ({edge.source})"
        for edge in diagnosis.edges[:4]
    ]
    return HELD_UP.finding(
        entity=describe_processes(diagnosis, job),
        expected="requests like those of the others",
        actual=f"{diagnosis.cause.value} ({diagnosis.certainty.value}){held}{waiting}",
        confidence=Confidence.MEASURED,
        severity=Severity.WARNING if diagnosis.certainty is Certainty.POSSIBLE else Severity.ERROR,
        evidence=(*_healthy(report), *diagnosis.evidence, *edges, *others),
    )


def _port_check(report: HangReport) -> CheckReport:
    ports, pairs = report.ports, report.pairs
    if ports is None or pairs is None or not ports.ports:
        return skip_check(HUNG_PORT.id, "queue pairs that hang", report.why_no_port or "no queue pair that hangs")
    is_sure = ports.is_by_counters or (len(ports.ports) == 1 and pairs.is_by_error)
    lines = [f"{port.link}: {'; '.join(port.troubles)}" for port in ports.ports[:4] if port.troubles]
    others = [port.link for port in ports.ports[1:]]
    finding = HUNG_PORT.finding(
        entity=describe_ports(ports),
        expected="a path that carries all packets",
        actual=f"on the way of {ports.ports[0].num_hung} of {count(ports.num_hung, 'hung queue pair')}"
        + ("" if ports.is_by_counters else "; no counter tells these ports apart" if others else ""),
        confidence=Confidence.MEASURED if ports.is_by_counters else Confidence.PREDICTED,
        severity=Severity.ERROR if is_sure else Severity.WARNING,
        evidence=(
            *_healthy(report),
            *lines,
            *sample(pairs.hung, MAX_SHOWN_PAIRS),
            *([f"or: {some(others)}"] if others else []),
        ),
    )
    return run_check(HUNG_PORT.id, count(ports.num_hung, "hung queue pair"), [finding])


def _healthy(report: HangReport) -> tuple[str, ...]:
    return (str(report.healthy),) if report.healthy else ()


def _healthy_subjects(report: HangReport) -> Sequence[str]:
    """Return what would be healthy: the processes that are named, and the port."""
    if report.diagnosis is None:
        return ()
    ports = [describe_ports(report.ports)] if report.ports and report.ports.ports else []
    return (describe_processes(report.diagnosis, report.job), *ports)


def _healthy_rows(report: HangReport) -> list[dict[str, Any]]:
    healthy = report.healthy
    if healthy is None:
        return []
    request_ns, gain_ns, step_ns = (_in_ns(interval) for interval in (healthy.request, healthy.gain, healthy.step))
    values = {
        **{f"request_{end}_ns": value for end, value in zip(ENDS, request_ns, strict=True)},
        **{f"gain_{end}_ns": value for end, value in zip(ENDS, gain_ns, strict=True)},
        **{f"step_{end}_ns": value for end, value in zip(ENDS, step_ns, strict=True)},
        "basis": healthy.basis,
        "assumption": healthy.assumption,
        "missing": "; ".join(healthy.missing),
    }
    return [{"subject": subject, **values} for subject in _healthy_subjects(report)]


def _in_ns(interval: Interval | None) -> tuple[int, int, int]:
    if interval is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    low, expected, high = (min(round(1e6 * value), MAX_STORED) for value in astuple(interval))
    return low, expected, high


def _process_rows(report: HangReport) -> Sequence[dict[str, Any]]:
    job, diagnosis = report.job, report.diagnosis
    blamed = set(diagnosis.processes) if diagnosis else set()
    waiting = {wait.process for wait in find_group_waits(job)}
    return [
        {
            "rank": who.rank,
            "host": who.host,
            "pid": min(who.pid, MAX_STORED),
            "gpu": min(who.gpu, MAX_STORED),
            "is_blamed": int(process in blamed),
            "waits": int(process in waiting),
            "signs": "; ".join(f"{sign.kind.value}: {sign.text}" for sign in job.signs.get(process, ())[:4]),
        }
        for process, who in enumerate(job.processes)
    ]


def _wait_rows(report: HangReport) -> list[dict[str, Any]]:
    job, diagnosis = report.job, report.diagnosis
    return [
        {
            "waiter": str(job.processes[edge.waiter]),
            "blocker": str(job.processes[edge.blocker]),
            "group": str(job.groups[edge.group]),
            "number": min(edge.number, MAX_STORED),
            "source": edge.source,
        }
        for edge in (diagnosis.edges if diagnosis else ())
    ]

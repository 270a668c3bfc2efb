"""Checks of a job in a log of NCCL: networks, NICs, GPUDirect and whatever else costs bandwidth.

Each check rests on messages and names them. What no message says is not checked, and the check says why. Failed
completions and timers have a report of their own (`rdma_bench/timers/nccl_log_report`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from fabrictune.collectives.nccl.completion_errors import is_completion_error
from fabrictune.collectives.nccl.job_summary import GPU_DIRECT_FLAG, HCA_SETTING, JobSummary
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.collectives.nccl.setting_checks import check_settings
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.nccl import (
    FEW_FLOWS,
    NO_GPU_DIRECT,
    PARTIAL_LOG,
    SHARED_NIC,
    SOCKET_NETWORK,
    WARNED,
)
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.wording import count, some

SOCKETS = "Socket"
MAX_EVIDENCE = 3
MAX_WARNINGS = 10  # of different wording


def check_job(log: NcclLog, summary: JobSummary) -> CheckReport:
    """Return what looks wrong in a log, and what could not be looked at."""
    return join_reports(
        _check_networks(log, summary),
        _check_sharing(log, summary),
        _check_gpu_direct(log, summary),
        check_settings(log, summary),
        _check_flows(summary),
        run_check(PARTIAL_LOG.id, f"{count(len(summary.gpus_of_host), 'host')}", _silent_hosts(log, summary)),
        run_check(WARNED.id, f"{count(len(log.warnings), 'warning')} in the log", _warnings(log)),
    )


def _check_networks(log: NcclLog, summary: JobSummary) -> CheckReport:
    subject = "networks between hosts"
    if summary.num_hosts == 1:
        return skip_check(SOCKET_NETWORK.id, subject, "the job runs on one host")
    if not summary.networks:
        return skip_check(SOCKET_NETWORK.id, subject, "the log names no network: NCCL_DEBUG=INFO logs it")
    return run_check(SOCKET_NETWORK.id, subject, _sockets(log, summary), actual=", ".join(summary.networks))


def _sockets(log: NcclLog, summary: JobSummary) -> Iterator[Finding]:
    if SOCKETS not in summary.networks:
        return
    over = [fact.where for fact in log.channels if fact.transport == f"NET/{SOCKETS}"]
    channels = f" on {count(len(over), 'channel')}" if over else ""
    without = sorted({fact.host for fact in log.hosts_without_devices})
    reason = f"; NET/IB finds no device on {some(without)}" if without else ""
    chosen = [fact.where for fact in log.networks if fact.name == SOCKETS]
    yield SOCKET_NETWORK.finding(
        entity="the job",
        expected="RDMA: NET/IB or a plug-in",
        actual=f"NET/Socket{channels}{reason}",
        confidence=Confidence.CONFIGURED,
        evidence=(*(fact.where for fact in log.hosts_without_devices), *chosen, *over)[:MAX_EVIDENCE],
    )


def _check_sharing(log: NcclLog, summary: JobSummary) -> CheckReport:
    subject = f"NICs of {count(len(summary.gpus_of_host), 'host')}"
    if summary.num_hosts == 1:
        return skip_check(SHARED_NIC.id, subject, "the job runs on one host")
    if not summary.devices or not summary.gpus_of_host:
        return skip_check(SHARED_NIC.id, subject, "the log lists no devices of NET/IB, or no ranks")
    return run_check(SHARED_NIC.id, subject, _shared(log, summary), expected="a NIC for each GPU")


def _shared(log: NcclLog, summary: JobSummary) -> Iterator[Finding]:
    groups = defaultdict[tuple[int, tuple[str, ...]], list[str]](list)
    for host, devices in summary.devices.items():
        num_gpus = max(summary.gpus_of_host.get(host, 0), summary.num_ranks_of_host)
        if num_gpus > len(devices):
            groups[num_gpus, devices].append(host)
    for (num_gpus, devices), hosts in groups.items():
        hca = f" ({HCA_SETTING}={', '.join(summary.hca_settings)})" if summary.hca_settings else ""
        yield SHARED_NIC.finding(
            entity=some(hosts),
            expected="a NIC for each GPU, where the host has as many",
            actual=f"{num_gpus} GPUs on {count(len(devices), 'NIC')}: {some(devices)}{hca}",
            confidence=Confidence.CONFIGURED,
            evidence=(
                *(fact.where for fact in log.environment if fact.name == HCA_SETTING and fact.host in hosts),
                *(fact.where for fact in log.devices if fact.host in hosts),
            )[:MAX_EVIDENCE],
        )


def _check_gpu_direct(log: NcclLog, summary: JobSummary) -> CheckReport:
    subject = f"{count(summary.num_connections, 'connection')} between hosts"
    if summary.num_hosts == 1:
        return skip_check(NO_GPU_DIRECT.id, subject, "the job runs on one host")
    if not summary.num_connections and not log.ring_paths:
        return skip_check(NO_GPU_DIRECT.id, subject, "the log has no message of a connection: NCCL_DEBUG_SUBSYS=INIT")
    if summary.networks == (SOCKETS,):
        return skip_check(NO_GPU_DIRECT.id, subject, "sockets have no GPUDirect")
    return run_check(NO_GPU_DIRECT.id, subject, _copied(log, summary), actual="all with GDRDMA")


def _copied(log: NcclLog, summary: JobSummary) -> Iterator[Finding]:
    without = [fact for fact in log.channels if fact.device != UNKNOWN and GPU_DIRECT_FLAG not in fact.flags]
    rings = [] if summary.num_connections else [fact for fact in log.ring_paths if not fact.uses_gpu_direct]
    if not without and not rings:
        return
    directions = {fact.direction for fact in without}
    sides = f", all of them {directions.pop()}" if len(directions) == 1 else ""
    num = f"{len(without)} of {summary.num_connections} connections without{sides}" if without else "rings without"
    disabled = [fact for fact in log.gpu_direct if not fact.is_enabled]
    reasons = some(sorted({f"{fact.device}: {fact.reason or 'no reason given'}" for fact in disabled}))
    yield NO_GPU_DIRECT.finding(
        entity="GPUDirect RDMA",
        expected="GDRDMA on every connection between hosts",
        actual=f"{num}; {reasons or 'NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH logs the reason'}",
        confidence=Confidence.CONFIGURED,
        evidence=(*(fact.where for fact in disabled), *(fact.where for fact in without), *(one.where for one in rings))[
            :MAX_EVIDENCE
        ],
    )


def _check_flows(summary: JobSummary) -> CheckReport:
    subject = "queue pairs of a connection"
    if "RoCE" not in summary.link_layers or summary.num_hosts == 1:
        return skip_check(FEW_FLOWS.id, subject, "the log names no RoCE device in a job of several hosts")
    finding = FEW_FLOWS.finding(
        entity="connections over RoCE",
        expected="several flows from one NIC to another, for the switches to spread",
        actual=f"1 queue pair each ({'as set' if summary.is_num_qps_set else 'the default'})",
        confidence=Confidence.CONFIGURED,
    )
    has_one = summary.num_qps == 1
    return run_check(FEW_FLOWS.id, subject, [finding if has_one else None], actual=str(summary.num_qps))


def _silent_hosts(log: NcclLog, summary: JobSummary) -> Iterator[Finding]:
    silent = [host for host in summary.gpus_of_host if host not in log.logging_hosts]
    num_unnamed = max(0, summary.num_hosts - len({*summary.gpus_of_host, *log.logging_hosts}))
    if silent or num_unnamed:
        names = [*silent, *([f"{num_unnamed} more"] if num_unnamed else [])]
        yield PARTIAL_LOG.finding(
            entity=some(names),
            expected="the messages of every host",
            actual=f"messages of {some(log.logging_hosts)} alone",
            confidence=Confidence.CONFIGURED,
        )


def _warnings(log: NcclLog) -> Iterator[Finding]:
    """Yield a finding for each wording, whatever the numbers in it."""
    groups = defaultdict[str, list[tuple[str, str]]](list)
    for warning in log.warnings:
        if not is_completion_error(warning.message):
            groups[re.sub(r"0x[0-9a-f]+|\d+", "#", warning.message)].append((warning.message, warning.where))
    for group in list(groups.values())[:MAX_WARNINGS]:
        yield WARNED.finding(
            entity=count(len(group), "warning"),
            expected="none",
            actual=group[0][0][:200],
            confidence=Confidence.MEASURED,
            evidence=tuple(where for _, where in group[:MAX_EVIDENCE]),
        )

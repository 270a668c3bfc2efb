"""Checks of the settings that hosts log: devices that do not exist, values that differ, choices taken away.

Source: NVIDIA/nccl, docs/userguide/source/env.rst (what each setting does) at v2.30.7.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fabrictune.collectives.nccl.job_summary import HCA_SETTING, JobSummary
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.nccl import HCA_LIST, LIMITING_SETTING, UNEQUAL_SETTING
from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.foundation.wording import count, some

_OF_A_HOST = {"NCCL_SOCKET_IFNAME", "NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE"}


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """A setting that takes something away."""

    values: tuple[str, ...]  # at which it does; all where there are none
    severity: Severity
    what: str


_LIMITS = {
    "NCCL_IB_DISABLE": _Limit(values=("1",), severity=Severity.WARNING, what="NET/IB is off"),
    "NCCL_P2P_DISABLE": _Limit(
        values=("1",), severity=Severity.WARNING, what="GPUs of a host do not use NVLink or PCIe peer access"
    ),
    "NCCL_SHM_DISABLE": _Limit(
        values=("1",), severity=Severity.WARNING, what="GPUs without peer access use the network within a host"
    ),
    "NCCL_NET_GDR_LEVEL": _Limit(values=("0", "LOC"), severity=Severity.WARNING, what="GPUDirect RDMA is off"),
    "NCCL_DMABUF_ENABLE": _Limit(values=("0",), severity=Severity.INFO, what="GPUDirect RDMA needs nvidia_peermem"),
    "NCCL_PXN_DISABLE": _Limit(
        values=("1",), severity=Severity.INFO, what="messages to another rail cross the spine instead of NVLink"
    ),
    "NCCL_ALGO": _Limit(values=(), severity=Severity.INFO, what="NCCL does not choose the algorithm by size"),
    "NCCL_PROTO": _Limit(values=(), severity=Severity.INFO, what="NCCL does not choose the protocol by size"),
    "NCCL_MAX_NCHANNELS": _Limit(values=(), severity=Severity.INFO, what="channels are limited"),
    "NCCL_MAX_CTAS": _Limit(values=(), severity=Severity.INFO, what="channels are limited"),
}


def check_settings(log: NcclLog, summary: JobSummary) -> CheckReport:
    """Return what is wrong with the settings that hosts log."""
    return join_reports(_check_hca_list(log, summary), _check_values(log))


def _check_hca_list(log: NcclLog, summary: JobSummary) -> CheckReport:
    if not summary.hca_settings:
        return skip_check(HCA_LIST.id, HCA_SETTING, "the log does not name it, so every device is used")
    return run_check(HCA_LIST.id, HCA_SETTING, _misfits(log, summary), actual=", ".join(summary.hca_settings))


def _misfits(log: NcclLog, summary: JobSummary) -> Iterator[Finding]:
    """Yield a finding for each entry of the list that finds nothing, or more than the device that it names."""
    without = {fact.host for fact in log.hosts_without_devices}
    reported = set[tuple[str, str]]()
    for fact in log.environment:
        is_looked_at = fact.host in summary.devices or fact.host in without
        if fact.name != HCA_SETTING or fact.value.startswith("^") or not is_looked_at:
            continue
        found = summary.devices.get(fact.host, ())
        for entry in fact.value.removeprefix("=").split(","):
            name, is_whole = entry.partition(":")[0].strip(), fact.value.startswith("=")
            matched = [one for one in found if one == name or (not is_whole and one.startswith(name))]
            is_trap = name in matched and len(matched) > 1
            if name and (not matched or is_trap) and (fact.host, name) not in reported:
                reported.add((fact.host, name))
                yield HCA_LIST.finding(
                    entity=f"{fact.host}: {name}",
                    expected="one device of this name",
                    actual=f"a prefix that matches {some(matched)}" if matched else f"found {some(found) or 'none'}",
                    confidence=Confidence.CONFIGURED,
                    evidence=(fact.where,),
                )


def _check_values(log: NcclLog) -> CheckReport:
    names = sorted({fact.name for fact in log.environment})
    subject = count(len(names), "setting")
    if not names:
        reason = "no host logs its environment: NCCL_DEBUG_SUBSYS=INIT,ENV"
        return join_reports(*(skip_check(rule.id, subject, reason) for rule in (UNEQUAL_SETTING, LIMITING_SETTING)))
    return join_reports(
        run_check(UNEQUAL_SETTING.id, f"{subject} and the version", _unequal(log, names)),
        run_check(LIMITING_SETTING.id, subject, _limits(log)),
    )


def _unequal(log: NcclLog, names: Iterable[str]) -> Iterator[Finding]:
    for name in names:
        facts = [fact for fact in log.environment if fact.name == name]
        values = dict.fromkeys(fact.value for fact in facts)
        if len(values) > 1 and name not in _OF_A_HOST:
            hosts_of = {value: [fact.host for fact in facts if fact.value == value] for value in values}
            yield _unequal_values(name, hosts_of)
    versions = list(dict.fromkeys(fact.version for fact in log.versions))
    if len(versions) > 1:
        yield _unequal_values("version", {version: [] for version in versions})


def _unequal_values(name: str, hosts_of: dict[str, list[str]]) -> Finding:
    values = [f"{value} on {some(dict.fromkeys(hosts))}" if hosts else value for value, hosts in hosts_of.items()]
    return UNEQUAL_SETTING.finding(
        entity=name,
        expected="one value in the job",
        actual=some(values),
        confidence=Confidence.CONFIGURED,
    )


def _limits(log: NcclLog) -> Iterator[Finding]:
    for name, limit in _LIMITS.items():
        facts = [fact for fact in log.environment if fact.name == name]
        facts = [fact for fact in facts if not limit.values or fact.value.upper() in limit.values]
        for value in dict.fromkeys(fact.value for fact in facts):
            yield LIMITING_SETTING.finding(
                severity=limit.severity,
                entity=f"{name}={value}",
                expected="not set" if not limit.values else f"not {value}",
                actual=limit.what,
                next_step=f"unset {name} and measure again",
                confidence=Confidence.CONFIGURED,
                evidence=tuple(fact.where for fact in facts if fact.value == value)[:1],
            )

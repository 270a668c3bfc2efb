"""Draft of a scenario from an NCCL log: the job as the log shows it, and remarks on whatever is assumed.

The fabric is the smallest that holds the hosts: one switch for each NIC of a host, so that nothing collides in it. A
person replaces it by the real one. The text is YAML with a remark on every line that is no word of the log.

Left out: communicators but the largest; hosts of different sizes, which all get the largest number of GPUs and NICs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.nccl.job_summary import JobSummary
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.units import format_bytes, format_rate

DEFAULT_RATE_BPS = 400 * 10**9
DEFAULT_BYTES = 10**9
MAX_HOSTS = 65_536
_ALGORITHMS = {"ring": "ring", "tree": "double_binary_tree"}
_LOGGED = "speed in the log"
_RADIX = 64  # ports of a switch, or twice as many as it has hosts


@dataclass(frozen=True, kw_only=True)
class DraftHints:
    """What a person adds to the log."""

    rate_bps: int = UNKNOWN
    rate_source: str = "--nic-rate"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A scenario as text, and its assumptions."""

    text: str
    rate_bps: int
    is_rate_assumed: bool
    assumptions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A key of the draft; `assumed` says what is assumed, "" for what the log says."""

    text: str
    assumed: str = ""
    source: str = ""

    def __str__(self) -> str:
        remark = f"assumed: {self.assumed}" if self.assumed else self.source
        return f"{self.text}  # {remark}" if remark else self.text


def draft_scenario(summary: JobSummary, measured: MeasurementFiles | None, hints: DraftHints, *, name: str) -> Draft:
    """Return a draft; raises InputError where the log does not say how many ranks and hosts there are."""
    _require_job(summary)
    rate = _rate(summary, hints)
    lines = [
        _Line(text=f"name: {name}"),
        *_fabric(summary, rate),
        *_traffic(summary, measured),
    ]
    rate_bps = summary.rate_bps if rate.source == _LOGGED else hints.rate_bps
    return Draft(
        text="\n".join(map(str, lines)) + "\n",
        rate_bps=DEFAULT_RATE_BPS if rate.assumed else rate_bps,
        is_rate_assumed=bool(rate.assumed),
        assumptions=tuple(f"{line.text.strip()}: {line.assumed}" for line in lines if line.assumed),
    )


def _require_job(summary: JobSummary) -> None:
    found, next_step = "", ""
    if summary.num_ranks == UNKNOWN or summary.num_hosts == UNKNOWN:
        found, next_step = "a log that does not say how many ranks and hosts there are", "log NCCL_DEBUG_SUBSYS=INIT"
    elif summary.num_hosts == 1:
        found, next_step = "a job on one host, which sends nothing over a network", "give the log of a job on several"
    elif summary.num_hosts > MAX_HOSTS or summary.num_ranks < 2:
        found, next_step = f"{summary.num_ranks} ranks on {summary.num_hosts} hosts", "check the log"
    if found:
        raise InputError(Mistake(where="draft of a scenario", found=found, next_step=next_step))


def _rate(summary: JobSummary, hints: DraftHints) -> _Line:
    if hints.rate_bps != UNKNOWN:
        return _Line(text=f"  nic_rate: {format_rate(hints.rate_bps)}", source=hints.rate_source)
    if summary.rate_bps > 0:
        return _Line(text=f"  nic_rate: {format_rate(summary.rate_bps)}", source=_LOGGED)
    missing = "the log has no rate; NCCL 2.27 and later log it with NCCL_DEBUG_SUBSYS=INIT,NET"
    return _Line(text=f"  nic_rate: {format_rate(DEFAULT_RATE_BPS)}", assumed=missing)


def _fabric(summary: JobSummary, rate: _Line) -> Iterator[_Line]:
    num_hosts, num_gpus = summary.num_hosts, summary.gpus_per_host
    num_devices = summary.devices_per_host
    num_nics = num_gpus if num_devices == UNKNOWN else min(num_gpus, num_devices)
    radix = max(_RADIX, 2 * num_hosts)
    yield _Line(text="fabric:")
    yield _Line(text="  builder: clos", assumed="one switch for each NIC of a host, where nothing collides")
    yield _Line(text=f"  num_hosts: {num_hosts}")
    yield _Line(text=f"  hosts_per_tor_set: {num_hosts}")
    if num_devices == UNKNOWN:
        yield _Line(text=f"  nics_per_host: {num_nics}", assumed="a NIC for each GPU; the log lists none")
    elif num_devices > num_gpus:
        yield _Line(text=f"  nics_per_host: {num_nics}", assumed=f"of {num_devices} devices, one for each GPU")
    else:
        yield _Line(text=f"  nics_per_host: {num_nics}")
    yield from (_Line(text=f"  {text}") for text in ("tiers: 2", f"switch_radix: {radix}", "downlink_split: 1"))
    yield rate
    yield _Line(text=rate.text.replace("nic_rate", "uplink_rate"))
    yield _Line(text="  uplinks_per_tor: 2")


def _traffic(summary: JobSummary, measured: MeasurementFiles | None) -> Iterator[_Line]:
    largest = max(measured.rows, key=lambda row: row.size_bytes) if measured else None
    operation = (largest.name if largest else "all_reduce").replace("send_recv", "send")
    size_bytes = largest.size_bytes if largest else DEFAULT_BYTES
    assumed = "" if largest else "no results were given"
    yield _Line(text="traffic:")
    yield _Line(text="  workload: collective")
    yield _Line(text=f"  operation: {operation}", assumed=assumed)
    yield _Line(text=f"  layout: {{dp: {summary.num_ranks}}}", source="the largest communicator")
    yield _Line(text=f"  gpus_per_host: {summary.gpus_per_host}")
    yield _Line(text=f"  message: {format_bytes(size_bytes)}", assumed=assumed)
    yield _Line(text="  expansion:")
    yield _algorithm(summary)
    if summary.num_channels > 0:
        yield _Line(text=f"    channels: {summary.num_channels}")
    else:
        yield _Line(text="    channels: 1", assumed="the log does not say")
    default = "" if summary.is_num_qps_set else "NCCL's default"
    yield _Line(text=f"    qps_per_connection: {summary.num_qps}", source=default)


def _algorithm(summary: JobSummary) -> _Line:
    """Return the algorithm: the one that was logged or set, where there is a model of it, and else the ring."""
    said = {text.partition(" ")[0].lower() for text in summary.algorithms}
    said = said or {text.lower() for text in summary.environment.get("NCCL_ALGO", ())}
    only = _ALGORITHMS.get(next(iter(said)), "") if len(said) == 1 else ""
    if only:
        return _Line(text=f"    algorithm: {only}")
    missing = f"of {', '.join(sorted(said))}" if said else "the log does not say; NCCL_DEBUG_SUBSYS=INIT,TUNING logs it"
    return _Line(text="    algorithm: ring", assumed=missing)

"""The job of an NCCL log in lines: one for each thing that a bus bandwidth depends on."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.units import format_rate
from fabrictune.foundation.wording import SHOWN_NAMES, count, some

if TYPE_CHECKING:
    from fabrictune.collectives.nccl.job_summary import JobSummary
    from fabrictune.rdma_bench.timers.nccl_log_report import Explanation

MAX_RANKS = 16  # of a ring that are shown
MAX_SETTINGS = 12
NOT_LOGGED = "not logged"
_LABEL_WIDTH = 13


def job_lines(summary: "JobSummary", timers: "Explanation") -> Iterator[str]:
    """Yield the lines of a log's job."""
    yield _head(summary)
    parts = {
        "network": _network(summary),
        "NICs": _nics(summary),
        "NIC of GPU": _nics_of_gpus(summary),
        "GPUDirect": _gpu_direct(summary),
        "PXN": _pxn(summary),
        "channels": _channels(summary),
        "rings": _rings(summary),
        "trees": _trees(summary),
        "queue pairs": _queue_pairs(summary),
        "algorithm": _algorithm(summary),
        "timers": _timers(timers),
        "environment": _environment(summary),
    }
    for label, text in parts.items():
        yield f"{label:{_LABEL_WIDTH}}{text}"


def _head(summary: "JobSummary") -> str:
    version = f"{summary.library or 'NCCL'} {', '.join(summary.versions) or 'of a version not logged'}"
    ranks = "ranks not logged" if summary.num_ranks == UNKNOWN else count(summary.num_ranks, "rank")
    hosts = "hosts not logged" if summary.num_hosts == UNKNOWN else count(summary.num_hosts, "host")
    least = "" if summary.has_all_ranks else "at least "
    gpus = f", {least}{count(summary.gpus_per_host, 'GPU')} a host" if summary.gpus_per_host > 0 else ""
    others = f"; the largest of {summary.num_communicators} communicators" if summary.num_communicators > 1 else ""
    return f"{version}; {ranks} on {hosts}{gpus}; messages of {some(summary.logging_hosts)}{others}"


def _network(summary: "JobSummary") -> str:
    names = {"IB": "InfiniBand"}
    over = [names.get(layer, layer) for layer in summary.link_layers] if summary.uses_verbs else []
    layers = f" over {', '.join(over)}" if over else ""
    inside = ", ".join(summary.inside_hosts)
    return f"{', '.join(summary.networks) or NOT_LOGGED}{layers}" + (f"; within hosts {inside}" if inside else "")


def _nics(summary: "JobSummary") -> str:
    hca = (
        f"NCCL_IB_HCA={', '.join(summary.hca_settings)}"
        if summary.hca_settings
        else "NCCL_IB_HCA not set or not logged"
    )
    rate = format_rate(summary.rate_bps) if summary.rate_bps > 0 else f"rate {NOT_LOGGED}"
    groups = defaultdict[tuple[str, ...], list[str]](list)
    for host, devices in summary.devices.items():
        groups[devices].append(host)
    found = "; ".join(f"{', '.join(devices)} on {some(hosts)}" for devices, hosts in list(groups.items())[:SHOWN_NAMES])
    if not found and summary.num_provider_devices > 0:
        return f"{summary.num_provider_devices} on a host, found by the plug-in"
    return f"{found or NOT_LOGGED}; {hca}; {rate}" if summary.uses_verbs else NOT_LOGGED


def _nics_of_gpus(summary: "JobSummary") -> str:
    """Return which GPUs use which devices, those of all hosts that are alike together."""
    groups = defaultdict[tuple[tuple[str, ...], bool], set[int]](set)
    for one in summary.gpu_devices:
        groups[one.devices, one.is_relayed].add(one.gpu_index)
    shown = [
        f"{_numbers(gpus)}: {some(devices)}{' (PXN)' if is_relayed else ''}"
        for (devices, is_relayed), gpus in groups.items()
    ]
    silent = set(range(max(0, summary.gpus_per_host))) - {one.gpu_index for one in summary.gpu_devices}
    if not shown:
        return f"{NOT_LOGGED}: no connection between hosts in the log"
    more = f"; {_numbers(silent)}: no connection to another host logged" if silent else ""
    return "; ".join(shown) + more


def _numbers(gpus: set[int]) -> str:
    ordered = sorted(gpus)
    is_range = len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1
    return f"{ordered[0]}-{ordered[-1]}" if is_range else ", ".join(map(str, ordered))


def _gpu_direct(summary: "JobSummary") -> str:
    if not summary.num_connections:
        return NOT_LOGGED
    return f"{summary.num_gpu_direct} of {count(summary.num_connections, 'logged connection')} between hosts"


def _pxn(summary: "JobSummary") -> str:
    if not summary.num_connections:
        return NOT_LOGGED
    return (
        f"{summary.num_relayed} of {summary.num_connections} through another GPU's NIC"
        if summary.num_relayed
        else "not used"
    )


def _channels(summary: "JobSummary") -> str:
    if summary.num_channels == UNKNOWN:
        return NOT_LOGGED
    p2p = (
        f"; {summary.num_p2p_channels_per_peer} a peer for send and receive"
        if summary.num_p2p_channels_per_peer > 0
        else ""
    )
    return f"{summary.num_channels} for collectives{p2p}"


def _rings(summary: "JobSummary") -> str:
    if not summary.ring_orders:
        return NOT_LOGGED
    first = summary.ring_orders[0]
    more = " ..." if len(first) > MAX_RANKS else ""
    orders = f"{summary.num_rings} of {count(len(summary.ring_orders), 'order')}"
    return f"{orders}: {' '.join(map(str, first[:MAX_RANKS]))}{more}"


def _trees(summary: "JobSummary") -> str:
    if not summary.num_trees:
        return NOT_LOGGED
    roots = f", root ranks {', '.join(map(str, summary.tree_roots[:SHOWN_NAMES]))}" if summary.tree_roots else ""
    return f"{summary.num_trees}{roots}"


def _queue_pairs(summary: "JobSummary") -> str:
    if not summary.uses_verbs:
        return "of NET/IB alone"
    origin = "" if summary.is_num_qps_set else ", NCCL's default"
    return f"{summary.num_qps} a connection{origin}"


def _algorithm(summary: "JobSummary") -> str:
    if summary.algorithms:
        return ", ".join(summary.algorithms[:MAX_SETTINGS])
    fixed = [
        f"{name}={', '.join(summary.environment[name])}"
        for name in ("NCCL_ALGO", "NCCL_PROTO")
        if name in summary.environment
    ]
    return "; ".join([*fixed, f"choice {NOT_LOGGED}: NCCL_DEBUG_SUBSYS=INIT,TUNING"])


def _timers(timers: "Explanation") -> str:
    """Return what the timers do, or why there are none to speak of."""
    from fabrictune.cli.rdma.predict import shown

    if not timers.predictions:
        return f"none that NCCL_IB_TIMEOUT sets, on {', '.join(timers.networks) or 'these devices'}"
    first, last = timers.predictions[0], timers.predictions[-1]
    if first is not last:
        exponents = ", ".join(str(one.spec.timeout_exponent) for one in timers.predictions)
        span = f"{shown(first.gives_up_ns)} to {shown(last.gives_up_ns)}"
        return f"timeout {exponents} by NCCL's version, which is {NOT_LOGGED}: retry-exceeded error after {span}"
    times = (
        f"retry-exceeded error after {shown(first.gives_up_ns)}, flaps of up to {shown(first.longest_flap_ns)} survived"
    )
    basis = f"{first.profile.name}{', assumed' if timers.profile_is_assumed else ''}"
    return f"timeout {first.spec.timeout_exponent}, {first.spec.retries} retries: {times} ({basis})"


def _environment(summary: "JobSummary") -> str:
    shown: Sequence[str] = [f"{name}={' | '.join(values)}" for name, values in summary.environment.items()]
    more = f" and {len(shown) - MAX_SETTINGS} more" if len(shown) > MAX_SETTINGS else ""
    return (" ".join(shown[:MAX_SETTINGS]) or NOT_LOGGED) + more

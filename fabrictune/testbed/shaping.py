"""The rate of each direction of a link, and what is planted there: a lower rate, a cut, a loss.

A port sends at its rate through a token bucket. Its queue is longer than the windows of the connections that can meet
there, so that a healthy link drops nothing, as a lossless class does not. A loss is a filter at the *receiving* end, as
of an optic whose frames fail their check: the sender counts them as sent, the receiver as discarded. The place of such
filters is made with the testbed: to make it later empties the port's queue.

Source: tc-tbf(8), tc-bpf(8); Linux, `Documentation/networking/filter.rst`, extension `rand`.
"""

from collections.abc import Mapping

from fabrictune.foundation.network_namespaces import run_batch, run_tool
from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.testbed.counters import INCOMING
from fabrictune.testbed.wiring import MTU_BYTES, NamespaceFabric, Settings

MAX_WINDOW_BYTES = 256 * 1024  # of a connection
QUEUE_BYTES = 64 * MAX_WINDOW_BYTES
_BURST_S = 0.002
_ETHERNET_BYTES = 14
_ALL = 2**32 - 1
_LOAD_RANDOM, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x35, 0x06  # classic BPF
_RANDOM = 0xFFFFF038  # SKF_AD_OFF + SKF_AD_RANDOM
_PASS, _DISCARD = 0, 2  # TC_ACT_OK, TC_ACT_SHOT

TCP_SETTINGS: Settings = {
    "net/ipv4/tcp_congestion_control": "reno",
    "net/ipv4/tcp_rmem": f"4096 {MAX_WINDOW_BYTES // 2} {MAX_WINDOW_BYTES}",
    "net/ipv4/tcp_wmem": f"4096 {MAX_WINDOW_BYTES // 2} {MAX_WINDOW_BYTES}",
    "net/ipv4/tcp_no_metrics_save": 1,  # a connection learns nothing from those before it
    "net/ipv4/tcp_slow_start_after_idle": 0,
}


def shape(built: NamespaceFabric, rate_bps_by_port: Mapping[int, int] | None = None) -> None:
    """Let every port send at its fabric's rate, or one that is given; raises UnavailableError."""
    rates = dict(enumerate(built.fabric.port_rate_bps_P.tolist())) | dict(rate_bps_by_port or {})
    for number, node in enumerate(built.fabric.node_name_N):
        run_batch(
            built.namespace(node), [_bucket(built, port, rates[port]) for port in built.ports_of(number)], tool="tc"
        )


def admit_filters(built: NamespaceFabric) -> None:
    """Give every port the place of filters of what comes in, once."""
    for number, node in enumerate(built.fabric.node_name_N):
        names = [built.fabric.port_name_P[port] for port in built.ports_of(number)]
        run_batch(built.namespace(node), [f"qdisc add dev {name} {INCOMING}" for name in names], tool="tc")


def change_rate(built: NamespaceFabric, port: int, rate_bps: int) -> None:
    """Let a port send at another rate from now on."""
    run_batch(_namespace(built, port), [_bucket(built, port, rate_bps)], tool="tc")


def heal(built: NamespaceFabric, port: int) -> None:
    """Let a port send at its fabric's rate, without loss, its link up."""
    change_rate(built, port, int(built.fabric.port_rate_bps_P[port]))
    discard(built, port, 0.0)
    set_link(built, port, "up")


def set_link(built: NamespaceFabric, port: int, state: str) -> None:
    """Take a link `down` or `up`; its routes and neighbours come back with it."""
    run_batch(_namespace(built, port), [f"link set {built.fabric.port_name_P[port]} {state}"])
    if state == "up":
        built.restore_routes(int(built.fabric.port_node_P[port]))


def discard(built: NamespaceFabric, port: int, fraction: float) -> None:
    """Lose a share of what a port sends, at random, where it arrives; 0 ends it."""
    end = int(built.fabric.port_peer_P[port])
    namespace, interface = _namespace(built, end), built.fabric.port_name_P[end]
    filters = ["tc", "-n", namespace, "filter"]
    if run_tool([*filters, "show", "dev", interface, "ingress"]).strip():
        run_tool([*filters, "del", "dev", interface, "ingress"])
    if fraction:
        run_tool([*filters, *f"add dev {interface} ingress bpf da bytecode".split(), _random_filter(fraction)])


def _random_filter(fraction: float) -> str:
    """Return the classic BPF program that discards a share of packets, in the form of `tc`."""
    steps = (
        (_LOAD_RANDOM, 0, 0, _RANDOM),
        (_JUMP_IF_AT_LEAST, 0, 1, round(fraction * _ALL)),
        (_RETURN, 0, 0, _PASS),
        (_RETURN, 0, 0, _DISCARD),
    )
    return ",".join([str(len(steps)), *(" ".join(map(str, step)) for step in steps)])


def _bucket(built: NamespaceFabric, port: int, rate_bps: int) -> str:
    burst = max(2 * (MTU_BYTES + _ETHERNET_BYTES), round(rate_bps / BITS_PER_BYTE * _BURST_S))
    name = built.fabric.port_name_P[port]
    return f"qdisc replace dev {name} root tbf rate {rate_bps} burst {burst} limit {QUEUE_BYTES}"


def _namespace(built: NamespaceFabric, port: int) -> str:
    return built.namespace(built.fabric.node_name_N[built.fabric.port_node_P[port]])

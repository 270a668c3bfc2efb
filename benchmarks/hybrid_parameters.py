"""What each parameter of the hybrid law does to queue, throughput and fairness: the table of decision 0032.

Long flows to one port of 400 Gbps, one parameter changed at a time, in four situations:

- `settled`: 16 flows that joined 200 us apart, the engine's thresholds, from 1 ms after the last
- `joined`: the same in the 200 us after the last joined
- `silent`: as settled, without marks
- `shallow`: 4 flows on a longer path under thresholds far below the queue target, 50 to 200 KB

Simulated, so the same on every machine.

Run: `python -m benchmarks.run hybrid_parameters`, or `python -m benchmarks.hybrid_parameters` for the table
"""

from collections.abc import Iterator
from typing import Any

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.settings.quantities import format_setting, key_of
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig

Settings = tuple[tuple[str, float], ...]

RATE_BPS = 400 * GBPS
JOINING_US = tuple(range(0, 3200, 200))
SILENT = PacketConfig(ecn=EcnConfig(enabled=False))
SHALLOW = PacketConfig(ecn=EcnConfig(kmin_bytes=50_000, kmax_bytes=200_000, pmax_fraction=1.0))
CHANGES: dict[str, tuple[float, ...]] = {
    "queue_target_ps": (5e6, 20e6, 40e6),
    "flow_scaling_range_ps": (0, 80e6),
    "additive_increase_packets": (0.25, 4),
    "decrease_factor": (0.2, 0.4, 1),
    "max_decrease_fraction": (0.1, 0.25),
    "alpha_gain": (1 / 256, 1 / 4),
    "recovery_fraction": (0, 0.25, 1),
}


def benchmarks() -> list[dict[str, Any]]:
    """Return queue, goodput and fairness of every change and situation, as rows of benchmarks/results.json."""
    return [
        {"name": f"netsim.hybrid.{label}.{what}", "value": value, "unit": what.rpartition("-")[2], "spread": "exact"}
        for label, settings in _changes()
        for what, value in _observe(settings).items()
    ]


def main() -> None:
    """Print the table as Markdown."""
    print("| | settled: KB, Jain | joined: Jain | silent: KB, Jain | shallow: KB, Gbps, Jain |\n|---|---|---|---|---|")
    for label, settings in _changes():
        seen = _observe(settings)
        print(
            f"| {label} | {seen['settled-KB']:.0f}, {seen['settled-Jain']:.3f} | {seen['joined-Jain']:.3f}"
            f" | {seen['silent-KB']:.0f}, {seen['silent-Jain']:.3f}"
            f" | {seen['shallow-KB']:.0f}, {seen['shallow-Gbps']:.0f}, {seen['shallow-Jain']:.3f} |"
        )


def _changes() -> Iterator[tuple[str, Settings]]:
    yield "defaults", ()
    for name, values in CHANGES.items():
        for value in values:
            yield f"{key_of(name)} {format_setting(name, value)}", ((name, value),)


def _observe(settings: Settings) -> dict[str, float]:
    situations = {
        "settled": _watch(PacketConfig(), settings, senders=16, settle_us=4000, watch_us=2000),
        "joined": _watch(PacketConfig(), settings, senders=16, settle_us=3000, watch_us=200),
        "silent": _watch(SILENT, settings, senders=16, settle_us=4000, watch_us=2000),
        "shallow": _watch(SHALLOW, settings, senders=4, settle_us=2000, watch_us=2000, cable_mm=600_000),
    }
    return {
        f"{situation}-{unit}": value
        for situation, seen in situations.items()
        for unit, value in (
            ("KB", seen.mean_queue_bytes / 1e3),
            ("Gbps", seen.goodput_gbps),
            ("Jain", seen.fairness),
        )
    }


def _watch(
    config: PacketConfig,
    settings: Settings,
    *,
    senders: int,
    settle_us: int,
    watch_us: int,
    cable_mm: int = 2_000,
) -> Settled:
    return watch(
        "hybrid",
        config,
        senders=senders,
        rate_bps=RATE_BPS,
        settle_us=settle_us,
        watch_us=watch_us,
        settings=settings,
        start_us=JOINING_US[:senders],
        cable_mm=cable_mm,
    )


if __name__ == "__main__":
    main()

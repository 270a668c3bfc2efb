"""Report of skip: how much of a run was taken at once, what that leaves open, or why nothing was."""

from collections.abc import Mapping
from typing import Any

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.units import format_duration
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig

FEWEST_AUDITED = 20  # below it, one miss is more than 5 %


def describe_skip(
    config: PacketConfig,
    simulation: _engine.Simulation,
    law: CompiledLaw,
    *,
    num_transfers: int,
    probe: ProbeConfig | None,
    not_searched: str,
) -> dict[str, Any]:
    """Return what `run.json` says of skip: the mode, the events skipped and their share, and why there were none.

    With bounded skip it also has what was taken at mean rates, how audits went, and the interval of the last finish.
    `not_searched` says why exact skip looked for nothing, "" where it did.
    """
    num_events, num_skipped = simulation.num_events, simulation.num_skipped_events
    described: dict[str, Any] = {
        "mode": config.skip,
        "events": num_skipped,
        "share": num_skipped / num_events if num_events else 0.0,
        "reason": None if config.skip == "off" or num_skipped else not_searched or _reason(simulation.not_skipped),
    }
    if config.skip == "bounded":
        described["bounded"] = _describe_bounded(simulation, law, num_transfers, has_probes=probe is not None)
    return described


def _describe_bounded(
    simulation: _engine.Simulation, law: CompiledLaw, num_transfers: int, *, has_probes: bool
) -> dict[str, Any]:
    counts = dict(simulation.skip_counts())
    total = simulation.num_events + counts["events"]
    is_taken = counts["spans"] > 0
    return {
        **counts,
        "share": counts["events"] / total if total else 0.0,
        "reason": None if is_taken else _bounded_reason(simulation, law, counts, has_probes=has_probes),
        **_last_finish(simulation, num_transfers if is_taken else 0),
    }


def _last_finish(simulation: _engine.Simulation, num_transfers: int) -> dict[str, int | None]:
    """Return when the last transfer is done at the earliest and at the latest; None of none."""
    latest = dict.fromkeys(("finish_ps", "finish_low_ps", "finish_high_ps"), -1)
    for begin, end in ranges(0, num_transfers):
        for name in latest:
            latest[name] = max(latest[name], int(simulation.transfer_column(name, begin, end).max()))
    return {f"last_{name}": value if value >= 0 else None for name, value in latest.items()}


def skip_lines(run: Mapping[str, Any]) -> list[str]:
    """Return the lines of a terminal for a record's `run`; none where exact skip took nothing, or there was no skip.

    Why it took nothing stands in the record: where nobody asked for it, nobody misses it.
    """
    skip = run.get("skip", {"mode": "off"})
    if skip["mode"] == "off" or (skip["mode"] == "exact" and not skip["events"]):
        return []
    if skip["mode"] == "fluid":
        return _fluid_lines(skip["fluid"])
    exact = f"skipped {skip['share']:.1%} of {run['events']:,} events, with the same results"
    lines = [f"skipped 0 %: {skip['reason']}" if skip["reason"] else exact]
    return lines + (_bounded_lines(skip["bounded"]) if skip["mode"] == "bounded" else [])


def bounded_json(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a record's `run` stands beside its figures: those of estimates, if there were any."""
    skip = run.get("skip", {})
    return {f"{mode}_skip": skip[mode] for mode in ("bounded", "fluid") if skip.get(mode)}


def _bounded_lines(bounded: Mapping[str, Any]) -> list[str]:
    if bounded["reason"]:
        return [f"taken at mean rates 0 %: {bounded['reason']}"]
    taken = f"taken at mean rates {bounded['share']:.1%}, in {bounded['spans']:,} spans"
    return [
        f"{taken}; {_audit_words(bounded)}",
        f"{_last_words(bounded)}; largest queues on their ways are not known",
    ]


def _fluid_lines(fluid: Mapping[str, Any]) -> list[str]:
    if fluid["held_share"] is None:
        return ["at max-min shares, interrupted before any audit"]
    if "packets" not in fluid:
        return _lines_without_audits(fluid)
    simulated = f"packet by packet {fluid['audited_share']:.2%}, the audits; all traffic at max-min shares"
    held = f"{fluid['held_share']:.1%} of the bytes held by others"
    return [
        f"{simulated}, {held}; {_audit_words(fluid)}",
        f"{_last_words(fluid)}; queues, marks and pauses are not known",
    ]


def _lines_without_audits(fluid: Mapping[str, Any]) -> list[str]:
    held = f"all traffic at max-min shares, {fluid['held_share']:.1%} of the bytes held by others"
    unknown = (
        "queues, marks and pauses are not known, nor intervals of single transfers (engine.audits: 2 % gives them)"
    )
    if not fluid["makespan_factors"]:
        last = format_duration(fluid["last_finish_ps"])
        return [held, f"last finish {last}, without an interval: no run like it was compared with packets; {unknown}"]
    compared = f"{fluid['compared_runs']:,} runs compared with packets"
    return [
        f"{held}; interval from {compared}",
        f"{_last_words(fluid, _confidence(fluid['compared_runs']))}; {unknown}",
    ]


def _confidence(num_runs: int) -> str:
    """Return how likely a further run lies between the least and the greatest of as many."""
    return f"{1 - 2 / (num_runs + 1):.0%}".replace("%", " %")


def _last_words(estimate: Mapping[str, Any], confidence: str = "95 %") -> str:
    low, last, high = (
        format_duration(estimate[f"last_{name}"]) for name in ("finish_low_ps", "finish_ps", "finish_high_ps")
    )
    return f"last finish {last}, between {low} and {high} ({confidence})"


def _audit_words(bounded: Mapping[str, Any]) -> str:
    num, num_inside = bounded["audited_counts"], bounded["audited_counts_inside"]
    if num < FEWEST_AUDITED:
        return f"{num_inside} of {num} audited counts inside their intervals, too few to tell"
    return f"{num_inside / num:.1%} of {num:,} audited counts inside their intervals"


def _reason(not_skipped: list[str]) -> str:
    if not_skipped:
        return f"runs with {' and '.join(not_skipped)} are not skipped"
    return "nothing repeated for long enough"


def _bounded_reason(
    simulation: _engine.Simulation, law: CompiledLaw, counts: Mapping[str, int], *, has_probes: bool
) -> str:
    if simulation.not_skipped:
        return _reason(simulation.not_skipped)
    if has_probes:
        return "probes sample what a span would not have"
    if "on_timer" in law.handler_address:
        return "laws with timers recover for longer than windows can tell"
    if "finish_low_ps" not in simulation.transfer_column_names():
        return (
            "runs of the full engine (priorities, faults, captures and the like) keep every event of contended traffic"
        )
    if counts["audits"]:
        return "audits did not bear out intervals as narrow as engine.skip_precision"
    return "nothing was stationary for long enough"

"""Tables of estimates over hash seeds, such as `0.747 ± 0.008`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.foundation.records import Columns
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import format_duration, format_rate

HEADINGS = (
    "P(overload)",
    "peak load",
    "p99",
    "flow throughput",
    "min flow throughput",
    "per-NIC throughput",
    "min connection throughput",
)
GAINS_AGREE = 0.05  # difference up to which a predicted gain is confirmed
EFFECT_HEADINGS = {
    "overload_probability": "P(overload)",
    "worst_load_fraction": "peak load",
    "throughput_fraction": "flow throughput",
    "slowest_fraction": "min flow throughput",
    "slowest_connection_bps": "min connection throughput",
}
LEGEND = (
    "P(overload): probability of any oversubscribed link, and its 95 % interval. peak load: offered load over rate of",
    "the busiest link, mean and p99 over seeds. flow throughput: max-min fair rate over offered rate, mean and min.",
    "connection: all queue pairs between two NICs. ±: half of the 95 % confidence interval.",
)


def print_outcomes(what: str, outcomes: Columns, *, has_legend: bool) -> None:
    """Print a table of outcomes, whose column `what` names the rows."""
    names = outcomes[what].tolist()
    print_table((what, *HEADINGS), [(name, *_cells(outcomes, row)) for row, name in enumerate(names)])
    if has_legend:
        print_lines(["", f"{int(outcomes['num_seeds'][0])} seeds each", *LEGEND, ""])


def print_distribution(seeds: Columns) -> None:
    """Print what to expect of any seeds: one row of a distribution."""
    num_seeds = int(seeds["num_seeds"][0])
    print_lines([f"of unknown hash seeds, {f'from {num_seeds} of them' if num_seeds else 'exactly'}:"])
    rows = [
        ("P(oversubscribed link)", _probability(seeds, "overload_probability", 0)),
        ("peak link load / rate", _number(seeds, "worst_load_fraction", 0)),
        ("p99 of peak link load / rate over hash seeds", _quantile(seeds, "worst_load_fraction_p99", 0)),
        ("throughput", _percent(seeds, "throughput_fraction", 0)),
        ("slowest flow", _percent(seeds, "slowest_fraction", 0)),
    ]
    print_table(("figure", "value"), rows, indent=2)


def print_effects(effects: Columns) -> None:
    """Print the effects on some figures: rows are sets of factors."""
    names = list(dict.fromkeys(effects["effect"].tolist()))
    cell = {(row["effect"], row["metric"]): _effect_cell(row) for row in to_rows(effects)}
    rows = [(name, *(cell[name, metric] for metric in EFFECT_HEADINGS)) for name in names]
    print_table(("effect on", *EFFECT_HEADINGS.values()), rows)


def print_steps(steps: Columns, *, has_legend: bool) -> None:
    """Print the steps of a plan: what was tried, whether it is part of the plan, and what it came to."""
    rows = [
        (name, "yes" if is_taken else "no", "known" if knows else "any", *_cells(steps, row))
        for row, (name, is_taken, knows) in enumerate(
            zip(*(steps[column].tolist() for column in ("step", "is_taken", "knows_seeds")), strict=True)
        )
    ]
    print_table(("step", "taken", "seeds", *HEADINGS), rows)
    if has_legend:
        print_lines(["", f"{int(steps['num_seeds'][0])} seeds where they are any", *LEGEND, ""])


def print_gains(gains: Columns, *, law: str) -> None:
    """Print the time of each job as it is and with the plan, predicted and simulated."""
    rows, far = [], []
    for row in to_rows(gains):
        cells = [
            cell
            for how in ("predicted", "simulated")
            for cell in (_time(row[f"{how}_before_ps"]), _time(row[f"{how}_after_ps"]), f"{row[f'{how}_gain']:.2f}")
        ]
        difference = row["predicted_gain"] / row["simulated_gain"] - 1
        far += [row["job"]] if not abs(difference) <= GAINS_AGREE else []
        rows.append((row["job"], *cells, f"{100 * difference:+.1f} %"))
    headings = ("predicted as is", "planned", "gain", "simulated as is", "planned", "gain", "gains differ by")
    print_table(("job", *headings), rows)
    print_lines(
        [
            "predicted: time at max-min fair rates, without packets, queues or law. "
            f"simulated: packet by packet, law {law}.",
            *([_apart(far, law)] if far else []),
            "",
        ]
    )


def _apart(jobs: Sequence[str], law: str) -> str:
    names = ", ".join(jobs)
    return f"more than {GAINS_AGREE:.0%} apart: {names}. Law {law}, queues and pauses do not keep to max-min rates."


def _time(time_ps: float) -> str:
    return "never" if math.isnan(time_ps) else format_duration(int(time_ps))


def _effect_cell(row: Mapping[str, Any]) -> str:
    value, half = row["value"], (row["high"] - row["low"]) / 2
    if row["metric"].endswith("_bps"):
        return f"{value / 1e9:+.1f} ± {half / 1e9:.1f} Gbps"
    if row["metric"] == "worst_load_fraction":
        return f"{value:+.2f} ± {half:.2f}"
    return f"{100 * value:+.1f} ± {100 * half:.1f} points"


def _cells(outcomes: Columns, row: int) -> tuple[str, ...]:
    return (
        _probability(outcomes, "overload_probability", row),
        _number(outcomes, "worst_load_fraction", row),
        f"{_value(outcomes, 'worst_load_fraction_p99', row):.2f}",
        _percent(outcomes, "throughput_fraction", row),
        _percent(outcomes, "slowest_fraction", row),
        _rate(outcomes, "mean_nic_bps", row),
        _rate(outcomes, "slowest_connection_bps", row),
    )


def _value(outcomes: Columns, name: str, row: int) -> float:
    return float(outcomes[name][row])


def _half(outcomes: Columns, name: str, row: int) -> float:
    return (_value(outcomes, f"{name}_high", row) - _value(outcomes, f"{name}_low", row)) / 2


def _number(outcomes: Columns, name: str, row: int) -> str:
    return f"{_value(outcomes, name, row):.2f} ± {_half(outcomes, name, row):.2f}"


def _quantile(outcomes: Columns, name: str, row: int) -> str:
    low, high = (_value(outcomes, f"{name}_{end}", row) for end in ("low", "high"))
    upper = f"to {high:.2f}" if math.isfinite(high) else "or more"  # a small sample leaves it open
    return f"{_value(outcomes, name, row):.2f} ({low:.2f} {upper})"


def _percent(outcomes: Columns, name: str, row: int) -> str:
    return f"{100 * _value(outcomes, name, row):.1f} ± {100 * _half(outcomes, name, row):.1f} %"


def _probability(outcomes: Columns, name: str, row: int) -> str:
    ends = (round(100 * _value(outcomes, f"{name}_{end}", row)) for end in ("low", "high"))
    return f"{100 * _value(outcomes, name, row):.0f} % ({' to '.join(map(str, ends))})"


def _rate(outcomes: Columns, name: str, row: int) -> str:
    return f"{format_rate(_value(outcomes, name, row))} ± {_half(outcomes, name, row) / 1e9:.2g}"

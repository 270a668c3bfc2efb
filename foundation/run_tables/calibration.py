"""Tables of a calibration: parameters fitted to measurements, the times they leave unexplained, and congestion."""

from fabrictune.foundation.run_tables.schema import (
    TableSchema,
    flag_column,
    integer_column,
    number_column,
    text_column,
)

_KINDS = ("validate fit",)
_SERIES = text_column("series", "operation and ranks, or program, device and queue pairs")

TABLES = (
    TableSchema(
        name="fitted_parameters",
        row="a parameter of the model of the times",
        kinds=_KINDS,
        columns=(
            text_column("parameter", "its name; those of a profile are its keys"),
            number_column("value", "what was fitted, in the unit of `unit`", unit=""),
            number_column("low", "lower end of its 90 % interval; -1 where there is none", unit=""),
            number_column("high", "upper end of its 90 % interval; -1 where there is none", unit=""),
            text_column("unit", "ps or bps"),
            text_column("verdict", "well determined, weak, or not determined"),
            text_column("reason", "why it is not well determined, or empty"),
            text_column("next_step", "what to measure next, or empty"),
            flag_column("is_held", "whether it is the base profile's value"),
            integer_column("num_points", "points whose time it has a part in", unit="points"),
            integer_column("least_bytes", "smallest of their sizes"),
            integer_column("most_bytes", "largest of their sizes"),
        ),
    ),
    TableSchema(
        name="fitted_correlations",
        row="two parameters that were fitted",
        kinds=_KINDS,
        columns=(
            text_column("parameter", "the first"),
            text_column("other", "the second"),
            number_column("correlation", "of their errors", unit=""),
        ),
    ),
    TableSchema(
        name="fitted_segments",
        row="a range of sizes of a series with one line",
        kinds=_KINDS,
        columns=(
            _SERIES,
            integer_column("from_bytes", "size from which the line holds"),
            number_column("intercept_ps", "time of no bytes"),
            number_column("rate_bps", "size over the time that it adds; -1 where it adds none"),
            integer_column("num_points", "sizes measured in it", unit="sizes"),
        ),
    ),
    TableSchema(
        name="fitted_times",
        row="a size of a series",
        kinds=_KINDS,
        columns=(
            _SERIES,
            integer_column("size_bytes", "size"),
            number_column("measured_ps", "median of the measured times"),
            number_column("modelled_ps", "time by the fitted values"),
            number_column("error_fraction", "modelled over measured time, less 1"),
        ),
    ),
    TableSchema(
        name="fitted_losses",
        row="a group of series that differ in their number of hosts, or of queue pairs, alone",
        kinds=_KINDS,
        columns=(
            text_column("series", "operation or program"),
            text_column("of", "hosts, or queue pairs"),
            text_column("counts", "their numbers"),
            number_column("loss_fraction", "share of the rate that each doubling takes"),
            number_column("low_fraction", "lower end of its 90 % interval"),
            number_column("high_fraction", "upper end of its 90 % interval"),
            text_column("verdict", "well determined, or weak"),
            text_column("next_step", "what to measure next, or empty"),
        ),
    ),
    TableSchema(
        name="fitted_counters",
        row="a class of counters of NICs",
        kinds=_KINDS,
        columns=(
            text_column("class", "what it counts"),
            integer_column("rise", "rise between the snapshots, of all devices", unit=""),
            number_column("per_gb", "rise for each gigabyte sent; -1 where no bytes are counted", unit=""),
            flag_column("is_saturated", "whether a counter stands at its largest value: the rise is at least this"),
        ),
    ),
)

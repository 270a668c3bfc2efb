"""Tables of collectives: measured, modelled, compared, and the start-up of their groups."""

from fabrictune.foundation.run_tables.schema import (
    Column,
    TableSchema,
    flag_column,
    integer_column,
    number_column,
    text_column,
)

MEASURED = ("coll bench", "coll import")
ATTRIBUTED = {  # causes of a measured time, in the order in which it is shared out
    "nic_ps": "bytes of the busiest NIC at its line rate",
    "rounds_ps": "messages that wait for one another",
    "queue_pairs_ps": "flows that collide for want of queue pairs",
    "collisions_ps": "flows that share a link however many queue pairs they have",
    "late_ranks_ps": "waiting for the last rank",
    "call_ps": "cost of a call whatever its size",
    "not_the_network_ps": "the rest",
}

_MODELS = {
    "alpha_beta": "of the alpha-beta model",
    "line": "of the busiest NIC's bytes at its rate",
    "bound": "of the lower bound of any network of such links",
    "fair": "with max-min fair shares of the links",
    "engine": "of the packet engine",
}
_OPERATION = text_column("operation", "name of the collective")
_IN_PLACE = flag_column("is_in_place", "whether the result replaces the input")
_NUM_RANKS = integer_column("num_ranks", "ranks of the group", unit="ranks")
_SIZE = integer_column("size_bytes", "size as nccl-tests counts it")
_CASE = integer_column("case", "row of table `measurements`")


def _modelled() -> tuple[Column, ...]:
    return tuple(
        column
        for name, what in _MODELS.items()
        for column in (
            integer_column(f"{name}_ps", f"time {what}; -1 none"),
            integer_column(f"{name}_busbw_bps", f"bus bandwidth {what}; -1 none"),
        )
    )


TABLES = (
    TableSchema(
        name="measurements",
        row="a collective at one size",
        kinds=MEASURED,
        columns=(
            _OPERATION,
            _IN_PLACE,
            _SIZE,
            _NUM_RANKS,
            number_column("mean_ns", "mean time of an iteration"),
            number_column("algorithm_bandwidth_bps", "algorithm bandwidth of nccl-tests"),
            number_column("bus_bandwidth_bps", "bus bandwidth of nccl-tests"),
            integer_column("num_wrong", "wrong elements; -1 where results are not checked", unit="elements"),
            number_column("p10_ns", "10th percentile of the iterations", is_optional=True),
            number_column("median_ns", "median of the iterations", is_optional=True),
            number_column("p99_ns", "99th percentile of the iterations", is_optional=True),
            number_column("skew_ns", "mean wait of the first rank for the last", is_optional=True),
        ),
    ),
    TableSchema(
        name="iterations",
        row="an iteration of a case",
        kinds=("coll bench",),
        columns=(
            _CASE,
            integer_column("iteration", "number of the iteration"),
            integer_column("duration_ns", "time from the last rank's begin to the last rank's end"),
            integer_column("skew_ns", "wait of the first rank for the last"),
            integer_column("last_rank", "rank that began last"),
        ),
    ),
    TableSchema(
        name="ranks",
        row="a rank in a case",
        kinds=("coll bench",),
        columns=(
            _CASE,
            integer_column("rank", "rank"),
            integer_column("host", "number of its host"),
            number_column("late_ns", "mean time after the first rank at which it begins"),
            number_column("own_ns", "mean time that it spends in the call"),
            integer_column("times_last", "iterations in which it began last", unit="iterations"),
        ),
    ),
    TableSchema(
        name="model",
        row="a collective at one size, modelled",
        kinds=("coll model",),
        columns=(_OPERATION, _NUM_RANKS, _SIZE, *_modelled()),
    ),
    TableSchema(
        name="fits",
        row="a series: one collective over two sizes or more",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            integer_column("num_sizes", "measurements of the series", unit="measurements"),
            number_column("alpha_ns", "time of a call of no bytes, by the fitted line; negative where no line fits"),
            number_column("alpha_low_ns", "lower end of its 95 % interval; NaN with two sizes"),
            number_column("alpha_high_ns", "upper end of its 95 % interval; NaN with two sizes"),
            number_column("busbw_bps", "bus bandwidth of each further byte; -1 where more bytes take no longer"),
            number_column("busbw_low_bps", "lower end of its 95 % interval; NaN with two sizes"),
            number_column("busbw_high_bps", "upper end of its 95 % interval; NaN where it has none"),
            number_column("worst_error_fraction", "largest relative error of the line"),
        ),
    ),
    TableSchema(
        name="nccl_model",
        row="a measured collective beside NCCL's choice and its time on hosts of a hardware profile",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            _SIZE,
            text_column("choice", "algorithm and protocol that NCCL takes"),
            number_column("measured_ps", "measured time"),
            number_column("expected_ps", "time by the model"),
            number_column("low_ps", "lower end of its 90 % interval"),
            number_column("high_ps", "upper end of its 90 % interval"),
            number_column("ratio", "measured over expected time", unit=""),
            flag_column("is_inside", "whether the measured time is inside the interval"),
        ),
    ),
    TableSchema(
        name="attribution",
        row="a measured collective beside its model, its time shared out among causes",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            _SIZE,
            number_column("measured_ps", "measured time"),
            number_column("bound_ps", "lower bound of any network of such links"),
            number_column("fair_ps", "modelled time, with max-min fair shares of the links"),
            number_column("ratio", "`measured_ps` over `fair_ps`"),
            *(number_column(name, what) for name, what in ATTRIBUTED.items()),
        ),
    ),
    TableSchema(
        name="verdicts",
        row="the largest size of a series: the cause of most of its time, and the NIC rates at which that turns",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            _SIZE,
            text_column("cause", "cause of most of the time: `nic` or another part of table `attribution`"),
            number_column("share_fraction", "its share of the measured time"),
            number_column("rate_bps", "rate of the scenario's slowest NIC"),
            number_column(
                "below_bps", "rate from which on downwards another cause has most; -1 none within a factor of 4"
            ),
            text_column("below_cause", "that cause, empty without one"),
            number_column(
                "above_bps", "rate from which on upwards another cause has most; -1 none within a factor of 4"
            ),
            text_column("above_cause", "that cause, empty without one"),
        ),
    ),
    TableSchema(
        name="verdict_rates",
        row="the largest size of a series at a usual NIC rate: the cause of most of its time",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            _SIZE,
            number_column("rate_bps", "rate of the NICs, in place of the scenario's"),
            text_column("cause", "cause of most of the time: `nic` or another part of table `attribution`"),
            number_column("share_fraction", "its share of the measured time"),
            flag_column("is_possible", "whether links of this rate allow the measured time"),
            number_column(
                "turn_bps", "rate, below the next row's, from which on another cause has most; -1 none up to there"
            ),
        ),
    ),
    TableSchema(
        name="storms",
        row="a start-up of one pattern and size",
        kinds=("coll init storm",),
        columns=(
            text_column("pattern", "how the groups are made"),
            integer_column("ranks", "ranks that start at once", unit="ranks"),
            integer_column("groups", "groups that they make", unit="groups"),
            integer_column("operations", "store operations, in closed form", unit="operations"),
            integer_column("requests", "requests to the store, counted", unit="requests"),
            integer_column(
                "requests_expected", "requests in closed form; the least where `is_exact` is 0", unit="requests"
            ),
            flag_column("is_exact", "whether the closed form is exact"),
            integer_column("connect_ns", "time until all ranks are connected"),
            integer_column("wall_ns", "time until all groups are made"),
            integer_column("server_cpu_ns", "processor time of the store"),
            integer_column("clients_cpu_ns", "processor time of the ranks"),
        ),
    ),
    TableSchema(
        name="growth",
        row="a pattern and a cost, fitted over four sizes or more as constant + linear n + quadratic n²",
        kinds=("coll init storm",),
        columns=(
            text_column("pattern", "how the groups are made"),
            text_column("cost", "`requests`, `server_cpu_ns` or `wall_ns`"),
            number_column("constant", "constant part", unit="of the cost"),
            number_column("linear", "part for each rank", unit="of the cost"),
            number_column("quadratic", "part for each pair of ranks", unit="of the cost"),
            number_column("exponent", "slope of the cost over the ranks, both logarithmic"),
            number_column("worst_error_fraction", "largest relative error of the fit"),
            integer_column("extrapolated_ranks", "ranks of the larger job", unit="ranks"),
            number_column(
                "extrapolated",
                "cost of the larger job; -1 where the interval spans more than twice its lower end",
                unit="of the cost",
            ),
            number_column("extrapolated_low", "lower end of its 95 % interval", unit="of the cost"),
            number_column("extrapolated_high", "upper end of its 95 % interval", unit="of the cost"),
            number_column("quadratic_fraction", "share of the quadratic part in it; -1 without it"),
        ),
    ),
    TableSchema(
        name="gains",
        row="a pattern at one size, beside pattern `legacy`",
        kinds=("coll init storm",),
        columns=(
            integer_column("ranks", "ranks that start at once", unit="ranks"),
            text_column("pattern", "how the groups are made"),
            number_column("requests_times", "requests of `legacy` over its own"),
            number_column("server_cpu_ns_times", "processor time of the store under `legacy` over its own"),
            number_column("wall_ns_times", "wall time of `legacy` over its own"),
        ),
    ),
    TableSchema(
        name="startup",
        row="a rank of a start-up that was tried",
        kinds=("coll init check",),
        columns=(
            integer_column("rank", "rank"),
            integer_column("elapsed_ns", "time from its first request to the store until its last group is made"),
        ),
    ),
)

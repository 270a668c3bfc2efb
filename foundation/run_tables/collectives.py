"""Tables of collectives: measured, modelled, compared, and the start-up of their groups."""

from fabrictune.foundation.run_tables.schema import Column, Table, flag, number, text, whole

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
_OPERATION = text("operation", "name of the collective")
_IN_PLACE = flag("is_in_place", "whether the result replaces the input")
_NUM_RANKS = whole("num_ranks", "ranks of the group", unit="ranks")
_SIZE = whole("size_bytes", "size as nccl-tests counts it")
_CASE = whole("case", "row of table `measurements`")


def _modelled() -> tuple[Column, ...]:
    return tuple(
        column
        for name, what in _MODELS.items()
        for column in (
            whole(f"{name}_ps", f"time {what}; -1 none"),
            whole(f"{name}_busbw_bps", f"bus bandwidth {what}; -1 none"),
        )
    )


TABLES = (
    Table(
        name="measurements",
        row="a collective at one size",
        kinds=MEASURED,
        columns=(
            _OPERATION,
            _IN_PLACE,
            _SIZE,
            _NUM_RANKS,
            number("mean_ns", "mean time of an iteration"),
            number("algorithm_bandwidth_bps", "algorithm bandwidth of nccl-tests"),
            number("bus_bandwidth_bps", "bus bandwidth of nccl-tests"),
            whole("num_wrong", "wrong elements; -1 where results are not checked", unit="elements"),
            number("p10_ns", "10th percentile of the iterations", is_optional=True),
            number("median_ns", "median of the iterations", is_optional=True),
            number("p99_ns", "99th percentile of the iterations", is_optional=True),
            number("skew_ns", "mean wait of the first rank for the last", is_optional=True),
        ),
    ),
    Table(
        name="iterations",
        row="an iteration of a case",
        kinds=("coll bench",),
        columns=(
            _CASE,
            whole("iteration", "number of the iteration"),
            whole("duration_ns", "time from the last rank's begin to the last rank's end"),
            whole("skew_ns", "wait of the first rank for the last"),
            whole("last_rank", "rank that began last"),
        ),
    ),
    Table(
        name="ranks",
        row="a rank in a case",
        kinds=("coll bench",),
        columns=(
            _CASE,
            whole("rank", "rank"),
            whole("host", "number of its host"),
            number("late_ns", "mean time after the first rank at which it begins"),
            number("own_ns", "mean time that it spends in the call"),
            whole("times_last", "iterations in which it began last", unit="iterations"),
        ),
    ),
    Table(
        name="model",
        row="a collective at one size, modelled",
        kinds=("coll model",),
        columns=(_OPERATION, _NUM_RANKS, _SIZE, *_modelled()),
    ),
    Table(
        name="fits",
        row="a series: one collective over two sizes or more",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            whole("num_sizes", "measurements of the series", unit="measurements"),
            number("alpha_ns", "time of a call of no bytes, by the fitted line"),
            number("busbw_bps", "bus bandwidth of each further byte; -1 where more bytes take no longer"),
            number("worst_error_fraction", "largest relative error of the line"),
        ),
    ),
    Table(
        name="attribution",
        row="a measured collective beside its model, its time shared out among causes",
        kinds=("coll compare",),
        columns=(
            _OPERATION,
            _IN_PLACE,
            _NUM_RANKS,
            _SIZE,
            number("measured_ps", "measured time"),
            number("bound_ps", "lower bound of any network of such links"),
            number("fair_ps", "modelled time, with max-min fair shares of the links"),
            number("ratio", "`measured_ps` over `fair_ps`"),
            *(number(name, what) for name, what in ATTRIBUTED.items()),
        ),
    ),
    Table(
        name="storms",
        row="a start-up of one pattern and size",
        kinds=("coll init storm",),
        columns=(
            text("pattern", "how the groups are made"),
            whole("ranks", "ranks that start at once", unit="ranks"),
            whole("groups", "groups that they make", unit="groups"),
            whole("operations", "store operations, in closed form", unit="operations"),
            whole("requests", "requests to the store, counted", unit="requests"),
            whole("requests_expected", "requests in closed form; the least where `is_exact` is 0", unit="requests"),
            flag("is_exact", "whether the closed form is exact"),
            whole("connect_ns", "time until all ranks are connected"),
            whole("wall_ns", "time until all groups are made"),
            whole("server_cpu_ns", "processor time of the store"),
            whole("clients_cpu_ns", "processor time of the ranks"),
        ),
    ),
    Table(
        name="growth",
        row="a pattern and a cost, fitted over four sizes or more as constant + linear n + quadratic n²",
        kinds=("coll init storm",),
        columns=(
            text("pattern", "how the groups are made"),
            text("cost", "`requests`, `server_cpu_ns` or `wall_ns`"),
            number("constant", "constant part", unit="of the cost"),
            number("linear", "part for each rank", unit="of the cost"),
            number("quadratic", "part for each pair of ranks", unit="of the cost"),
            number("exponent", "slope of the cost over the ranks, both logarithmic"),
            number("worst_error_fraction", "largest relative error of the fit"),
            whole("extrapolated_ranks", "ranks of the larger job", unit="ranks"),
            number("extrapolated", "cost of the larger job", unit="of the cost"),
            number("quadratic_fraction", "share of the quadratic part in it"),
        ),
    ),
    Table(
        name="gains",
        row="a pattern at one size, beside pattern `legacy`",
        kinds=("coll init storm",),
        columns=(
            whole("ranks", "ranks that start at once", unit="ranks"),
            text("pattern", "how the groups are made"),
            number("requests_times", "requests of `legacy` over its own"),
            number("server_cpu_ns_times", "processor time of the store under `legacy` over its own"),
            number("wall_ns_times", "wall time of `legacy` over its own"),
        ),
    ),
    Table(
        name="startup",
        row="a rank of a start-up that was tried",
        kinds=("coll init check",),
        columns=(
            whole("rank", "rank"),
            whole("elapsed_ns", "time from its first request to the store until its last group is made"),
        ),
    ),
)

"""Tables of sweeps and of the comparison with this machine."""

from fabrictune.foundation.run_tables.schema import TableSchema, flag_column, integer_column, number_column, text_column

TABLES = (
    TableSchema(
        name="points",
        row="a point of a sweep, in the order in which the search proposed them",
        kinds=("sim sweep",),
        columns=(
            integer_column("point", "number of the point"),
            text_column("settings", "its settings, `KEY = VALUE; ...`"),
            text_column("vary.*", "value of each varied key, a column each"),
            integer_column("num_seeds", "runs of the point", unit="runs"),
            flag_column("is_on_front", "whether no other point is better in every objective"),
            flag_column("is_surely_dominated", "whether another point is better beyond the intervals"),
        ),
    ),
    TableSchema(
        name="objectives",
        row="an objective of a point that has results",
        kinds=("sim sweep",),
        columns=(
            integer_column("point", "row of table `points`"),
            text_column("metric", "name of the objective"),
            text_column("unit", "unit of the value"),
            flag_column("is_maximised", "whether more is better"),
            number_column("value", "mean over the seeds", unit="of column `unit`"),
            number_column("low", "lower end of its 95 % interval; the value with one seed", unit="of column `unit`"),
            number_column("high", "upper end of its 95 % interval; the value with one seed", unit="of column `unit`"),
        ),
    ),
    TableSchema(
        name="sensitivity",
        row="a varied key and an objective",
        kinds=("sim sweep",),
        columns=(
            text_column("key", "key of the scenario"),
            text_column("metric", "name of the objective"),
            text_column("measure", "`variance_share` or `rank_correlation`"),
            number_column("value", "value of the measure"),
        ),
    ),
    TableSchema(
        name="comparison",
        row="a collective of a training, measured on this machine and simulated",
        kinds=("validate local",),
        columns=(
            integer_column("step", "step of the training"),
            text_column("operation", "name of the collective"),
            integer_column("bytes", "size as nccl-tests counts it"),
            integer_column("measured_ps", "measured time"),
            integer_column("simulated_ps", "simulated time"),
            number_column("ratio", "`simulated_ps` over `measured_ps`"),
        ),
    ),
    TableSchema(
        name="calibration",
        row="a measured exchange between two processes",
        kinds=("validate local",),
        columns=(integer_column("bytes", "size of the exchange"), integer_column("measured_ps", "its time")),
    ),
)

"""Tables of sweeps and of the comparison with this machine."""

from fabrictune.foundation.run_tables.schema import Table, flag, number, text, whole

TABLES = (
    Table(
        name="points",
        row="a point of a sweep, in the order in which the search proposed them",
        kinds=("sim sweep",),
        columns=(
            whole("point", "number of the point"),
            text("settings", "its settings, `KEY = VALUE; ...`"),
            text("vary.*", "value of each varied key, a column each"),
            whole("num_seeds", "runs of the point", unit="runs"),
            flag("is_on_front", "whether no other point is better in every objective"),
            flag("is_surely_dominated", "whether another point is better beyond the intervals"),
        ),
    ),
    Table(
        name="objectives",
        row="an objective of a point that has results",
        kinds=("sim sweep",),
        columns=(
            whole("point", "row of table `points`"),
            text("metric", "name of the objective"),
            text("unit", "unit of the value"),
            flag("is_maximised", "whether more is better"),
            number("value", "mean over the seeds", unit="of column `unit`"),
            number("low", "lower end of its 95 % interval; the value with one seed", unit="of column `unit`"),
            number("high", "upper end of its 95 % interval; the value with one seed", unit="of column `unit`"),
        ),
    ),
    Table(
        name="sensitivity",
        row="a varied key and an objective",
        kinds=("sim sweep",),
        columns=(
            text("key", "key of the scenario"),
            text("metric", "name of the objective"),
            text("measure", "`variance_share` or `rank_correlation`"),
            number("value", "value of the measure"),
        ),
    ),
    Table(
        name="comparison",
        row="a collective of a training, measured on this machine and simulated",
        kinds=("validate local",),
        columns=(
            whole("step", "step of the training"),
            text("operation", "name of the collective"),
            whole("bytes", "size as nccl-tests counts it"),
            whole("measured_ps", "measured time"),
            whole("simulated_ps", "simulated time"),
            number("ratio", "`simulated_ps` over `measured_ps`"),
        ),
    ),
    Table(
        name="calibration",
        row="a measured exchange between two processes",
        kinds=("validate local",),
        columns=(whole("bytes", "size of the exchange"), whole("measured_ps", "its time")),
    ),
)

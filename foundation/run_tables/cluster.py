"""Tables of a cluster's validation."""

from fabrictune.foundation.run_tables.schema import TableSchema, number_column, text_column

_KINDS = ("validate cluster",)

TABLES = (
    TableSchema(
        name="cluster_stages",
        row="a stage of the validation",
        kinds=_KINDS,
        columns=(
            text_column("stage", "its name"),
            text_column("state", "done, skipped, incomplete, stopped, or not run"),
            text_column("reason", "why it was skipped or is incomplete"),
            number_column("wall_s", "time that it took", unit="s"),
        ),
    ),
    TableSchema(
        name="cluster_measurements",
        row="a measured value beside its prediction",
        kinds=_KINDS,
        columns=(
            text_column("stage", "stage that measured it"),
            text_column("part", "part of the stage, such as a round of concurrent flows"),
            text_column("subject", "node, flow, or collective"),
            text_column("unit", "unit of the values in this row"),
            number_column("measured", "what was measured; -1 failed", unit=""),
            number_column("predicted", "what the model expects; -1 no prediction", unit=""),
            number_column("predicted_low", "its 5th percentile over the hash seeds tried; -1 none", unit=""),
            number_column("predicted_high", "its 95th percentile over the hash seeds tried; -1 none", unit=""),
            number_column("limit", "what is still good; -1 none", unit=""),
            text_column("verdict", "good, bad, failed, or no limit"),
            text_column("detail", "error, or what else is to be said"),
        ),
    ),
)

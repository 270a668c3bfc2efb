"""Tables of the diagnostics of a job's nodes."""

from fabrictune.foundation.run_tables.schema import TableSchema, integer_column, number_column, text_column

_KINDS = ("train diagnose",)

TABLES = (
    TableSchema(
        name="diagnosed_nodes",
        row="a test of a rank, once for each of its figures",
        kinds=_KINDS,
        columns=(
            integer_column("rank", "rank of the diagnosis"),
            text_column("host", "its host"),
            text_column("test", "name of the test"),
            text_column("figure", "name of the figure, which ends in its unit; empty where the test has none"),
            number_column("value", "best of the figure; -1 none", unit=""),
            text_column("digest", "bits of its result, where they are compared"),
            text_column("kind", "what decides these bits: processor or GPU, and torch"),
            text_column("fault", "what needs no comparison to be wrong; empty where nothing is"),
            text_column("skipped", "why the test has no result"),
            number_column("elapsed_s", "time of the test with its process", unit="s"),
        ),
    ),
    TableSchema(
        name="diagnosed_groups",
        row="a test of a group of ranks",
        kinds=_KINDS,
        columns=(
            text_column("test", "name of the test"),
            integer_column("round", "groups of one round were tested at once", unit=""),
            text_column("ranks", "its ranks, with a space between them"),
            number_column("rate_bps", "bus bandwidth of its slowest rank; 0 where it failed"),
            text_column("fault", "what failed; empty where it passed"),
        ),
    ),
)

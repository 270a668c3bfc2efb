"""Tables of a job's spans: its stragglers, and the decay of its speed."""

from fabrictune.foundation.run_tables.schema import TableSchema, integer_column, number_column, text_column

_STRAGGLERS, _DECAY = ("train stragglers",), ("train decay",)

TABLES = (
    TableSchema(
        name="stragglers",
        row="a cause that makes ranks wait, the largest gain first",
        kinds=_STRAGGLERS,
        columns=(
            text_column("cause", "`slow work`, `slow link`, `garbage collection`, `data loading` or `wrong clock`"),
            text_column("ranks", "ranks where it is, empty for the whole job"),
            text_column("hosts", "their machines"),
            integer_column("place", "place in the pipeline of the first of them; -1 for the whole job"),
            text_column("pattern", "`same` in all steps, `rotating` over ranks, or `passing`"),
            number_column("excess_fraction", "beyond peers' work or usual transfers; of stalls and data, of the step"),
            number_column("steps_fraction", "of the steps, those in which it is seen"),
            integer_column("offset_ns", "of a wrong clock, ahead; 0 for others"),
            number_column("gain_fraction", "of the step, predicted without it; -1 not predicted"),
        ),
    ),
    TableSchema(
        name="straggler_arrivals",
        row="a group of ranks, and who comes last to its requests",
        kinds=_STRAGGLERS,
        columns=(
            integer_column("group", "its number", unit=""),
            text_column("axis", "its axis"),
            integer_column("num_requests", "its requests", unit="requests"),
            integer_column("num_late", "of these, with someone late", unit="requests"),
            integer_column("last_rank", "rank that is late most often; -1 none"),
            number_column("last_share_fraction", "its share of the requests with someone late"),
            integer_column("late_ns", "median of its lateness behind the group's median member"),
            text_column("pattern", "`none`, the `same` rank, `rotating`, or `passing`"),
        ),
    ),
    TableSchema(
        name="straggler_heat",
        row="a kind of work or request of a machine at a place of the pipeline",
        kinds=_STRAGGLERS,
        columns=(
            text_column("host", "the machine"),
            integer_column("place", "place in the pipeline"),
            text_column("kind", "kind of pass, or axis and operation of a request"),
            integer_column("num_ranks", "ranks of the machine there", unit="ranks"),
            integer_column("time_ns", "median own work of a rank in a step, or median transfer"),
            number_column(
                "ratio",
                "over the median of peers; of data loading 1 + what it takes of the step beyond peers; "
                "-1 without peers",
                unit="",
            ),
        ),
    ),
    TableSchema(
        name="transfer_rates",
        row="requests of one axis, operation and size between hosts, the most time in all first",
        kinds=_STRAGGLERS,
        columns=(
            text_column("axis", "the axis of their groups"),
            text_column("operation", "what is asked for"),
            integer_column("num_bytes", "size of a request: the full buffer of a rank"),
            integer_column("num_requests", "requests that a rank waited for", unit="requests"),
            integer_column("time_ns", "median time from the last issue to the first end"),
            number_column("rate_bps", "bus bandwidth at that time"),
            number_column("share_fraction", "of the rate of a rank's NIC (`--nic`); -1 without it"),
        ),
    ),
    TableSchema(
        name="decay_parts",
        row="a part of the step, and how it changes over the run",
        kinds=_DECAY,
        columns=(
            text_column("part", "what the time goes into"),
            integer_column("first_ns", "in the first tenth of the steps"),
            integer_column("last_ns", "in the last tenth of the steps"),
            integer_column("growth_ns", "over the run, by a straight line through the means of neighbouring steps"),
            number_column("share_fraction", "of the growth of the step"),
            text_column("ranks", "ranks on which it grows most, empty for all"),
        ),
    ),
    TableSchema(
        name="decay_steps",
        row="a step",
        kinds=_DECAY,
        columns=(
            integer_column("step", "its number"),
            integer_column("step_ns", "its time"),
            integer_column("work_ns", "own passes and updates of its slowest rank"),
            integer_column("garbage_ns", "collections of garbage on the rank with most"),
            integer_column("loading_ns", "wait for data on the rank with most"),
            integer_column("checkpoint_ns", "checkpoints on the rank with most"),
            integer_column("skew_ns", "start skew of gradient sums: the last member behind the median one"),
        ),
    ),
    TableSchema(
        name="decay_differences",
        row="a part of the time to a loss, here and in another run",
        kinds=_DECAY,
        columns=(
            text_column("part", "what the time goes into"),
            integer_column("own_ns", "in this run"),
            integer_column("other_ns", "in the other run"),
            integer_column("change_ns", "this run's beyond the other's"),
            number_column("share_fraction", "of the whole difference"),
        ),
    ),
)

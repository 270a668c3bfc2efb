"""Tables of a training beside its twin."""

from fabrictune.foundation.run_tables.schema import TableSchema, flag_column, integer_column, text_column

_KINDS = ("validate testbed train",)

TABLES = (
    TableSchema(
        name="twin_steps",
        row="a step of a training beside its prediction",
        kinds=_KINDS,
        columns=(
            integer_column("step", "its number", unit=""),
            text_column("state", "warm-up, calibration, within, longer, or shorter than predicted"),
            integer_column("measured_ns", "what it took"),
            integer_column("predicted_ns", "what was predicted; -1 before the calibration has ended"),
            integer_column("half_width_ns", "of the predicted interval, to either side; -1 likewise"),
            integer_column("waited_ns", "for processors, of all threads of all ranks"),
            integer_column("sent_bytes", "that all links counted; -1 without links"),
            integer_column("planned_bytes", "that its requests plan on all links; -1 while connections are made"),
            flag_column("is_alarm", "whether the median of the steps up to it is above the interval"),
        ),
        key="step",
    ),
    TableSchema(
        name="twin_links",
        row="a direction of a link in the last steps, by their median",
        kinds=_KINDS,
        columns=(
            text_column("link", "its two ports"),
            integer_column("sent_bytes", "that it counted in a step"),
            integer_column("planned_bytes", "that a step plans on it"),
            integer_column("busy_ns", "how long packets waited for it in a step"),
            integer_column("planned_ns", "how long a step's planned bytes take at its planned rate"),
        ),
        key="link",
    ),
)

"""Tables of a replayed communication trace: steps, exposed communication and the critical path."""

from fabrictune.foundation.run_tables.schema import TableSchema, integer_column, text_column

REPLAYED = ("sim run", "sweep point")

_PART = text_column("part", "part of the traffic, where a scenario mixes several", is_optional=True)
_STEP = integer_column("step", "number of the step in the trace")

TABLES = (
    TableSchema(
        name="replayed_steps",
        row="a step of a replayed communication trace",
        kinds=REPLAYED,
        columns=(
            _PART,
            _STEP,
            integer_column("begin_ps", "end of the step before it, of all ranks"),
            integer_column("duration_ps", "until the last request of any rank is complete"),
            integer_column("work_ps", "work of a rank, mean over ranks"),
            integer_column("exposed_ps", "exposed communication of all axes, mean over ranks"),
            integer_column("work_alone_ps", "duration if no transfer took time; -1 not computed"),
            integer_column(
                "lower_bound_ps", "duration if transfers shared no link and a NIC sent at its rate; -1 not computed"
            ),
        ),
    ),
    TableSchema(
        name="exposed_communication",
        row="the requests along one axis in a step",
        kinds=REPLAYED,
        columns=(
            _PART,
            _STEP,
            text_column("axis", "axis of the requests, by the trace"),
            integer_column("exposed_ps", "time that a rank waits for them and does no work, mean over ranks"),
            integer_column("max_exposed_ps", "the same of the rank that waits longest"),
            integer_column("rank", "that rank"),
            integer_column("lower_bound_ps", "mean over ranks at the lower bound; -1 not computed"),
        ),
    ),
    TableSchema(
        name="replayed_ranks",
        row="a rank in a step",
        kinds=REPLAYED,
        columns=(
            _PART,
            _STEP,
            integer_column("rank", "the rank"),
            integer_column("duration_ps", "from its last request of the step before to its last of this"),
            integer_column("work_ps", "its work"),
            integer_column("exposed_ps", "its exposed communication of all axes"),
        ),
    ),
    TableSchema(
        name="critical_path",
        row="a stretch of the chain that the end of the job waited for",
        kinds=REPLAYED,
        columns=(
            _PART,
            integer_column("begin_ps", "beginning of the stretch"),
            integer_column("duration_ps", "its time; all stretches add up to that of the job"),
            _STEP,
            text_column("axis", "`work`, or the axis of the requests whose transfers it consists of"),
            text_column("operation", "operation of the requests; empty for work"),
            text_column("tag", "the trace's name of the request"),
            integer_column("rank", "rank that works, or sends first"),
            integer_column("transfers", "transfers one after another; 0 for work", unit="transfers"),
            integer_column(
                "port",
                "busiest port on the path of its longest transfer over the fabric; -1 none",
                refers_to="port",
                refers_where="port",
            ),
        ),
    ),
    TableSchema(
        name="critical_links",
        row="a port that transfers of the critical path cross, the busiest on their paths",
        kinds=REPLAYED,
        columns=(
            _PART,
            integer_column("port", "the port", refers_to="port"),
            integer_column("duration_ps", "time of these transfers"),
            integer_column("transfers", "their number", unit="transfers"),
        ),
    ),
)

"""Tables of a fleet: its nodes, what they are set to, and proposed changes."""

from fabrictune.foundation.run_tables.schema import TableSchema, number_column, text_column

_AUDIT = ("fleet audit",)

TABLES = (
    TableSchema(
        name="fleet_nodes",
        row="a host or switch that was asked",
        kinds=_AUDIT,
        columns=(
            text_column("node", "its name"),
            text_column("role", "host or switch, empty where it was not read"),
            text_column("state", "collected, or why it was not read"),
            text_column("detail", "what was found where it was not read"),
            number_column("wall_s", "time that asking it took; 0 for files", unit="s"),
        ),
    ),
    TableSchema(
        name="fleet_facts",
        row="a value of a node or of a device on it",
        kinds=_AUDIT,
        columns=(
            text_column("node", "its name"),
            text_column("device", "interface, RDMA device, port or GPU; empty for the node itself"),
            text_column("fact", "name of the fact, such as nic.mtu"),
            text_column("value", "its value"),
            text_column("where", "node, file or command, and line"),
        ),
    ),
    TableSchema(
        name="fleet_changes",
        row="a proposed change, which nobody has applied",
        kinds=_AUDIT,
        columns=(
            text_column("node", "host or switch; empty for the job"),
            text_column("kind", "nic: a command; switch: an operation of RFC 6902; env: a setting of the job"),
            text_column("change", "the line"),
            text_column("rule", "rule of the audit that it answers"),
            text_column("effect", "what a model predicts of it, empty where none does"),
        ),
    ),
)

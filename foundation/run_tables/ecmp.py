"""Tables of ECMP studies and path discovery: loads, collisions, outcomes over hash seeds, plans, probed paths."""

from collections.abc import Mapping

from fabrictune.foundation.run_tables.schema import (
    Column,
    TableSchema,
    flag_column,
    integer_column,
    interval_columns,
    number_column,
    text_column,
)

ANALYZED = ("ecmp analyze", "sim run")

_NUM_SEEDS = integer_column("num_seeds", "hash seeds tried; 0 where the figures are exact", unit="seeds")
_SHARES = (
    *interval_columns("overload_probability", "probability that any link is oversubscribed"),
    *interval_columns("worst_load_fraction", "demand over rate of the worst link, mean over seeds"),
    *interval_columns("throughput_fraction", "max-min fair throughput over demand, all traffic"),
    *interval_columns("slowest_fraction", "max-min fair throughput over demand, slowest flow"),
)
_OUTCOME: tuple[Column, ...] = (
    _NUM_SEEDS,
    *_SHARES,
    number_column("worst_load_fraction_p99", "99th percentile of `worst_load_fraction` over seeds"),
    *interval_columns("mean_nic_bps", "mean rate of a sending NIC"),
    *interval_columns("slowest_connection_bps", "rate of the slowest connection, all its queue pairs"),
)
_PROBED: Mapping[str, Column] = {
    "target": integer_column("target_ipv4", "address that was probed", refers_to="ipv4"),
    "path": integer_column("path", "number of the path among those to the target"),
}

TABLES = (
    TableSchema(
        name="loads",
        row="a port that carries a flow",
        kinds=ANALYZED,
        key="port",
        columns=(
            integer_column("port", "port, a row of table `fabric`", refers_to="port"),
            integer_column("flows", "queue pairs whose data leave through it", unit="flows"),
            integer_column("demand_bps", "sum of their demands"),
            integer_column("rate_bps", "rate of the port"),
        ),
    ),
    TableSchema(
        name="collisions",
        row="a queue pair on an oversubscribed port",
        kinds=ANALYZED,
        columns=(
            integer_column("port", "port, a row of table `fabric`", refers_to="port"),
            integer_column("qp", "queue pair"),
        ),
    ),
    TableSchema(
        name="throughput",
        row="a queue pair, all of them active at once",
        kinds=ANALYZED,
        columns=(
            integer_column("qp", "queue pair"),
            number_column("throughput_fraction", "share of its demand that its most oversubscribed port leaves it"),
            integer_column("fair_rate_bps", "its max-min fair rate"),
        ),
    ),
    TableSchema(
        name="seeds",
        row="the fabric with hash seeds that are not known; the table has one row",
        kinds=("ecmp analyze",),
        columns=(
            _NUM_SEEDS,
            *_SHARES,
            *interval_columns("worst_load_fraction_p99", "99th percentile of `worst_load_fraction` over seeds"),
        ),
    ),
    TableSchema(
        name="variants",
        row="a variant of the scenario, measured over hash seeds",
        kinds=("ecmp whatif",),
        columns=(text_column("variant", "name of the variant"), *_OUTCOME),
    ),
    TableSchema(
        name="designs",
        row="a combination of factors, measured over hash seeds",
        kinds=("ecmp factorial",),
        columns=(text_column("design", "names of the factors that are high, `none` without any"), *_OUTCOME),
    ),
    TableSchema(
        name="effects",
        row="a set of factors and a metric",
        kinds=("ecmp factorial",),
        columns=(
            text_column("effect", "names of the factors"),
            text_column("metric", "name of the column of `designs`"),
            number_column("value", "by how much the factors together raise it", unit="of the metric"),
            number_column("low", "lower end of its 95 % interval", unit="of the metric"),
            number_column("high", "upper end of its 95 % interval", unit="of the metric"),
        ),
    ),
    TableSchema(
        name="steps",
        row="a step that the planner tried, measured over hash seeds or for known ones",
        kinds=("ecmp plan",),
        columns=(
            text_column("step", "name of the step"),
            flag_column("knows_seeds", "whether the scenario's own seeds are taken as known"),
            flag_column("is_taken", "whether the step is part of the plan"),
            *_OUTCOME,
        ),
    ),
    TableSchema(
        name="source_ports",
        row="a queue pair of the plan",
        kinds=("ecmp plan",),
        columns=(
            integer_column("queue_pair", "number of the queue pair"),
            text_column("source", "sending NIC, as `host:port` of its first port"),
            text_column("destination", "receiving NIC"),
            integer_column("source_qpn", "queue pair number at the source"),
            integer_column("destination_qpn", "queue pair number at the destination"),
            integer_column("source_port", "UDP source port"),
        ),
    ),
    TableSchema(
        name="placement",
        row="a rank of the plan",
        kinds=("ecmp plan",),
        columns=(
            text_column("job", "its job, where the scenario has parts", is_optional=True),
            integer_column("rank", "rank"),
            text_column("host", "its host"),
            integer_column("gpu", "its GPU on that host"),
            text_column("nic", "its NIC, as `host:port` of its first port"),
        ),
    ),
    TableSchema(
        name="plan_gains",
        row="a part of the traffic, or all of it, with and without the plan",
        kinds=("ecmp plan",),
        key="job",
        columns=(
            text_column("job", "name of the part; `all` for the whole traffic"),
            *(
                column
                for how, meaning in (("predicted", "at max-min fair rates"), ("simulated", "packet by packet"))
                for column in (
                    number_column(f"{how}_before_ps", f"its time as it is, {meaning}; nan where it never ends"),
                    number_column(f"{how}_after_ps", f"its time with the plan, {meaning}"),
                    number_column(f"{how}_gain", "time as it is over time with the plan", unit="times"),
                )
            ),
        ),
    ),
    TableSchema(
        name="probed_flows",
        row="a source port probed towards a target",
        kinds=("topo probe",),
        columns=(
            _PROBED["target"],
            integer_column("source_port", "UDP source port of the probes"),
            _PROBED["path"],
            text_column("ending", "how the path ends"),
        ),
    ),
    TableSchema(
        name="probed_hops",
        row="an address that answered at one distance of a path",
        kinds=("topo probe",),
        columns=(
            _PROBED["target"],
            _PROBED["path"],
            integer_column("distance", "hops from the prober", unit="hops"),
            integer_column("ipv4", "address that answered; -1 none", refers_to="ipv4"),
            text_column("name", "name of that address"),
        ),
    ),
)

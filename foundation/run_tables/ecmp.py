"""Tables of ECMP studies and path discovery: loads, collisions, outcomes over hash seeds, plans, probed paths."""

from collections.abc import Mapping

from fabrictune.foundation.run_tables.schema import Column, Table, flag, interval, number, text, whole

ANALYZED = ("ecmp analyze", "sim run")

_NUM_SEEDS = whole("num_seeds", "hash seeds tried; 0 where the figures are exact", unit="seeds")
_SHARES = (
    *interval("overload_probability", "probability that any link is oversubscribed"),
    *interval("worst_load_fraction", "demand over rate of the worst link, mean over seeds"),
    *interval("throughput_fraction", "max-min fair throughput over demand, all traffic"),
    *interval("slowest_fraction", "max-min fair throughput over demand, slowest flow"),
)
_OUTCOME: tuple[Column, ...] = (
    _NUM_SEEDS,
    *_SHARES,
    number("worst_load_fraction_p99", "99th percentile of `worst_load_fraction` over seeds"),
    *interval("mean_nic_bps", "mean rate of a sending NIC"),
    *interval("slowest_connection_bps", "rate of the slowest connection, all its queue pairs"),
)
_PROBED: Mapping[str, Column] = {
    "target": whole("target_ipv4", "address that was probed", refers_to="ipv4"),
    "path": whole("path", "number of the path among those to the target"),
}

TABLES = (
    Table(
        name="loads",
        row="a port that carries a flow",
        kinds=ANALYZED,
        key="port",
        columns=(
            whole("port", "port, a row of table `fabric`", refers_to="port"),
            whole("flows", "queue pairs whose data leave through it", unit="flows"),
            whole("demand_bps", "sum of their demands"),
            whole("rate_bps", "rate of the port"),
        ),
    ),
    Table(
        name="collisions",
        row="a queue pair on an oversubscribed port",
        kinds=ANALYZED,
        columns=(
            whole("port", "port, a row of table `fabric`", refers_to="port"),
            whole("qp", "queue pair"),
        ),
    ),
    Table(
        name="throughput",
        row="a queue pair, all of them active at once",
        kinds=ANALYZED,
        columns=(
            whole("qp", "queue pair"),
            number("throughput_fraction", "share of its demand that its most oversubscribed port leaves it"),
            whole("fair_rate_bps", "its max-min fair rate"),
        ),
    ),
    Table(
        name="seeds",
        row="the fabric with hash seeds that are not known; the table has one row",
        kinds=("ecmp analyze",),
        columns=(
            _NUM_SEEDS,
            *_SHARES,
            *interval("worst_load_fraction_p99", "99th percentile of `worst_load_fraction` over seeds"),
        ),
    ),
    Table(
        name="variants",
        row="a variant of the scenario, measured over hash seeds",
        kinds=("ecmp whatif",),
        columns=(text("variant", "name of the variant"), *_OUTCOME),
    ),
    Table(
        name="designs",
        row="a combination of factors, measured over hash seeds",
        kinds=("ecmp factorial",),
        columns=(text("design", "names of the factors that are high, `none` without any"), *_OUTCOME),
    ),
    Table(
        name="effects",
        row="a set of factors and a metric",
        kinds=("ecmp factorial",),
        columns=(
            text("effect", "names of the factors"),
            text("metric", "name of the column of `designs`"),
            number("value", "by how much the factors together raise it", unit="of the metric"),
            number("low", "lower end of its 95 % interval", unit="of the metric"),
            number("high", "upper end of its 95 % interval", unit="of the metric"),
        ),
    ),
    Table(
        name="steps",
        row="a step that the planner tried, measured over hash seeds or for known ones",
        kinds=("ecmp plan",),
        columns=(
            text("step", "name of the step"),
            flag("knows_seeds", "whether the scenario's own seeds are taken as known"),
            flag("is_taken", "whether the step is part of the plan"),
            *_OUTCOME,
        ),
    ),
    Table(
        name="source_ports",
        row="a queue pair of the plan",
        kinds=("ecmp plan",),
        columns=(
            whole("queue_pair", "number of the queue pair"),
            text("source", "sending NIC, as `host:port` of its first port"),
            text("destination", "receiving NIC"),
            whole("source_qpn", "queue pair number at the source"),
            whole("destination_qpn", "queue pair number at the destination"),
            whole("source_port", "UDP source port"),
        ),
    ),
    Table(
        name="placement",
        row="a rank of the plan",
        kinds=("ecmp plan",),
        columns=(
            whole("rank", "rank"),
            text("host", "its host"),
            whole("gpu", "its GPU on that host"),
            text("nic", "its NIC, as `host:port` of its first port"),
        ),
    ),
    Table(
        name="probed_flows",
        row="a source port probed towards a target",
        kinds=("topo probe",),
        columns=(
            _PROBED["target"],
            whole("source_port", "UDP source port of the probes"),
            _PROBED["path"],
            text("ending", "how the path ends"),
        ),
    ),
    Table(
        name="probed_hops",
        row="an address that answered at one distance of a path",
        kinds=("topo probe",),
        columns=(
            _PROBED["target"],
            _PROBED["path"],
            whole("distance", "hops from the prober", unit="hops"),
            whole("ipv4", "address that answered; -1 none", refers_to="ipv4"),
            text("name", "name of that address"),
        ),
    ),
)

"""Tables of packet-level runs: the fabric, transfers, ports, queues, samples and faults."""

from fabrictune.foundation.run_tables.schema import TableSchema, flag_column, integer_column, number_column, text_column

SIMULATED = ("sim run", "sweep point", "validate local")
ON_FABRIC = (*SIMULATED, "ecmp analyze")

_PORT = integer_column("port", "port, a row of table `fabric`", refers_to="port")
_QUEUE_PAIR = integer_column("qp", "queue pair; -1 for a transfer that does not use the fabric")
_PAUSES = integer_column("pauses", "pauses begun by PFC", unit="pauses")
_PAUSED = integer_column("paused_ps", "time that PFC paused it")
_MARKED = integer_column("ecn_marked_packets", "packets marked with congestion experienced")
_DEEPEST = integer_column("max_queue_bytes", "deepest queue at any time; -1 where bounded skip does not know")

TABLES = (
    TableSchema(
        name="fabric",
        row="a port: one direction of a link, where packets leave a node",
        kinds=ON_FABRIC,
        key="port",
        columns=(
            _PORT,
            integer_column("node", "node that the port belongs to"),
            text_column("node_name", "name of that node"),
            text_column("node_kind", "`host` or `switch`"),
            integer_column("tier", "0 host, 1 ToR or leaf, 2 aggregation or spine, 3 core; -1 unknown"),
            integer_column("group", "ToR set, pod or other failure domain; -1 none"),
            text_column("port_name", "name of the port within its node"),
            integer_column("peer_port", "port of the link's other direction", refers_to="port"),
            integer_column("rate_bps", "rate of the transmitter"),
            integer_column("delay_ps", "propagation delay of the link"),
            integer_column("nic", "NIC of a host's port; -1 on switches", refers_to="nic"),
            integer_column("rail", "rail of the NIC; -1 none"),
        ),
    ),
    TableSchema(
        name="transfers",
        row="a message from one NIC to another, or a wait that others depend on",
        kinds=SIMULATED,
        columns=(
            integer_column("transfer", "number of the transfer"),
            _QUEUE_PAIR,
            integer_column("source", "sending NIC; a GPU where `qp` is -1", refers_to="nic", refers_where="qp"),
            integer_column("destination", "receiving NIC; a GPU where `qp` is -1", refers_to="nic", refers_where="qp"),
            integer_column("bytes", "payload"),
            integer_column("operation", "row of the communication trace that it comes from; -1 none", is_optional=True),
            integer_column("ready_ps", "instant at which all it depends on is done; -1 never"),
            integer_column("start_ps", "instant at which its first packet is sent; -1 never", is_optional=True),
            integer_column("finish_ps", "instant at which its last byte is delivered; -1 never"),
            integer_column(
                "acknowledged_ps", "instant at which the source knows of its delivery; -1 never", is_optional=True
            ),
            integer_column(
                "packets_sent", "data packets sent, repeated ones included", unit="packets", is_optional=True
            ),
            integer_column("packets_retransmitted", "data packets sent again", unit="packets", is_optional=True),
            integer_column("cnps", "congestion notification packets received", unit="packets", is_optional=True),
            integer_column(
                "finish_low_ps",
                "earliest instant that `finish_ps` may be, with bounded or fluid skip; -1 never",
                is_optional=True,
            ),
            integer_column("finish_high_ps", "latest such instant, with either; -1 never", is_optional=True),
            integer_column("ideal_ps", "time it takes alone on the fabric", is_optional=True),
            number_column("slowdown", "time from ready to finish over `ideal_ps`; nan if unfinished", is_optional=True),
            integer_column(
                "mean_rtt_ps", "mean round trip of its acknowledgements, with `nic`; -1 none", is_optional=True
            ),
            integer_column(
                "mean_endpoint_ps", "part of it spent in the receiving host, with `nic`; -1 none", is_optional=True
            ),
            text_column("part", "part of the traffic, where a scenario mixes several", is_optional=True),
        ),
    ),
    TableSchema(
        name="path_counts",
        row="a path of a queue pair whose packets carry entropy values, where its receiver captures them",
        kinds=SIMULATED,
        columns=(
            _QUEUE_PAIR,
            text_column("links", "its links in the direction of the data, with `; ` between them"),
            number_column("share_fraction", "share of the queue pair's entropy values that take it"),
            integer_column("received_packets", "data packets captured that took it"),
        ),
    ),
    TableSchema(
        name="ports",
        row="a port",
        kinds=SIMULATED,
        key="port",
        columns=(
            _PORT,
            integer_column("tx_bytes", "bytes sent"),
            integer_column("tx_packets", "packets sent"),
            integer_column("data_packets", "data packets sent"),
            integer_column("dropped_packets", "packets dropped"),
            _MARKED,
            _PAUSES,
            _PAUSED,
            _DEEPEST,
        ),
    ),
    TableSchema(
        name="aborts",
        row="a queue pair that ran out of retries",
        kinds=SIMULATED,
        columns=(_QUEUE_PAIR, integer_column("time_ps", "instant at which it gave up")),
    ),
    TableSchema(
        name="queues",
        row="a queue: one priority of a port, where ports have priorities",
        kinds=SIMULATED,
        columns=(
            _PORT,
            integer_column("priority", "priority of the queue"),
            integer_column("tx_bytes", "bytes sent"),
            integer_column("tx_packets", "packets sent"),
            integer_column("dropped_packets", "packets dropped from the queue"),
            _MARKED,
            _DEEPEST,
            _PAUSES,
            _PAUSED,
            integer_column("pause_frames_sent", "pause frames sent through the port", unit="frames"),
            integer_column("pause_frames_received", "pause frames received through the port", unit="frames"),
            integer_column("pause_storms", "times that the watchdog found the queue paused for too long", unit="times"),
            integer_column("input_dropped_packets", "packets that came in through the port and found no buffer"),
            integer_column("max_headroom_bytes", "most headroom that packets from the port took"),
        ),
    ),
    TableSchema(
        name="samples",
        row="a sampled port at one instant",
        kinds=SIMULATED,
        columns=(
            integer_column("time_ps", "instant of the sample"),
            _PORT,
            integer_column("queue_bytes", "bytes in its queues"),
            integer_column("tx_bytes", "bytes sent so far"),
            flag_column("paused", "whether PFC pauses it"),
            integer_column("paused_ps", "time that PFC has paused it so far"),
        ),
    ),
    TableSchema(
        name="flow_samples",
        row="a sampled queue pair at one instant",
        kinds=SIMULATED,
        columns=(
            integer_column("time_ps", "instant of the sample"),
            _QUEUE_PAIR,
            integer_column("rate_bps", "rate that congestion control allows"),
            integer_column("cwnd_bytes", "congestion window"),
            integer_column("rtt_ps", "last round trip measured"),
            integer_column("in_flight_bytes", "bytes sent and not acknowledged"),
            integer_column("acknowledged_packets", "packets acknowledged so far"),
        ),
    ),
    TableSchema(
        name="faults",
        row="a fault of the scenario; goodput is that of all queue pairs together, -1 where there is no such time",
        kinds=SIMULATED,
        columns=(
            integer_column("fault", "number of the fault in the scenario"),
            text_column("description", "its kind and place"),
            integer_column("begin_ps", "instant at which it begins"),
            integer_column("end_ps", "instant at which it ends for the last time; -1 never"),
            integer_column("times", "times that it occurs", unit="times"),
            integer_column("goodput_before_bps", "goodput before it"),
            integer_column("goodput_during_bps", "goodput from its first begin to its last end"),
            integer_column("goodput_after_bps", "goodput after it"),
        ),
    ),
    TableSchema(
        name="goodput",
        row="a span between instants at which a fault begins or ends, from the run's begin to its end",
        kinds=SIMULATED,
        columns=(
            integer_column("begin_ps", "its begin"),
            integer_column("end_ps", "its end"),
            integer_column("goodput_bps", "goodput of all queue pairs together in it"),
        ),
    ),
    TableSchema(
        name="alone",
        row="a part of a mixture, beside the others and without them",
        kinds=SIMULATED,
        key="part",
        columns=(
            text_column("part", "name of the part"),
            number_column("beside_ps", "its time beside the others: first transfer ready to last byte; inf if never"),
            number_column("alone_ps", "its time without what the others send, on the same hosts and paths"),
            number_column("slowdown", "time beside the others over time alone", unit="times"),
        ),
    ),
    TableSchema(
        name="drops",
        row="a port and a cause by which faults cost packets; they are part of `ports.dropped_packets`",
        kinds=SIMULATED,
        columns=(
            _PORT,
            text_column("cause", "`link down`, `no route` or `bit error`"),
            integer_column("packets", "packets lost"),
        ),
    ),
)

"""Tables of packet-level runs: the fabric, transfers, ports, queues, samples and faults."""

from fabrictune.foundation.run_tables.schema import Table, flag, number, text, whole

SIMULATED = ("sim run", "sweep point", "validate local")
ON_FABRIC = (*SIMULATED, "ecmp analyze")

_PORT = whole("port", "port, a row of table `fabric`", refers_to="port")
_QUEUE_PAIR = whole("qp", "queue pair; -1 for a transfer that does not use the fabric")
_PAUSES = whole("pauses", "pauses begun by PFC", unit="pauses")
_PAUSED = whole("paused_ps", "time that PFC paused it")
_MARKED = whole("ecn_marked_packets", "packets marked with congestion experienced")
_DEEPEST = whole("max_queue_bytes", "deepest queue at any time")

TABLES = (
    Table(
        name="fabric",
        row="a port: one direction of a link, where packets leave a node",
        kinds=ON_FABRIC,
        key="port",
        columns=(
            _PORT,
            whole("node", "node that the port belongs to"),
            text("node_name", "name of that node"),
            text("node_kind", "`host` or `switch`"),
            whole("tier", "0 host, 1 ToR or leaf, 2 aggregation or spine, 3 core; -1 unknown"),
            whole("group", "ToR set, pod or other failure domain; -1 none"),
            text("port_name", "name of the port within its node"),
            whole("peer_port", "port of the link's other direction", refers_to="port"),
            whole("rate_bps", "rate of the transmitter"),
            whole("delay_ps", "propagation delay of the link"),
            whole("nic", "NIC of a host's port; -1 on switches", refers_to="nic"),
            whole("rail", "rail of the NIC; -1 none"),
        ),
    ),
    Table(
        name="transfers",
        row="a message from one NIC to another, or a wait that others depend on",
        kinds=SIMULATED,
        columns=(
            whole("transfer", "number of the transfer"),
            _QUEUE_PAIR,
            whole("source", "sending NIC; a GPU where `qp` is -1", refers_to="nic", refers_where="qp"),
            whole("destination", "receiving NIC; a GPU where `qp` is -1", refers_to="nic", refers_where="qp"),
            whole("bytes", "payload"),
            whole("operation", "row of the communication trace that it comes from; -1 none", is_optional=True),
            whole("ready_ps", "instant at which all it depends on is done; -1 never"),
            whole("start_ps", "instant at which its first packet is sent; -1 never", is_optional=True),
            whole("finish_ps", "instant at which its last byte is delivered; -1 never"),
            whole("acknowledged_ps", "instant at which the source knows of its delivery; -1 never", is_optional=True),
            whole("packets_sent", "data packets sent, repeated ones included", unit="packets", is_optional=True),
            whole("packets_retransmitted", "data packets sent again", unit="packets", is_optional=True),
            whole("cnps", "congestion notification packets received", unit="packets", is_optional=True),
            whole("ideal_ps", "time it takes alone on the fabric", is_optional=True),
            number("slowdown", "time from ready to finish over `ideal_ps`; nan if unfinished", is_optional=True),
            whole("mean_rtt_ps", "mean round trip of its acknowledgements, with `nic`; -1 none", is_optional=True),
            whole("mean_endpoint_ps", "part of it spent in the receiving host, with `nic`; -1 none", is_optional=True),
            text("part", "part of the traffic, where a scenario mixes several", is_optional=True),
        ),
    ),
    Table(
        name="ports",
        row="a port",
        kinds=SIMULATED,
        key="port",
        columns=(
            _PORT,
            whole("tx_bytes", "bytes sent"),
            whole("tx_packets", "packets sent"),
            whole("data_packets", "data packets sent"),
            whole("dropped_packets", "packets dropped"),
            _MARKED,
            _PAUSES,
            _PAUSED,
            _DEEPEST,
        ),
    ),
    Table(
        name="aborts",
        row="a queue pair that ran out of retries",
        kinds=SIMULATED,
        columns=(_QUEUE_PAIR, whole("time_ps", "instant at which it gave up")),
    ),
    Table(
        name="queues",
        row="a queue: one priority of a port, where ports have priorities",
        kinds=SIMULATED,
        columns=(
            _PORT,
            whole("priority", "priority of the queue"),
            whole("tx_bytes", "bytes sent"),
            whole("tx_packets", "packets sent"),
            whole("dropped_packets", "packets dropped from the queue"),
            _MARKED,
            _DEEPEST,
            _PAUSES,
            _PAUSED,
            whole("pause_frames_sent", "pause frames sent through the port", unit="frames"),
            whole("pause_frames_received", "pause frames received through the port", unit="frames"),
            whole("pause_storms", "times that the watchdog found the queue paused for too long", unit="times"),
            whole("input_dropped_packets", "packets that came in through the port and found no buffer"),
            whole("max_headroom_bytes", "most headroom that packets from the port took"),
        ),
    ),
    Table(
        name="samples",
        row="a sampled port at one instant",
        kinds=SIMULATED,
        columns=(
            whole("time_ps", "instant of the sample"),
            _PORT,
            whole("queue_bytes", "bytes in its queues"),
            whole("tx_bytes", "bytes sent so far"),
            flag("paused", "whether PFC pauses it"),
            whole("paused_ps", "time that PFC has paused it so far"),
        ),
    ),
    Table(
        name="flow_samples",
        row="a sampled queue pair at one instant",
        kinds=SIMULATED,
        columns=(
            whole("time_ps", "instant of the sample"),
            _QUEUE_PAIR,
            whole("rate_bps", "rate that congestion control allows"),
            whole("cwnd_bytes", "congestion window"),
            whole("rtt_ps", "last round trip measured"),
            whole("in_flight_bytes", "bytes sent and not acknowledged"),
            whole("acknowledged_packets", "packets acknowledged so far"),
        ),
    ),
    Table(
        name="faults",
        row="a fault of the scenario; goodput is that of all queue pairs together, -1 where there is no such time",
        kinds=SIMULATED,
        columns=(
            whole("fault", "number of the fault in the scenario"),
            text("description", "its kind and place"),
            whole("begin_ps", "instant at which it begins"),
            whole("end_ps", "instant at which it ends for the last time; -1 never"),
            whole("times", "times that it occurs", unit="times"),
            whole("goodput_before_bps", "goodput before it"),
            whole("goodput_during_bps", "goodput from its first begin to its last end"),
            whole("goodput_after_bps", "goodput after it"),
        ),
    ),
    Table(
        name="drops",
        row="a port and a cause by which faults cost packets; they are part of `ports.dropped_packets`",
        kinds=SIMULATED,
        columns=(
            _PORT,
            text("cause", "`link down`, `no route` or `bit error`"),
            whole("packets", "packets lost"),
        ),
    ),
)

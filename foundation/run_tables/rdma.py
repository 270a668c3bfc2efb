"""Tables of RDMA: bandwidths and latencies, retransmission timers, and flaps of a job's link."""

from fabrictune.foundation.run_tables.schema import TableSchema, flag_column, integer_column, number_column, text_column

TABLES = (
    TableSchema(
        name="rdma_transfers",
        row="a measured case",
        kinds=("rdma bw", "rdma lat", "rdma matrix"),
        columns=(
            text_column("sender", "worker that sends"),
            text_column("receiver", "worker that receives"),
            integer_column("queue_pairs", "queue pairs in use", unit="queue pairs"),
            integer_column("size_bytes", "size of a message"),
            integer_column("directions", "1, or 2 where both send", unit="directions"),
            number_column("bandwidth_bps", "bandwidth of all directions together; 0 not measured"),
            number_column("median_ns", "median latency; 0 not measured"),
            number_column("p99_ns", "99th percentile of the latency; 0 not measured"),
        ),
    ),
    TableSchema(
        name="trials",
        row="a cut of a real adapter's path",
        kinds=("rdma timers measure",),
        columns=(
            integer_column("timeout", "local ACK timeout exponent"),
            integer_column("retries", "retry count", unit="retries"),
            integer_column("cut_ns", "time that the path was cut; -1 for good"),
            integer_column(
                "status",
                "status of the completion that ended the trial",
                codes={-1: "none", 0: "success", 12: "retry exceeded"},
            ),
            integer_column("after_ns", "time from the cut to that completion"),
            integer_column("model_ns", "the same by the timer profile; -1 never"),
            integer_column("retransmissions", "retransmissions counted by the adapter; -1 not counted", unit="packets"),
        ),
    ),
    TableSchema(
        name="timers",
        row="an adapter with one pair of settings; -1 for never, and for not measured",
        kinds=("rdma timers simulate",),
        columns=(
            text_column("profile", "timer profile of the adapter"),
            text_column("confidence", "where the profile comes from"),
            integer_column("timeout", "local ACK timeout exponent"),
            integer_column("retries", "retry count", unit="retries"),
            number_column("gives_up_ns", "time after which a queue pair gives up on a dead link, by the model"),
            number_column("simulated_gives_up_ns", "the same in the engine"),
            number_column("measured_gives_up_ns", "the same on a device"),
            number_column("flap_ns", "time that the link is down"),
            number_column("stall_ns", "time that the flap stalls traffic, by the model"),
            number_column("simulated_stall_ns", "the same in the engine"),
            number_column("measured_stall_ns", "the same on a device"),
        ),
    ),
    TableSchema(
        name="flaps",
        row="a flap of a real job's link",
        kinds=("rdma flap-job",),
        columns=(
            integer_column("flap_ns", "length of the flap that was asked for"),
            integer_column("down_ns", "time that the link was down"),
            number_column("tcp_timeout_ns", "TCP's retransmission timeout before the flap"),
            number_column("tcp_resumes_ns", "time until TCP's first retransmission over the restored link"),
            integer_column("stall_ns", "time until the interrupted iteration ended"),
        ),
    ),
    TableSchema(
        name="rdma",
        row="a flap and an adapter: the same flap over RDMA, predicted",
        kinds=("rdma flap-job",),
        columns=(
            text_column("profile", "timer profile of the adapter"),
            integer_column("flap_ns", "length of the flap that was asked for"),
            number_column("resumes_ns", "time until traffic resumes; -1 never"),
        ),
    ),
    TableSchema(
        name="nic_counters",
        row="a counter of a NIC",
        kinds=("rdma counters",),
        columns=(
            text_column("device", "device and port, empty where the file does not name it"),
            text_column("counter", "name of the counter"),
            text_column("class", "what it counts, empty where that is not known"),
            text_column("unit", "unit of the rise, empty for events"),
            number_column("before", "value in the first of two snapshots, as it was printed; -1 with one"),
            number_column("after", "value in the second snapshot, or the only one"),
            number_column(
                "rise", "difference in the unit, with one snapshot the total; -1 unknown, since the counter was reset"
            ),
            flag_column("has_wrapped", "whether it wrapped at 2^32 in between"),
            flag_column("is_saturated", "whether it stands at its largest value and may have risen further"),
        ),
    ),
)

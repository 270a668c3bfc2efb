"""Tables of RDMA: bandwidths and latencies, retransmission timers, and flaps of a job's link."""

from fabrictune.foundation.run_tables.schema import Table, number, text, whole

TABLES = (
    Table(
        name="rdma_transfers",
        row="a measured case",
        kinds=("rdma bw", "rdma lat", "rdma matrix"),
        columns=(
            text("sender", "worker that sends"),
            text("receiver", "worker that receives"),
            whole("queue_pairs", "queue pairs in use", unit="queue pairs"),
            whole("size_bytes", "size of a message"),
            whole("directions", "1, or 2 where both send", unit="directions"),
            number("bandwidth_bps", "bandwidth of all directions together; 0 not measured"),
            number("median_ns", "median latency; 0 not measured"),
            number("p99_ns", "99th percentile of the latency; 0 not measured"),
        ),
    ),
    Table(
        name="trials",
        row="a cut of a real adapter's path",
        kinds=("rdma timers measure",),
        columns=(
            whole("timeout", "local ACK timeout exponent"),
            whole("retries", "retry count", unit="retries"),
            whole("cut_ns", "time that the path was cut; -1 for good"),
            whole(
                "status",
                "status of the completion that ended the trial",
                codes={-1: "none", 0: "success", 12: "retry exceeded"},
            ),
            whole("after_ns", "time from the cut to that completion"),
            whole("model_ns", "the same by the timer profile; -1 never"),
            whole("retransmissions", "retransmissions counted by the adapter; -1 not counted", unit="packets"),
        ),
    ),
    Table(
        name="timers",
        row="an adapter with one pair of settings; -1 for never, and for not measured",
        kinds=("rdma timers simulate",),
        columns=(
            text("profile", "timer profile of the adapter"),
            text("confidence", "where the profile comes from"),
            whole("timeout", "local ACK timeout exponent"),
            whole("retries", "retry count", unit="retries"),
            number("gives_up_ns", "time after which a queue pair gives up on a dead link, by the model"),
            number("simulated_gives_up_ns", "the same in the engine"),
            number("measured_gives_up_ns", "the same on a device"),
            number("flap_ns", "time that the link is down"),
            number("stall_ns", "time that the flap stalls traffic, by the model"),
            number("simulated_stall_ns", "the same in the engine"),
            number("measured_stall_ns", "the same on a device"),
        ),
    ),
    Table(
        name="flaps",
        row="a flap of a real job's link",
        kinds=("rdma flap-job",),
        columns=(
            whole("flap_ns", "length of the flap that was asked for"),
            whole("down_ns", "time that the link was down"),
            number("tcp_timeout_ns", "TCP's retransmission timeout before the flap"),
            number("tcp_resumes_ns", "time until TCP's first retransmission over the restored link"),
            whole("stall_ns", "time until the interrupted iteration ended"),
        ),
    ),
    Table(
        name="rdma",
        row="a flap and an adapter: the same flap over RDMA, predicted",
        kinds=("rdma flap-job",),
        columns=(
            text("profile", "timer profile of the adapter"),
            whole("flap_ns", "length of the flap that was asked for"),
            number("resumes_ns", "time until traffic resumes; -1 never"),
        ),
    ),
)

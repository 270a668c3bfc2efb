"""Rules of jobs in a log of NCCL: what makes a bus bandwidth low and stands in the log."""

from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.findings import Severity

_LOG = "Lines of the NCCL log, quoted with file and line."
_GUIDE = "NCCL user guide, environment variables"

SOCKET_NETWORK = Rule(
    id="nccl.socket-network",
    severity=Severity.ERROR,
    title="TCP sockets between hosts",
    meaning="Connections between hosts go over NET/Socket, TCP sockets through the kernel.",
    impact="Processors copy every byte: a few GB/s a host, whatever the adapters' rate.",
    evidence=_LOG,
    next_step="check `ibv_devinfo` on the host, in its container too, and NCCL_IB_DISABLE, NCCL_NET and NCCL_IB_HCA",
)
SHARED_NIC = Rule(
    id="nccl.shared-nic",
    severity=Severity.WARNING,
    title="GPUs that share a NIC",
    meaning="More GPUs of a host than it has network devices in use: several send and receive through one.",
    impact="These GPUs share the rate of one NIC: with four of them an all-to-all gets a quarter each.",
    evidence=_LOG + " Devices are those that NET/IB found and those that connections use.",
    next_step="compare with the NICs that the host has (`ibv_devices`); name all of them in NCCL_IB_HCA, or unset it",
)
HCA_LIST = Rule(
    id="nccl.hca-list",
    severity=Severity.WARNING,
    title="NCCL_IB_HCA that does not fit the devices",
    meaning="NCCL_IB_HCA names a device that NET/IB did not find on a host, or matches more devices than it names.",
    impact="GPUs use other devices than intended, or sockets where no device is left.",
    evidence=f"{_LOG} {_GUIDE}, NCCL_IB_HCA: a name without `=` before the list is a prefix.",
    next_step="check name and port with `ibv_devinfo -d NAME`; begin the list with `=` for whole names",
)
NO_GPU_DIRECT = Rule(
    id="nccl.no-gpu-direct",
    severity=Severity.WARNING,
    title="Connections without GPUDirect RDMA",
    meaning="Connections between hosts copy their data through host memory, because the NIC does not reach the GPU's.",
    impact="Every byte crosses PCIe and memory twice more, which often costs half of the bandwidth.",
    evidence=_LOG,
    next_step="load nvidia_peermem or use a kernel with DMA-BUF; where the log says a distance, the NIC is too far "
    "from the GPU: NCCL_NET_GDR_LEVEL",
)
UNEQUAL_SETTING = Rule(
    id="nccl.unequal-setting",
    severity=Severity.WARNING,
    title="Setting or version that differs between processes",
    meaning="Processes of one job log different values of a setting, or different versions of NCCL.",
    impact="Ranks may choose different algorithms or devices; the slowest path sets the pace, or the job hangs.",
    evidence=_LOG,
    next_step="set it alike on every host; srun and mpirun pass the environment of the first host with -x or --export",
)
LIMITING_SETTING = Rule(
    id="nccl.limiting-setting",
    severity=Severity.WARNING,
    title="Setting that takes a path or a choice away",
    meaning="A setting turns a transport off or fixes what NCCL would choose by size.",
    impact="Some sizes, or some connections, run slower than without it.",
    evidence=f"{_LOG} {_GUIDE}.",
    next_step="unset it and measure again",
    other_severities=((Severity.INFO, "the setting fixes a choice that is often wanted in a test"),),
)
PARTIAL_LOG = Rule(
    id="nccl.partial-log",
    severity=Severity.INFO,
    title="Hosts without messages in the log",
    meaning="Hosts of the job wrote no message into the logs that were given.",
    impact="Their devices and settings are not known; the other hosts' are taken to hold for them.",
    evidence=_LOG,
    next_step="pass NCCL_DEBUG=INFO to every host, with NCCL_DEBUG_FILE=nccl.%h.%p, and give all files",
)
FEW_FLOWS = Rule(
    id="nccl.few-flows",
    severity=Severity.INFO,
    title="One queue pair a connection over Ethernet",
    meaning="Connections over RoCE have one queue pair each, and so one source port for the switches to hash.",
    impact="With few flows two of them often share an uplink while others stay idle.",
    evidence=f"{_LOG} {_GUIDE}, NCCL_IB_QPS_PER_CONNECTION.",
    next_step="try NCCL_IB_QPS_PER_CONNECTION=4; `ecmp analyze` of this log shows the links on an imported fabric",
)
FAR_NIC = Rule(
    id="nccl.far-nic",
    severity=Severity.WARNING,
    title="GPU that uses a NIC farther than its nearest",
    meaning="A connection of a GPU goes through a network device that lies farther from it than another of the host.",
    impact="Its bytes cross the host bridge or the link between processors, which others use as well.",
    evidence="The topology of the host (NCCL_TOPO_DUMP_FILE), and the devices of the log's connections.",
    next_step="name the nearest device in NCCL_IB_HCA, or give NCCL the topology of the host (NCCL_TOPO_FILE) where a "
    "virtual machine hides it",
)
WARNED = Rule(
    id="nccl.warning",
    severity=Severity.WARNING,
    title="Warning of NCCL",
    meaning="NCCL logged a warning that no other rule explains.",
    impact="What it says, often the end of the job.",
    evidence=_LOG,
    next_step="look it up in the source or the issues of NCCL",
)
LAGGING_RANK = Rule(
    id="nccl.lagging-rank",
    severity=Severity.WARNING,
    title="Ranks behind the others",
    meaning="Ranks of a communicator have launched fewer collectives than others, when RAS asked them.",
    impact="The others wait for them. In a running job the counts move on; in a hanging one these ranks are the first "
    "to look at.",
    evidence="The collective counts of each rank in RAS's answer.",
    next_step="ask again: if the counts stand still, look at these processes with py-spy or cuda-gdb",
)
MISSING_RANK = Rule(
    id="nccl.missing-rank",
    severity=Severity.ERROR,
    title="Ranks that do not answer",
    meaning="RAS got no answer from ranks of a communicator, or considers their processes dead.",
    impact="Collectives with these ranks never end.",
    evidence="The list of missing ranks in RAS's answer.",
    next_step="look at the process and its host; a dead one ended for a reason that its own log has",
)
FAILED_RANK = Rule(
    id="nccl.failed-rank",
    severity=Severity.ERROR,
    title="Ranks with an error",
    meaning="Ranks report an asynchronous error, a failed initialisation, or that they were aborted.",
    impact="Their communicator cannot be used any more.",
    evidence="The status of each rank in RAS's answer, by the numbers of ncclResult_t.",
    next_step="look for the first warning in the log of these ranks",
)

JOBS = (
    SOCKET_NETWORK,
    SHARED_NIC,
    HCA_LIST,
    NO_GPU_DIRECT,
    UNEQUAL_SETTING,
    LIMITING_SETTING,
    PARTIAL_LOG,
    FEW_FLOWS,
    FAR_NIC,
    WARNED,
)
STATES = (LAGGING_RANK, MISSING_RANK, FAILED_RANK)

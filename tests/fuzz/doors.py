"""The commands that read a file, each with the files it is tried on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.samples import Samples

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "topology"
COUNTERS = tuple(
    ROOT / "tests" / "golden" / "counters" / name for name in ("before.txt", "after.txt", "statistic.json")
)
FLOWS = tuple(ROOT / "tests" / "golden" / "flows" / name for name in ("chain.cm", "flow.txt"))
PERFTEST = tuple(
    ROOT / "tests" / "golden" / "perftest" / name for name in ("read_lat.txt", "bidirectional.txt", "write_bw.json")
)
LOADS = (ROOT / "tests" / "golden" / "experts" / "loads.csv",)
CHOICES = ROOT / "tests" / "golden" / "hash_learning" / "choices.csv"
FAILURES = tuple(ROOT / "tests" / "golden" / "failures" / name for name in ("ours.csv", "ours.yaml"))
GRAY_LOSS = (ROOT / "tests" / "golden" / "gray_loss" / "counts.csv",)
SURVIVE = ("--gpus", "64", "--runs", "0", "--out")
INVENTORIES = ROOT / "tests" / "golden" / "fleet" / "inventories"
PLACEMENTS = ROOT / "tests" / "golden" / "placement"
HOST_FILES = ("four-ranks.hosts", "slots.hosts", "ranks.rankfile", "placement.csv")
FILE, OUT = "FILE", "OUT"  # stand for the damaged file, and for where a result goes
FABRICS = (
    *("clab/clos02.clab.yml", "clab/01-linux-nodes.clab.yml", "clab/basic-clab-sonic-l2-evpn.clab.yml"),
    *("ib/ib_traffic_topo_aware_ibnetdiscover.txt", "ib/opensm_doc_chassis.ibnetdiscover.txt"),
    *("lldp/spine01.json0.json", "lldp/lldpctl.json", "sim/hpcc_topology.txt", "sim/leaf_spine_tiny.topo"),
    *("sonic/t1-sample-graph-mlnx.minigraph.xml", "sonic/t0-s6000.config_db.json", "sonic/asic0.config_db.json"),
)
GOLDEN_FABRICS = (
    *("lab.cabling.csv", "servers.simai.txt", "lab.infragraph.yaml", "pod.lldp.output", "tor1.minigraph.xml"),
    *(
        "lab.clab.yml",
        "lab.fabric.json",
        "tree.topo",
        "leaf1.config_db.json",
        "subnet.ibnetdiscover",
        "leaf1.lldp.json",
        "subnet.ports.txt",
        "subnet.iblinkinfo.txt",
        "subnet.iblinkinfo-l.txt",
        "lab.ibsim.txt",
        "leaf1.appl_db.json",
        "spine1.redis.json",
        "pod.switches.txt",
        "spine1.eos.txt",
        "leaf1.keyvalue.txt",
    ),
)
SWITCHES = ("qos-leaf1.config_db.json", "qos-spine1.config_db.json")
REAL_SWITCHES = ("sonic/t0-s6000.config_db.json", "sonic/asic0.config_db.json")
NCCL = ROOT / "tests" / "golden" / "nccl"
HANGS = ROOT / "tests" / "golden" / "hangs"
NCCL_LOGS = tuple(sorted(NCCL.glob("*.log")))
WORKLOAD = "trace/workload_analytical.txt"
TRACES = ("trace/custom_allreduce.0.et", "trace/nccl_data.json.gz")
LOGS = ("nccl/nccl_allreduce.log", "nccl/sendrecv_roce_4gpu.log", "nccl/ib_loopback_all_sizes.log")
OBSERVED = ("nccl/sendrecv_roce_4gpu.log", "nccl/ncv4-graph.xml", "nccl/ndv4-topo.xml", "pcap/roce_rc_send_60.pcap")
REPLAY = """name: replay
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 2, tiers: 2}
traffic: {workload: comm_trace, file: FILE, layout: {tp: 2, dp: 2}}
"""
LISTED = """name: listed
fabric: {builder: clos, num_hosts: 66, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2}
traffic: {workload: traffic_trace, file: FILE}
"""
WATCHED = """name: watched
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 2, tiers: 2}
traffic:
  workload: observed
  files: [FILE]
  endpoints:
  - {observed: MOC-R4PCC04U37/mlx5_5, nic: "host0:nic0"}
  - {observed: MOC-R4PCC04U35/mlx5_5, nic: "host2:nic0"}
  - {observed: 192.168.70.4, nic: "host0:nic1"}
  - {observed: 192.168.70.6, nic: "host2:nic1"}
"""
SIMCCL = """name: simccl
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 1, nics_per_host: 2, tiers: 2, uplinks_per_tor: 1}
traffic: {workload: observed, format: simccl, files: [FILE], hosts: [host0, host1]}
"""
SKEWED = """name: skewed
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2}
traffic:
  {workload: moe, layout: {dp: 4, ep: 4}, num_tokens: 64, width: 128, loads: FILE,
   experts: {num_experts: 16, num_choices: 2}}
"""
PLACED = """name: placed
fabric: {file: FILE}
traffic: {workload: permutation, message: 1 KB}
"""
HOSTED = """name: hosted
fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic: {workload: neighbours, layout: {dp: 4}, gpus_per_host: 2, placement: FILE, message: 1 KB}
"""
PORTED = f"""name: ported
fabric: {{builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}}
traffic: {{workload: neighbours, layout: {{dp: 4}}, placement: {PLACEMENTS / "four-ranks.hosts"}, message: 1 KB}}
source_ports: FILE
"""


@dataclass(frozen=True, kw_only=True)
class Door:
    """A command and the files, or folders of files, of which it is given a damaged copy."""

    name: str
    words: Sequence[str]
    files: Sequence[Path]
    scenario: str = ""  # written beside the file, and given in its place
    rules: bool = False  # the file is a site's rules


def make_doors(samples: Samples, real_data: Path | None) -> list[Door]:
    """Return all doors; without `real_data` those with files of our own."""

    def real(*names: str) -> tuple[Path, ...]:
        return tuple(real_data / name for name in names) if real_data else ()

    inputs = samples.inputs
    fabrics = (*(GOLDEN / name for name in GOLDEN_FABRICS), *real(*FABRICS), *inputs.cablings)
    switches = (*(GOLDEN / name for name in SWITCHES), *real(*REAL_SWITCHES))
    scenarios = (*sorted((ROOT / "scenarios").glob("*.yaml")), *inputs.jobs, *inputs.flaps)
    traces = (*inputs.workloads, *real(*TRACES), *samples.traces)
    measurements = (*inputs.measurements, *real("nccl/nccl_allreduce.log"))
    counters = (*COUNTERS, *real("counters/procfs_mlx5_0_and_ecn.txt", "counters/mlnx_qos_lossless.txt"))
    perftest = (*PERFTEST, *real("nccl/ib_loopback_all_sizes.log"))
    flows = (*FLOWS, *real("sim/incast.cm", "sim/hpcc_flow.txt"))
    out = ("--out", f"{OUT}.parquet")
    lab = str(GOLDEN / "lab.fabric.json")
    profiles = sorted((ROOT / "hardware" / "profiles").glob("*.yaml"))
    doors = [
        Door(name="hardware show", words=["hardware", "show", FILE, "--json"], files=profiles),
        Door(name="topo show", words=["topo", "show", FILE], files=fabrics),
        Door(name="topo validate", words=["topo", "validate", FILE, "--json"], files=fabrics),
        Door(name="topo import", words=["topo", "import", FILE, "--out", f"{OUT}.json"], files=fabrics),
        Door(name="topo import, QoS", words=["topo", "import", FILE, "--with-qos", "--json"], files=switches),
        Door(name="topo export", words=["topo", "export", FILE, "--out", f"{OUT}.graphml"], files=fabrics),
        Door(name="topo diff", words=["topo", "diff", lab, FILE], files=fabrics),
        Door(name="scenario check", words=["scenario", "check", FILE], files=scenarios),
        Door(name="ecmp analyze", words=["ecmp", "analyze", FILE, "--out", OUT], files=inputs.jobs),
        Door(name="ecmp analyze, fabric", words=["ecmp", "analyze", FILE, "--json"], files=fabrics, scenario=PLACED),
        Door(name="ecmp analyze, trace", words=["ecmp", "analyze", FILE, "--json"], files=traces, scenario=REPLAY),
        Door(name="trace show", words=["trace", "show", FILE, "--ranks", "4"], files=traces),
        Door(name="trace timeline", words=["trace", "timeline", FILE, "--out", f"{OUT}.pftrace"], files=traces),
        Door(name="trace import", words=["trace", "import", FILE, "--ranks", "4", *out], files=traces),
        Door(name="coll import", words=["coll", "import", FILE, "--out", OUT], files=measurements),
        Door(
            name="coll import, Inspector",
            words=["coll", "import", FILE, "--out", OUT],
            files=(NCCL / "inspector.jsonl",),
        ),
        Door(
            name="coll topology",
            words=["coll", "topology", FILE],
            files=(NCCL / "topology.txt", *real("nccl/ncv4-topo.xml", "nccl/ndv4-topo.xml")),
        ),
        Door(
            name="diagnose",
            words=["diagnose", FILE, "--out", OUT],
            files=(*sorted(HANGS.iterdir()), NCCL / "ras.json", NCCL / "inspector.jsonl", *samples.dumps),
        ),
        Door(name="coll ras", words=["coll", "ras", FILE], files=(NCCL / "ras.json",)),
        Door(
            name="ecmp analyze, SimCCL", words=["ecmp", "analyze", FILE], files=(NCCL / "simccl.csv",), scenario=SIMCCL
        ),
        Door(name="coll explain", words=["coll", "explain", FILE, "--json"], files=NCCL_LOGS),
        Door(name="coll compare", words=["coll", "compare", FILE, "--out", OUT], files=measurements),
        Door(name="scenario check, flows", words=["scenario", "check", FILE], files=flows, scenario=LISTED),
        Door(name="ecmp learn-hash", words=["ecmp", "learn-hash", FILE], files=(CHOICES,)),
        Door(name="ecmp analyze, loads", words=["ecmp", "analyze", FILE, "--json"], files=LOADS, scenario=SKEWED),
        Door(
            name="scenario check, placement",
            words=["scenario", "check", FILE],
            files=[PLACEMENTS / name for name in HOST_FILES],
            scenario=HOSTED,
        ),
        Door(
            name="scenario check, source ports",
            words=["scenario", "check", FILE],
            files=[PLACEMENTS / "source_ports.csv"],
            scenario=PORTED,
        ),
        Door(
            name="validate fit",
            words=["validate", "fit", FILE, "--out", f"{OUT}.yaml", "--record", OUT],
            files=(*measurements, *perftest),
        ),
        Door(
            name="validate fit, counters",
            words=[
                *("validate", "fit", str(inputs.measurements[0]), "--counters", str(COUNTERS[0]), FILE),
                *("--out", f"{OUT}.yaml", "--record", OUT),
            ],
            files=counters,
        ),
        Door(name="rdma import", words=["rdma", "import", FILE, "--out", OUT], files=perftest),
        Door(name="rdma counters", words=["rdma", "counters", FILE, "--out", OUT], files=counters),
        Door(
            name="rdma counters, two", words=["rdma", "counters", str(COUNTERS[0]), FILE, "--out", OUT], files=counters
        ),
        Door(name="rdma gray-loss", words=["rdma", "gray-loss", FILE, "--out", OUT], files=GRAY_LOSS),
        Door(name="train survive", words=["train", "survive", "--failures", FILE, *SURVIVE, OUT], files=FAILURES),
        Door(
            name="fleet audit",
            words=["fleet", "audit", "--from-files", FILE, "--out", OUT, "--json"],
            files=(*sorted((ROOT / "tests" / "golden" / "fleet" / "nodes").glob("*.json")), *switches),
        ),
        Door(
            name="fleet export-scenario",
            words=["fleet", "export-scenario", FILE, "--out", OUT],
            files=switches,
        ),
        Door(
            name="fleet counters diff",
            words=["fleet", "counters", "diff", FILE, FILE, "--out", OUT],
            files=tuple(sorted((ROOT / "tests" / "golden" / "fleet" / "counters").glob("*/*.json"))),
        ),
        Door(
            name="fleet audit, rules",
            words=[
                *("fleet", "audit", "--from-files", str(ROOT / "tests" / "golden" / "fleet" / "nodes" / "mlx5.json")),
                *("--audit-rules", FILE, "--out", OUT),
            ],
            files=tuple(sorted((ROOT / "fleet" / "audit").glob("*/*.yaml"))),
        ),
        Door(
            name="fleet collect, inventory",
            words=["fleet", "collect", FILE, "--dry-run", "--known-hosts", "/dev/null"],
            files=tuple(sorted(INVENTORIES.iterdir())),
        ),
        Door(name="train stragglers", words=["train", "stragglers", FILE, "--out", OUT], files=inputs.spans[:1]),
        Door(
            name="trace timeline, spans",
            words=["trace", "timeline", FILE, "--precision", "1 s", "--out", f"{OUT}.pftrace"],
            files=inputs.spans[:1],
        ),
        Door(name="report block", words=["report", "block", FILE, "--out", f"{OUT}.html"], files=inputs.spans[:1]),
        Door(name="train decay", words=["train", "decay", FILE, "--out", OUT], files=inputs.spans[:1]),
        Door(name="law import", words=["law", "import", FILE], files=(samples.nic,)),
        Door(
            name="rules",
            words=["topo", "validate", str(GOLDEN / "lab.fabric.json")],
            files=(samples.rules,),
            rules=True,
        ),
        Door(
            name="trace timeline, record",
            words=["trace", "timeline", FILE, "--out", f"{OUT}.pftrace"],
            files=inputs.records,
        ),
        Door(name="report build", words=["report", "build", FILE, "--out", f"{OUT}.html"], files=inputs.records),
        Door(name="report figures", words=["report", "figures", FILE, "--out", OUT], files=inputs.records),
        Door(
            name="report build, growing",
            words=["report", "build", FILE, "--out", f"{OUT}.html"],
            files=(samples.growing,),
        ),
        Door(name="coll compare, record", words=["coll", "compare", FILE, "--out", OUT], files=(samples.measured,)),
        Door(name="sim run, trace", words=["sim", "run", FILE, "--out", OUT], files=samples.traces, scenario=REPLAY),
    ]
    if real_data:
        logs, watched, workload = real(*LOGS), real(*OBSERVED), real(WORKLOAD)
        doors += [
            Door(name="trace import, 32 ranks", words=["trace", "import", FILE, "--ranks", "32", *out], files=workload),
            Door(name="coll explain, real", words=["coll", "explain", FILE], files=logs),
            Door(name="rdma timers explain", words=["rdma", "timers", "explain", FILE, "--json"], files=logs),
            Door(name="ecmp analyze, observed", words=["ecmp", "analyze", FILE], files=watched, scenario=WATCHED),
        ]
    return doors

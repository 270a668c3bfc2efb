"""The commands that read, each with a large file of one format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fabrictune.cli.main import run
from tests.big_files import binaries, texts
from tests.kills.inputs import Inputs

FILE, OUT = "FILE", "OUT"  # stand for the large file, and for where a result goes
Write = Callable[[Path, int], None]  # a file of so many rows
FABRIC = "fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2}"
OBSERVED = f"name: observed\n{FABRIC}\ntraffic: {{workload: observed, files: [FILEMORE}}\n"
REPLAY = f"name: replay\n{FABRIC}\ntraffic: {{workload: comm_trace, file: FILE, layout: {{tp: 2, dp: 2}}}}\n"
LISTED = f"name: listed\n{FABRIC}\ntraffic: {{workload: traffic_trace, file: FILE}}\n"
SKEWED = f"""name: skewed
{FABRIC}
traffic:
  {{workload: moe, layout: {{dp: 2, ep: 2}}, num_tokens: 8, width: 8, loads: FILE,
   experts: {{num_experts: 64, num_choices: 2}}}}
"""
HOSTED = f"name: hosted\n{FABRIC}\ntraffic: {{workload: neighbours, layout: {{dp: 4}}, placement: FILE}}\n"
PORTED = f"name: ported\n{FABRIC}\ntraffic: {{workload: neighbours, layout: {{dp: 4}}}}\nsource_ports: FILE\n"
ANALYZE, MEASURED = ("ecmp", "analyze", FILE, "--out", OUT), ("coll", "import", FILE, "--out", OUT)
PROBE = ("topo", "probe", "--target", "10.0.3.1", "--rate", "100", "--dry-run", "--names", FILE)
DIAGNOSE = ("diagnose", FILE, "--out", OUT, "--fail-on", "never")
SHOW, IMPORT = ("topo", "show", FILE), ("trace", "import", FILE, "--ranks", "4", "--out", f"{OUT}.parquet")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A command, and how the file that it reads is written."""

    name: str
    file: str  # its name
    write: Write
    words: Sequence[str]
    scenario: str = ""  # written beside the file, and given in its place
    measured: str = ""  # the file in a folder that is large
    environment: str = ""  # the variable that names the file


def _text(make: Callable[[int], str]) -> Write:
    def write(path: Path, count: int) -> None:
        path.write_text(make(count))

    return write


def _bytes(make: Callable[[int], bytes]) -> Write:
    def write(path: Path, count: int) -> None:
        path.write_bytes(make(count))

    return write


def _listings(path: Path, count: int) -> None:
    """Write a host's queue pairs, and beside it those of another, of which one is the other end of the first."""
    path.write_text(texts.listing(range(count), 1))
    path.with_name("host1.json").write_text(texts.listing(range(1, 2), -1))


def _spans(path: Path, count: int) -> None:
    """Write a folder with the spans of a job of one rank."""
    path.mkdir(exist_ok=True)
    (path / "rank-00000.jsonl").write_text(texts.spans(count))


TOPOLOGIES: dict[str, Callable[[int], str]] = {
    "big.cabling.csv": texts.cabling_csv,
    "big.clab.yml": texts.containerlab,
    "big.fabric.json": texts.fabric_json,
    "big.graphml": texts.graphml,
    "big.hpcc.txt": texts.hpcc,
    "big.topo": texts.htsim,
    "big.ibnetdiscover": texts.ibnetdiscover,
    "big.ports.txt": texts.ib_ports,
    "big.iblinkinfo.txt": texts.ib_link_info,
    "big.ibsim.txt": texts.ibsim,
    "big.infragraph.yaml": texts.infragraph,
    "big.lldp.json": texts.lldp_json,
    "big.lldp.txt": texts.lldp_text,
    "big.lldp.output": texts.lldp_capture,
    "big.lldp.table": texts.lldp_switch_table,
    "big.lldp.keyvalue": texts.lldp_keyvalue,
    "big.minigraph.xml": texts.minigraph,
    "big.config_db.json": texts.sonic,
    "big.appl_db.json": texts.sonic_dump,
}

SURVIVE = ("train", "survive", "--failures", FILE, "--gpus", "64", "--runs", "0", "--out", OUT, "--fail-on", "never")
OBSERVATIONS: dict[str, tuple[Write, str]] = {  # and how the scenario goes on behind the file
    "big.pcap": (_bytes(binaries.pcap), "]"),
    "big.pcapng": (_bytes(binaries.pcapng), "]"),
    "big.flows.parquet": (binaries.flows, "]"),
    "big.nccl.log": (_text(texts.nccl_log), "]"),
    "big.simccl.csv": (_text(texts.simccl), "], hosts: [host0, host1]"),
    "big.graph.xml": (_text(texts.nccl_graph), "], hosts: [host0, host1]"),
    "host0.json": (_listings, ", host1.json]"),
}


def make_readings(inputs: Inputs, fabric: Path) -> list[Reading]:
    """Return all readings; `fabric` is a small fabric's file."""
    validate = ("topo", "validate", str(fabric))
    return [
        *(Reading(name=file[4:], file=file, write=_text(make), words=SHOW) for file, make in TOPOLOGIES.items()),
        Reading(
            name="switch settings",
            file="big.config_db.json",
            write=_text(texts.sonic_profiles),
            words=("topo", "import", FILE, "--with-qos"),
        ),
        Reading(name="loads of experts", file="big.csv", write=_text(texts.loads), words=ANALYZE, scenario=SKEWED),
        Reading(name="hosts of probes", file="hosts", write=_text(texts.hosts), words=PROBE),
        Reading(name="AICB text", file="big.txt", write=_text(texts.aicb), words=IMPORT),
        Reading(name="AICB table", file="big.csv", write=_text(texts.aicb_csv), words=IMPORT),
        Reading(name="Chakra", file="big.0.et", write=_bytes(binaries.chakra), words=IMPORT),
        Reading(name="profile", file="big.json", write=_text(texts.profile), words=IMPORT),
        Reading(name="packed profile", file="big.json.gz", write=_bytes(binaries.packed_profile), words=IMPORT),
        Reading(name="profile, 25 to 1", file="big.json.gz", write=binaries.well_packed_profile, words=IMPORT),
        Reading(name="execution trace", file="big_0.json", write=_text(texts.execution_trace), words=IMPORT),
        Reading(name="flight recorder", file="big_0", write=_text(texts.flight_recorder), words=IMPORT),
        Reading(name="pickled recorder", file="big_0", write=_bytes(binaries.pickled_recorder), words=IMPORT),
        Reading(name="GOAL", file="big.goal", write=_text(texts.goal), words=IMPORT),
        Reading(name="own trace", file="big.parquet", write=binaries.trace, words=("trace", "show", FILE)),
        Reading(name="replay", file="big.parquet", write=binaries.trace, words=ANALYZE, scenario=REPLAY),
        Reading(name="nccl-tests text", file="big.log", write=_text(texts.nccl_tests_text), words=MEASURED),
        Reading(name="nccl-tests JSON", file="big.json", write=_text(texts.nccl_tests_json), words=MEASURED),
        Reading(
            name="NCCL log", file="big.log", write=_text(texts.nccl_log), words=("rdma", "timers", "explain", FILE)
        ),
        Reading(name="NCCL Inspector", file="big.jsonl", write=_text(texts.inspector), words=MEASURED),
        Reading(
            name="NCCL topology", file="topo.xml", write=_text(texts.nccl_topology), words=("coll", "topology", FILE)
        ),
        *(
            Reading(name=f"{name}, diagnosed", file=file, write=_text(write), words=DIAGNOSE)
            for name, file, write in (
                ("RAS", "ras.json", texts.ras),
                ("NCCL Inspector", "big.log", texts.inspector),
                ("flight recorder", "big_0", texts.flight_recorder),
                ("NCCL log", "big.log", texts.nccl_log),
                ("watchdog", "big.err", texts.watchdog),
                ("stacks", "rank_0.txt", texts.stacks),
            )
        ),
        Reading(name="queue pairs, diagnosed", file="host0.json", write=_listings, words=DIAGNOSE),
        Reading(name="RAS", file="ras.json", write=_text(texts.ras), words=("coll", "ras", FILE)),
        Reading(
            name="NCCL log, explained", file="big.log", write=_text(texts.nccl_log), words=("coll", "explain", FILE)
        ),
        *(
            Reading(
                name=f"observed {file.removeprefix('big.')}",
                file=file,
                write=write,
                words=ANALYZE,
                scenario=OBSERVED.replace("MORE", more),
            )
            for file, (write, more) in OBSERVATIONS.items()
        ),
        Reading(name="host file", file="big.hosts", write=_text(texts.host_file), words=ANALYZE, scenario=HOSTED),
        Reading(name="placement", file="big.csv", write=_text(texts.placement_csv), words=ANALYZE, scenario=HOSTED),
        Reading(name="source ports", file="big.csv", write=_text(texts.source_ports), words=ANALYZE, scenario=PORTED),
        Reading(name="scenario", file="big.yaml", write=_text(texts.scenario), words=("scenario", "check", FILE)),
        Reading(
            name="sweep",
            file="big.yaml",
            write=_text(partial(texts.sweep, original=inputs.sweep)),
            words=("sim", "sweep", FILE, "--out", OUT),
        ),
        Reading(name="recipe", file="big.yaml", write=_text(texts.recipe), words=("train", "plan", FILE, "--out", OUT)),
        Reading(name="failures", file="big.csv", write=_text(texts.failures_csv), words=SURVIVE),
        Reading(name="failures in YAML", file="big.yaml", write=_text(texts.failures_yaml), words=SURVIVE),
        Reading(
            name="hardware profile",
            file="big.yaml",
            write=_text(texts.hardware_profile),
            words=("hardware", "show", FILE),
        ),
        Reading(
            name="site rules",
            file="rules.yaml",
            write=_text(texts.rules),
            words=validate,
            environment="FABRICTUNE_RULES",
        ),
        Reading(
            name="NIC parameters", file="nic.txt", write=_text(texts.nic_parameters), words=("law", "import", FILE)
        ),
        Reading(
            name="perftest", file="big.txt", write=_text(texts.perftest), words=("rdma", "import", FILE, "--out", OUT)
        ),
        Reading(
            name="perftest, fitted",
            file="big.txt",
            write=_text(texts.perftest),
            words=("validate", "fit", FILE, "--out", f"{OUT}.yaml", "--record", OUT),
        ),
        Reading(
            name="connection matrix",
            file="big.cm",
            write=_text(texts.connection_matrix),
            words=("scenario", "check", FILE),
            scenario=LISTED,
        ),
        Reading(
            name="ns-3 flows",
            file="flow.txt",
            write=_text(texts.ns3_flows),
            words=("scenario", "check", FILE),
            scenario=LISTED,
        ),
        Reading(
            name="NIC counters",
            file="counters.txt",
            write=_text(texts.nic_counters),
            words=("rdma", "counters", FILE, "--out", OUT),
        ),
        Reading(
            name="packets by path",
            file="counts.csv",
            write=_text(texts.path_counts),
            words=("rdma", "gray-loss", FILE, "--out", OUT, "--fail-on", "never"),
        ),
        *(
            Reading(name=f"spans, {words[1]}", file="run", write=_spans, words=words, measured="rank-00000.jsonl")
            for words in (
                ("train", "stragglers", FILE, "--out", OUT, "--fail-on", "never"),
                ("train", "decay", FILE, "--out", OUT, "--fail-on", "never"),
                ("trace", "timeline", FILE, "--out", f"{OUT}.pftrace"),
                ("report", "block", FILE, "--out", f"{OUT}.html"),
            )
        ),
        Reading(
            name="timer profile",
            file="nic.yaml",
            write=_text(texts.timer_profile),
            words=("rdma", "timers", "predict", "--profile", FILE),
        ),
        Reading(
            name="law",
            file="law.py",
            write=_text(texts.law),
            words=("sim", "run", FILE, "--trust-code", "--out", OUT),
            scenario=f"name: law\n{FABRIC}\ntraffic: {{workload: permutation, message: 1 KB}}\nlaw: FILE\n",
        ),
        Reading(
            name="token",
            file="token",
            write=_text(lambda count: "a" * count),
            words=("rdma", "bw", "--sender", "127.0.0.1:9", "--receiver", "127.0.0.1:9", "--token-file", FILE),
        ),
        *_of_records(inputs),
    ]


def _of_records(inputs: Inputs) -> list[Reading]:
    template = _sampled_record(inputs)
    page, tables = (
        ("report", "build", FILE, "--out", f"{OUT}.html"),
        ("transfers", "samples", "flow_samples"),
    )
    return [
        *(
            Reading(
                name=f"record, {table}",
                file="record",
                write=partial(_with_table, template=template, table=table),
                words=page,
                measured=f"{table}.parquet",
            )
            for table in tables
        ),
        Reading(
            name="record, findings",
            file="record",
            write=partial(_with_findings, template=template),
            words=page,
            measured="findings.jsonl",
        ),
        Reading(
            name="record, head",
            file="record",
            write=partial(_with_head, template=template),
            words=page,
            measured="run.json",
        ),
    ]


def _sampled_record(inputs: Inputs) -> Path:
    """Return a record of the first job with samples of queues and flows, made beside it."""
    job, record = inputs.jobs[0], inputs.jobs[0].with_name("sampled")
    job = job.with_name("sampled.yaml")
    job.write_text(inputs.jobs[0].read_text() + "probe: {interval: 1 us, all_flows: true}\n")
    assert run(["sim", "run", str(job), "--out", str(record), "--quiet"]) == 0
    return record


def _with_table(path: Path, count: int, *, template: Path, table: str) -> None:
    binaries.record_with_table(path, template, table, count)


def _with_findings(path: Path, count: int, *, template: Path) -> None:
    binaries.record_with_findings(path, template, count)


def _with_head(path: Path, count: int, *, template: Path) -> None:
    binaries.record_with_head(path, template, count)

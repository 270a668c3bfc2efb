"""The commands that write, each in two variants, so that a mixture of two results is seen."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kills.inputs import Inputs

Words = Callable[[Inputs, int], Sequence[str]]
GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = sorted((GOLDEN / "nccl").glob("r*.log"))
PERFTEST = (GOLDEN / "perftest" / "bidirectional.txt", GOLDEN / "perftest" / "read_lat.txt")
QUIET = ("--fail-on", "never")
HANGS = (GOLDEN / "hangs", GOLDEN / "nccl" / "ras.json")
GRAY_LOSS = GOLDEN / "gray_loss" / "counts.csv"
SNAPSHOTS = GOLDEN / "fleet" / "counters"
COUNTERS = (GOLDEN / "counters" / "before.txt", GOLDEN / "counters" / "after.txt")


@dataclass(frozen=True, kw_only=True)
class Writing:
    """A command that writes a file, or a folder."""

    name: str  # and the option that names it, where that is another than --out
    words: Words  # of an input's variant
    out: str = "result"  # a file where it has an ending
    starts_processes: bool = False  # of its own, such as ranks or a store: run as a program, not as a copy of this one
    is_sweep: bool = False  # an interrupted one stays, to be resumed
    inside: Sequence[str] = ()  # what starts the program in a place of its own
    last: str = ""  # of a folder of several results, the one that is written last
    needs: Callable[[], str] = lambda: ""  # what this machine lacks for it, or ""
    leaves: Callable[[], Sequence[str]] = tuple  # what it could leave outside its folders

    def arguments(self, inputs: Inputs, variant: int, out: Path) -> list[str]:
        """Return the command line."""
        command, _, option = self.name.partition(" --")
        return [*command.split(), *self.words(inputs, variant), f"--{option or 'out'}", str(out)]


def _with_figure(inputs: Inputs, variant: int) -> list[str]:
    """Return a sweep of two points whose runs stay elsewhere, so that mostly its figure is written."""
    axes = ("--vary", "traffic.message=16 KB;32 KB", "--seeds", "1")
    objectives = ("--objective", "completion_time.max", "--objective", "completion_time.mean")
    return [str(inputs.jobs[variant]), *axes, *objectives, "--out", str(inputs.sweep.with_name(f"swept{variant}"))]


def _with_plot(inputs: Inputs, variant: int) -> list[str]:
    """Return a question about networks whose runs stay elsewhere, so that mostly its figure is written."""
    axis = ("--vary", "engine.mtu=1 KB;4 KB", "--seeds", "1")
    return [str(inputs.jobs[variant]), *axis, "--out", str(inputs.sweep.with_name(f"asked{variant}"))]


def _learnt(_: Inputs, variant: int) -> list[str]:
    """Return choices to learn from, and flows to plan for: 40, or the 400 of the choices."""
    folder = GOLDEN / "hash_learning"
    flows = ("flows.csv", "choices.csv")[variant]
    return [str(folder / "choices.csv"), "--flows", str(folder / flows)]


def _fit(inputs: Inputs, variant: int) -> list[str]:
    return [str(inputs.measurements[variant]), *QUIET]


def _with_records(inputs: Inputs, variant: int) -> list[str]:
    """Return a fit whose record stays elsewhere, so that its profile is looked at."""
    return [*_fit(inputs, variant), "--record", str(inputs.sweep.with_name(f"fit{variant}"))]


def _with_profiles(inputs: Inputs, variant: int) -> list[str]:
    return [*_fit(inputs, variant), "--out", str(inputs.sweep.with_name(f"fit{variant}.yaml"))]


def _lacks_network() -> str:
    return "" if os.geteuid() == 0 and shutil.which("ip") else "network namespaces need root and iproute2"


def _namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [f"namespace {line.split()[0]}" for line in listed.splitlines() if line.startswith("flap")]


ALONE = (  # a network of its own, in which no target answers
    *("unshare", "--net", "sh", "-c"),
    "ip link add end0 type veth peer name end1 && ip address add 10.0.3.1/24 dev end0 && "
    'ip link set end0 up && exec "$@"',
    "sh",
)
FAILURES = ("--failures", "llama3", "--runs", "2")
PROBES = ("--rate", "1000", "--source-ports", "4", "--max-hops", "1", "--attempts", "1", "--timeout", "100 ms")
READS = (  # options with a file to read
    *("--rules", "--names", "--against", "--scenario", "--measured", "--token-file", "--key", "--flows", "--pod"),
    *("--topology", "--trace", "--fabric", "--then-simulate", "--fit", "--graphs", "--tuner", "--tor-sets"),
    *("--audit-rules", "--from-files", "--known-hosts", "--ssh-config", "--identity", "--counters", "--baseline"),
)
OF_MANY = {"--findings-file": "topo validate"}  # options of one code, and the command whose is tried for all
UNTRIED: Mapping[str, str] = {  # commands that write and have no line below, and why
    "rdma timers measure": "needs RDMA devices, or a virtual machine that boots for minutes",
    "rdma timers measure --profile": "needs RDMA devices, or a virtual machine that boots for minutes",
    "rdma bw": "needs RDMA devices, or a virtual machine that boots for minutes",
    "rdma lat": "needs RDMA devices, or a virtual machine that boots for minutes",
    "rdma matrix": "needs RDMA devices on several hosts",
    "fleet counters watch": "it runs a command of the user's; its record is written as that of `fleet counters diff`",
    "validate testbed up": "it makes namespaces, not results: tests/testbed kills it",
    "validate testbed run": "it makes namespaces, not results: tests/testbed kills it",
    "validate testbed train": "it needs a testbed; it writes its record as `train run` does",
    "train operate --run": "a job's folder is resumed: tests/trainer_probe/operation kills its processes",
    "validate cluster": "it needs hosts with servers: tests/validate/cluster interrupts it in each stage",
    "rdma monitor": "it runs until it is stopped: tests/rdma_bench/monitor runs it",
    "train diagnose": "it starts ranks: tests/fabrictune/diagnostics runs them",
    "train diagnose --folder": "it starts ranks: tests/fabrictune/diagnostics runs them",
    "train change --code": "it writes one small file whole: tests/trainer_probe/operation changes a job",
    "train executor --folder": "it serves a driver: tests/trainer_probe/operation kills it",
    "fleet counters dashboard": "it writes one small file, the same each time",
    "manual": "it writes small files whole, the same each time",
    "scenario copy": "it writes no file that is there",
    "train checkpoint export": "needs a training's checkpoint; it writes as `train run --export` does",
}
WRITINGS = (
    Writing(name="topo build", words=lambda _, v: ["fat_tree", f"radix={(4, 6)[v]}"], out="fabric.json"),
    Writing(name="topo import", words=lambda i, v: [str(i.cablings[v])], out="fabric.json"),
    Writing(
        name="topo validate --findings-file",
        words=lambda i, v: [str(i.cablings[v]), "--fail-on", "never"],
        out="findings.sarif",
    ),
    Writing(name="topo export", words=lambda i, v: [str(i.cablings[v])], out="fabric.graphml"),
    Writing(
        name="topo probe",
        words=lambda _, v: ["--target", f"10.0.3.{2 + v}", *PROBES, "--fail-on", "never"],
        starts_processes=True,
        inside=ALONE,
        needs=_lacks_network,
    ),
    Writing(name="ecmp analyze", words=lambda i, v: [str(i.jobs[v])]),
    Writing(name="ecmp whatif", words=lambda i, v: [str(i.jobs[v]), "--seeds", "3"]),
    Writing(name="ecmp factorial", words=lambda i, v: [str(i.jobs[v]), "--seeds", "2"]),
    Writing(name="ecmp plan", words=lambda i, v: [str(i.jobs[v]), "--seeds", "2"]),
    Writing(name="ecmp learn-hash --ports", words=_learnt, out="source_ports.csv"),
    Writing(name="sim run", words=lambda i, v: [str(i.jobs[v])]),
    Writing(name="sim sweep", words=lambda i, _: [str(i.sweep)], is_sweep=True, last="result"),
    Writing(
        name="validate whatif",
        words=lambda i, _: [str(i.jobs[0]), "--vary", "engine.mtu=1 KB;4 KB", "--seeds", "1"],
        is_sweep=True,
        last="result",
    ),
    Writing(name="validate whatif --plot", words=_with_plot, out="steps.svg"),
    Writing(name="sim sweep --plot", words=_with_figure, out="front.svg"),
    Writing(name="demo", words=lambda *_: ["--quiet", "--no-training"], last="hpcc"),
    Writing(name="trace import", words=lambda i, v: [str(i.workloads[v]), "--ranks", "4"], out="trace.parquet"),
    Writing(name="trace timeline", words=lambda i, v: [str(i.records[v])], out="run.pftrace"),
    Writing(name="trace export", words=lambda i, v: [str(i.workloads[v]), "--ranks", "4"]),
    Writing(name="coll explain", words=lambda _, v: [str(LOGS[v])], out="drafted.yaml"),
    Writing(name="coll import", words=lambda i, v: [str(i.measurements[v])]),
    Writing(name="coll compare", words=lambda i, v: [str(i.measurements[v])]),
    Writing(name="coll model", words=lambda i, v: [str(i.jobs[v]), "all_reduce", "-e", "1 MiB"]),
    Writing(name="validate fit", words=_with_records, out="profile.yaml"),
    Writing(name="validate fit --record", words=_with_profiles),
    Writing(
        name="validate fit --plot",
        words=lambda i, v: [*_with_records(i, v), "--out", str(i.sweep.with_name(f"plotted{v}.yaml"))],
        out="errors.svg",
    ),
    Writing(name="rdma import", words=lambda _, v: [str(PERFTEST[v])]),
    Writing(name="diagnose", words=lambda _, v: [str(HANGS[v]), *QUIET]),
    Writing(name="rdma gray-loss", words=lambda _, v: [str(GRAY_LOSS), *QUIET]),
    Writing(name="rdma counters", words=lambda _, v: [str(COUNTERS[v]), str(COUNTERS[1]), *QUIET]),
    Writing(name="fleet collect", words=lambda _, v: ["--via", "local", f"node{v}"], starts_processes=True),
    Writing(name="fleet counters snap", words=lambda _, v: ["--via", "local", f"node{v}"], starts_processes=True),
    Writing(
        name="fleet counters diff",
        words=lambda _, v: [str(SNAPSHOTS / ("before", "after")[v]), str(SNAPSHOTS / "after"), *QUIET],
    ),
    Writing(
        name="fleet export-scenario",
        words=lambda _, v: [str(GOLDEN / "topology" / f"qos-{('leaf1', 'spine1')[v]}.config_db.json")],
    ),
    Writing(
        name="fleet audit",
        words=lambda _, v: ["--from-files", str(GOLDEN / "fleet" / "nodes" / f"{('mlx5', 'rxe')[v]}.json"), *QUIET],
    ),
    Writing(name="rdma timers simulate", words=lambda i, v: [str(i.flaps[v])]),
    Writing(name="report build", words=lambda i, v: [str(i.records[v])], out="report.html"),
    Writing(name="report figures", words=lambda i, v: [str(i.records[v])]),
    Writing(name="train survive", words=lambda _, v: [*FAILURES, "--gpus", f"{(64, 128)[v]}", *QUIET]),
    Writing(
        name="train survive --plot",
        words=lambda i, v: [*FAILURES, "--gpus", "64", "--out", str(i.sweep.with_name(f"survive{v}")), *QUIET],
        out="intervals.svg",
    ),
    Writing(name="train effective", words=lambda i, v: [str(i.journals[v]), *QUIET]),
    Writing(
        name="train effective --plot",
        words=lambda i, v: [str(i.journals[v]), "--out", str(i.sweep.with_name(f"effective{v}")), *QUIET],
        out="time.svg",
    ),
    Writing(name="report block", words=lambda i, v: [str(i.spans[v])], out="block.html"),
    Writing(name="train stragglers", words=lambda i, v: [str(i.spans[v]), *QUIET]),
    Writing(name="train decay", words=lambda i, v: [str(i.spans[v]), *QUIET]),
    Writing(name="train plan", words=lambda _, v: ["tiny", "--set", f"degrees.layout.dp={(2, 4)[v]}"]),
    Writing(
        name="train run",
        words=lambda _, v: ["tiny", "--set", "num_steps=1", "--set", f"seed={v}"],
        starts_processes=True,
    ),
    Writing(
        name="train run --export",
        words=lambda _, v: [
            "tiny",
            *("--set", f'model={{"preset": "llama-tiny", "seed": {v}}}'),
            *("--set", "degrees={}", "--set", "num_steps=1"),
        ],
        starts_processes=True,
    ),
    Writing(
        name="train ablate",
        words=lambda _, v: ["tiny", "--rounds", "1", "--steps", "1", "--set", f"seed={v}"],
        starts_processes=True,
    ),
    Writing(
        name="validate predict",
        words=lambda _, v: ["tiny", "--set", f"degrees.layout.dp={(2, 4)[v]}", *QUIET],
    ),
    Writing(name="validate local", words=lambda _, v: ["--steps", f"{1 + v}"], starts_processes=True),
    Writing(
        name="rdma flap-job",
        words=lambda _, v: ["--flap", f"{(100, 200)[v]} ms"],
        starts_processes=True,
        needs=_lacks_network,
        leaves=_namespaces,
    ),
    Writing(
        name="coll bench",
        words=lambda _, v: ["all_reduce", "--ranks", "2", "-e", f"{(64, 128)[v]} B"],
        starts_processes=True,
    ),
    Writing(
        name="coll init storm",
        words=lambda _, v: ["--ranks", "8,16", "--tp", "2", "--pp", "2", "--pattern", ("redis-ordered", "legacy")[v]],
        starts_processes=True,
    ),
    Writing(
        name="coll init check",
        words=lambda _, v: ["--tp", "1", "--pp", "1", "--dp", f"{2 + v}"],
        starts_processes=True,
    ),
)

"""What the commands read: small files of each kind, in two variants."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.studies.planted_stragglers.files import write_files
from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.cli.main import run
from fabrictune.trainer_probe.operation.journal import open_journal

JOB = """name: job{variant}
fabric: {{builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 2, tiers: 2}}
traffic: {{workload: all_reduce, layout: {{tp: 2, dp: 8}}, message: {message} KB}}
law: dcqcn
"""
WHATIF = "whatif:\n  - {name: two QPs, change: {traffic.expansion.qps_per_connection: 2}}\n"
FACTORS = """factors:
  - {name: QPs, low: {traffic.expansion.qps_per_connection: 1}, high: {traffic.expansion.qps_per_connection: 4}}
  - {name: placement, low: {traffic.placement: random}, high: {traffic.placement: contiguous}}
"""
SWEEP = """name: sweep
scenario: job0.yaml
vary:
  - {key: traffic.message, values: [16 KB, 32 KB, 64 KB, 128 KB]}
search: grid
seeds: 2
objectives:
  - metric: completion_time.max
"""
FLAP = """name: flap{variant}
fabric: {{builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2, nic_rate: 100 Gbps,
  uplink_rate: 100 Gbps, downlink_split: 1}}
traffic: {{workload: incast, senders: 1, message: {message} MB}}
law: none
engine:
  transport: {{timeout_exponent: 4}}
faults:
  - {{fault: flap, link: "host0:nic0", at: 20 us, down: 150 us}}
"""
CABLING = """Side A Device,Side A Role,Side A Name,Side B Device,Side B Role,Side B Name,Speed
node1,server,mlx5_0,leaf1,leaf,Ethernet0,400G
node{last},server,mlx5_0,leaf1,leaf,Ethernet8,400G
"""
WORKLOAD = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4
2
attention_column\t-1\t1000\tALLGATHER\t{num_bytes}\t1000\tREDUCESCATTER\t4096\t1000\tNONE\t0\t100
attention_row\t-1\t1000\tREDUCESCATTER\t4096\t1000\tALLGATHER\t{num_bytes}\t1000\tNONE\t0\t100
"""
JOB_EVENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("generation started", {"generation": 0, "first_step": 0}),
    ("training", {"generation": 0, "step": 0, "restore_s": 0.0}),
    *(("step", {"generation": 0, "step": step, "elapsed_ns": 10**9}) for step in range(20)),
)
MEASURED = """# nccl-tests version 2.13.6
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 1 iters: 20 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid   100 on      node0 device  0 [0x07] NVIDIA H100
#  Rank  1 Group  0 Pid   101 on      node1 device  0 [0x07] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    {a}.0   {b}    {b}      0    {a}.0   {b}    {b}      0
     2097152        524288     float     sum      -1   2{a}.0   {c}    {c}      0   2{a}.0   {c}    {c}      0
     4194304       1048576     float     sum      -1   4{a}.0   {d}    {d}      0   4{a}.0   {d}    {d}      0
"""
SPANS = JobSize(dp=3, pp=1, num_batches=1, num_steps=12)
TIMES = (100, 10.49, 1.00, 1.02), (200, 5.24, 0.95, 1.00)  # us at 1 MiB; GB/s at each size


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Paths of the inputs; index 0 and 1 are the variants."""

    jobs: tuple[Path, Path]
    flaps: tuple[Path, Path]
    cablings: tuple[Path, Path]
    workloads: tuple[Path, Path]
    measurements: tuple[Path, Path]
    records: tuple[Path, Path]
    journals: tuple[Path, Path]
    spans: tuple[Path, Path]
    sweep: Path


def make_inputs(folder: Path) -> Inputs:
    """Write all inputs into a folder that exists."""

    def pair(name: str, *texts: str) -> tuple[Path, Path]:
        first, second = (folder / name.format(variant) for variant in (0, 1))
        for path, text in zip((first, second), texts, strict=True):
            path.write_text(text)
        return first, second

    more = WHATIF + FACTORS
    inputs = Inputs(
        jobs=pair("job{}.yaml", *(JOB.format(variant=v, message=64 << v) + more for v in (0, 1))),
        flaps=pair("flap{}.yaml", *(FLAP.format(variant=v, message=1 + v) for v in (0, 1))),
        cablings=pair("cabling{}.csv", *(CABLING.format(last=2 + v) for v in (0, 1))),
        workloads=pair("workload{}.txt", *(WORKLOAD.format(num_bytes=8192 << v) for v in (0, 1))),
        measurements=pair("measured{}.txt", *(MEASURED.format(a=a, b=b, c=c, d=d) for a, b, c, d in TIMES)),
        records=(folder / "record0", folder / "record1"),
        journals=(folder / "job0", folder / "job1"),
        spans=(folder / "spans0", folder / "spans1"),
        sweep=folder / "sweep.yaml",
    )
    inputs.sweep.write_text(SWEEP)
    for job, record in zip(inputs.jobs, inputs.records, strict=True):
        assert run(["sim", "run", str(job), "--out", str(record), "--quiet", "--fail-on", "never"]) == 0
    for variant, place in enumerate(inputs.spans):
        write_files(simulate(SPANS, Disturbance.none(SPANS), variant), place)
    for variant, place in enumerate(inputs.journals):
        journal = open_journal(str(place))
        for kind, values in JOB_EVENTS:
            journal.append(kind, values, elapsed_s=float(values.get("step", 0) * (1 + variant)))
        journal.close()
    return inputs

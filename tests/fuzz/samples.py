"""Samples beside those of `tests/kills`: a trace in each form, a NIC's parameters, a site's rules, measurements."""

import json
from dataclasses import dataclass
from pathlib import Path

from fabrictune.cli.main import run
from fabrictune.foundation.growing_tables import append_row
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from tests.big_files import binaries, texts
from tests.kills.inputs import Inputs, make_inputs
from tests.profile_events import ALL_REDUCE_OF_TWO

NIC = "clamp_tgt_rate:1\nrpg_time_reset:300\nrpg_ai_rate:5\nrpg_min_dec_fac:50\nmin_time_between_cnps:4\n"
RULES = "rules:\n  fabric.unequal-rate: {severity: info}\n  ecmp.link-overloaded: {severity: warning}\n"


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Paths of all samples that are made here."""

    inputs: Inputs
    traces: tuple[Path, ...]
    dumps: tuple[Path, ...]  # of the flight recorder, in both forms
    nic: Path
    rules: Path
    measured: Path  # the record of a measurement
    growing: Path  # the record of a training that goes on


def make_samples(folder: Path) -> Samples:
    """Write all samples into a folder that exists."""
    inputs = make_inputs(folder)
    workload = str(inputs.workloads[0])
    trace, chakra, measured = folder / "trace.parquet", folder / "chakra", folder / "measured"
    for words in (
        ["trace", "import", workload, "--ranks", "4", "--out", str(trace)],
        ["trace", "export", workload, "--ranks", "4", "--out", str(chakra)],
        ["coll", "import", str(inputs.measurements[0]), "--out", str(measured), "--quiet"],
    ):
        assert run(words) == 0
    profile, nic, rules = folder / "profile.json", folder / "nic.txt", folder / "rules.yaml"
    growing = folder / "growing"
    _write_growing(growing)
    profile.write_text(json.dumps(_profile()))
    host_trace, dump, pickled, schedule = (folder / name for name in ("et_0.json", "dump_0", "pickled_0", "ring.goal"))
    host_trace.write_text(texts.execution_trace(20))
    dump.write_text(texts.flight_recorder(3))
    pickled.write_bytes(binaries.pickled_recorder(3))
    schedule.write_text(texts.goal(5))
    nic.write_text(NIC)
    rules.write_text(RULES)
    return Samples(
        inputs=inputs,
        traces=(trace, chakra, profile, host_trace, dump, pickled, schedule),
        dumps=(dump, pickled),
        nic=nic,
        rules=rules,
        measured=measured,
        growing=growing,
    )


def _write_growing(record: Path) -> None:
    """Write the record of a run that was killed in its fourth step."""
    columns = TABLES["training"].columns
    with RunRecord(kind="train run", run={"name": "tiny"}).write_growing(record, "training.jsonl") as file:
        for step in range(3):
            append_row(file, {column.name: step for column in columns})


def _profile() -> object:
    """Return a profile of one rank as PyTorch writes it: two all-reduces of two ranks."""
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "pid": 0,
            "tid": 7,
            "ts": 1000.0 * (number + 1),
            "dur": 50.0,
            "args": ALL_REDUCE_OF_TWO,
        }
        for number in range(2)
    ]
    return {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": events}

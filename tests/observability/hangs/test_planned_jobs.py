"""Twenty jobs out of planned traces, each with a planted culprit, in the formats of foreign tools: all must be named.

The traces are those that the trainer plans for 16 and 32 ranks; what each tool writes of the halted job is written from
scratch (`benchmarks/studies/hangs/formats.py`).
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from benchmarks.studies.hangs.faults import plant
from benchmarks.studies.hangs.formats import FORMATS, Case
from benchmarks.studies.hangs.halts import Program, halt, programs_of
from benchmarks.studies.hangs.trials import ranks_named
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Cause
from fabrictune.observability.hangs.job import join_evidence
from fabrictune.observability.hangs.reading import read_evidence

DENSE = {"degrees.layout": {"tp": 2, "pp": 2, "dp": 4}}
EXPERTS = {"degrees.layout": {"tp": 2, "pp": 2, "dp": 8, "ep": 2}, "model": {"preset": "moe-tiny"}}
CASES = (  # job, axis, fault, formats, cause
    ("dense", "tp", "stopped rank", "dumps", Cause.MISSING),
    ("dense", "dp", "killed rank", "dumps", Cause.MISSING),
    ("dense", "pp", "stalled loader", "dumps", Cause.MISSING),
    ("dense", "dp", "mismatch", "dumps", Cause.MISMATCH),
    ("experts", "ep", "cut link", "dumps", Cause.TRANSPORT),
    ("dense", "tp", "killed rank", "ras", Cause.GONE),
    ("experts", "ep", "mismatch", "ras", Cause.MISMATCH),
    ("experts", "tp", "stalled loader", "ras", Cause.MISSING),
    ("dense", "dp", "stopped rank", "ras", Cause.MISSING),
    ("dense", "dp", "mismatch", "log", Cause.MISMATCH),
    ("dense", "tp", "stalled loader", "log", Cause.MISSING),
    ("dense", "dp", "cut link", "inspector", Cause.TRANSPORT),
    ("experts", "dp", "mismatch", "watchdog", Cause.MISMATCH),
    ("dense", "dp", "stalled loader", "watchdog", Cause.MISSING),
    ("dense", "pp", "stalled loader", "stacks", Cause.LOADER),
    ("experts", "ep", "stalled loader", "ras stacks", Cause.LOADER),
    ("experts", "pp", "killed rank", "ras stacks", Cause.GONE),
    ("dense", "pp", "missing request", "dumps watchdog", Cause.MISSING),
    ("dense", "tp", "stopped rank", "log stacks", Cause.MISSING),
    ("experts", "dp", "cut link", "ras inspector dumps stacks", Cause.TRANSPORT),
)


@pytest.fixture(scope="module")
def programs() -> Mapping[str, Mapping[int, Program]]:
    """The programs of two planned jobs, two steps each."""
    pytest.importorskip("torch")
    from fabrictune.trainer_probe.planning.hardware import HardwareSpec
    from fabrictune.trainer_probe.planning.plan import make_plan
    from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

    found = {}
    for name, settings in (("dense", DENSE), ("experts", EXPERTS)):
        plan = make_plan(load_recipe(find_recipe("tiny"), settings), HardwareSpec())
        found[name] = programs_of(plan.trace.written_out(), num_repeats=2)
    return found


@pytest.mark.parametrize(("job", "axis", "fault", "formats", "cause"), CASES)
def test_the_culprit_is_named(
    programs: Mapping[str, Mapping[int, Program]],
    tmp_path: Path,
    job: str,
    axis: str,
    fault: str,
    formats: str,
    cause: Cause,
) -> None:
    """Exactly the rank of the fault, and why, as far as these formats show it."""
    planted = plant(fault, programs[job], Random(f"{job}/{axis}/{fault}/{formats}"), axis=axis)
    case = Case(halt=halt(programs[job], planted.fault), fault=fault, ranks=planted.ranks)
    for name in formats.split():
        FORMATS[name](case, tmp_path)
    evidence = join_evidence(read_evidence([tmp_path]).evidence)
    diagnosis = diagnose(evidence)
    assert diagnosis is not None
    assert (ranks_named(diagnosis, evidence), diagnosis.cause) == (planted.ranks, cause)

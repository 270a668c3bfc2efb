"""A whole run: real processes, its record, and what is refused before any process starts."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.local import train_locally
from fabrictune.trainer_probe.training.outcome import Outcome, make_record, training_table
from fabrictune.trainer_probe.training.progress import StepReport
from tests.patience import patience

pytest.importorskip("torch")

TINY = find_recipe("tiny")
SHORT = {
    "num_steps": 3,
    "num_traced_steps": 1,
    "degrees": {"layout": {"tp": 2, "dp": 2}, "num_batches": 2, "batch_size": 2, "tensor_chunks": 2},
}


def run(recipe: Recipe) -> tuple[Outcome, list[StepReport]]:
    reports: list[StepReport] = []
    return train_locally(recipe, on_step=reports.append, timeout_s=patience(120)), reports


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load_recipe(TINY, SHORT)


@pytest.fixture(scope="module")
def outcome(recipe: Recipe) -> Outcome:
    outcome, reports = run(recipe)
    assert tuple(reports) == outcome.reports
    return outcome


def test_every_step_is_reported_with_its_communication(outcome: Outcome) -> None:
    """Four ranks wait for one another on both axes; on the third each is alone, and asks all the same."""
    assert [report.step for report in outcome.reports] == [0, 1, 2]
    assert all(set(report.exposed_ns) == {"tp", "dp", "pp"} for report in outcome.reports)
    assert all(min(report.exposed_ns.values()) > 0 for report in outcome.reports)


def test_a_ring_of_ranks_has_the_losses_of_one() -> None:
    """Of three: two and their copies, which share samples and sum gradients with them; waits of a ring are reported."""
    shape = {"layout": {"cp": 2, "dp": 2}, "num_batches": 2, "batch_size": 2}
    outcome, reports = run(load_recipe(TINY, {**SHORT, "degrees": shape}))
    alone = {"num_steps": 3, "degrees": {"num_batches": 4, "batch_size": 2}}
    expected = run(load_recipe(TINY, alone))[0].reports
    np.testing.assert_allclose([report.loss for report in reports], [report.loss for report in expected], rtol=1e-4)
    assert all(list(report.exposed_ns) == ["tp", "cp", "dp", "pp", "dp_cp"] for report in reports)
    assert all(report.exposed_ns["cp"] > 0 and report.exposed_ns["dp_cp"] > 0 for report in reports)
    assert set(outcome.trace.axis_N) == {"tp", "cp", "dp", "pp", "dp_cp"}
    assert {"exposed_cp_ns", "exposed_dp_cp_ns"} <= training_table(reports).keys()


def test_a_run_on_one_rank_has_the_same_losses(outcome: Outcome) -> None:
    """In single precision, over four ranks or one: the same samples, the same weights, the same steps."""
    alone = {"degrees": {"num_batches": 4, "batch_size": 2}}
    reports = run(load_recipe(TINY, {"num_steps": 3, **alone}))[0].reports
    np.testing.assert_allclose(
        [report.loss for report in outcome.reports], [report.loss for report in reports], rtol=1e-4
    )
    np.testing.assert_allclose(
        [report.gradient_norm for report in outcome.reports], [report.gradient_norm for report in reports], rtol=1e-3
    )


def test_the_trace_has_the_last_step_of_all_ranks(outcome: Outcome) -> None:
    """One traced step of three."""
    assert set(outcome.trace.rank_N.tolist()) == set(range(4))
    assert set(outcome.trace.step_N.tolist()) == {2}
    assert set(outcome.trace.axis_N) == {"tp", "dp", "pp"}


def test_the_record_tells_how_to_go_on(recipe: Recipe, outcome: Outcome, tmp_path: Path) -> None:
    """Three steps of eight samples; a recipe's settings; the trace as a file that other commands read."""
    directory = make_record(recipe, outcome, started=0.0).write(tmp_path / "run")
    record = RunRecord.read(directory)
    assert record.kind == "train run"
    assert record.run["outcome"] == "finished"
    assert record.run["data_state"]["place"] == 24
    assert record.run["next_step"] == 3
    assert record.run["configuration"]["degrees.layout.tp"] == 2
    assert record.tables["training"]["loss"].tolist() == [report.loss for report in outcome.reports]
    assert len(CommTrace.read(directory / "comm_trace.parquet")) == len(outcome.trace)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"degrees.layout.dp": 128},
            "tiny: degrees.layout: tp 2 times dp 128 times pp 2: 512 ranks\n"
            "  allowed: at most 256 processes on one machine\n"
            "  next: start it with torchrun or srun on the machines it is for",
        ),
        (
            {"device": "cuda"},
            "tiny: device: processes started here communicate over gloo, and GPUs need NCCL\n"
            "  next: torchrun --nproc-per-node GPUS -m fabrictune train run ...",
        ),
        (
            {"device": "cuda", "degrees": {}},
            "tiny: device: torch sees 0 GPUs here, and this is local rank 0\n"
            "  next: start one rank per GPU, with a CUDA build of torch; or --set device=cpu",
        ),
        ({"data": {"source": "tokens", "path": "/no/such.tokens"}}, "/no/such.tokens: No such file or directory"),
    ],
)
def test_what_cannot_run_is_refused_before_any_process_starts(
    changes: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message, from the process that was to start the ranks, which sees no GPU."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(FabrictuneError) as raised:
        run(load_recipe(TINY, changes))
    assert str(raised.value) == message

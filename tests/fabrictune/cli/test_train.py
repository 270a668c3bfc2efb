"""`fabrictune train`, from the command line to the record: ranks started here, and by others."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.startup.servers import free_port
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.data.token_file import HEADER_BYTES
from fabrictune.trainer_probe.data.tokenization import ByteTokenizer, tokenize
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.training.local import train_locally
from tests.patience import patience

pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]
TWO_RANKS = ("--set", 'degrees={"layout": {"dp": 2}}', "--set", "num_steps=2")
FOREIGN = (
    "import fabrictune.foundation.records; fabrictune.foundation.records.installed_version = lambda package: 'another';"
)

Launcher = Callable[[int, int], dict[str, str]]  # rank, port -> environment
ELSEWHERE = "import socket; socket.gethostname = lambda: 'elsewhere';"
MAIN = "import sys; from fabrictune.cli.main import run; sys.exit(run(sys.argv[1:]))"


def torchrun(rank: int, port: int) -> dict[str, str]:
    """Return what torchrun tells a rank of two on one machine."""
    told = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    return {**told, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def srun(rank: int, port: int) -> dict[str, str]:
    """Return what srun tells a task of two on one node."""
    told = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_STEP_NUM_TASKS": "2"}
    return {**told, "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_JOB_ID": "7", "MASTER_PORT": str(port)}


def start(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, code: str = MAIN
) -> subprocess.Popen[str]:
    """Start a process of the command line."""
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", "run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_two(
    words: Sequence[str],
    folder: Path,
    *,
    second: Sequence[str] = (),
    second_code: str = MAIN,
    launcher: Launcher = torchrun,
) -> tuple[list[int], list[str], list[str]]:
    """Return exit codes, outputs and errors of two ranks, the second with more words and other code."""
    port = free_port()
    ranks = [
        start(words, folder, launcher(0, port)),
        start([*words, *second], folder, launcher(1, port), code=second_code),
    ]
    said = [process.communicate(timeout=patience(120)) for process in ranks]
    return [process.returncode for process in ranks], [out for out, _ in said], [error for _, error in said]


def test_a_run_prints_its_steps_and_leaves_a_record(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two ranks started here: a line a step, the record, and the trace that other commands read."""
    assert run(["train", "run", "tiny", *TWO_RANKS, "--out", str(tmp_path / "run")]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "tiny: 2 ranks, tp 1, dp 2, pp 1; overlap all, float32 on cpu; garbage collected every 100 steps"
    assert lines[1].split() == ["step", "loss", "gradient", "tokens/s", "MFU", "exposed", "tp", "dp", "pp"]
    assert [line.split()[0] for line in lines[2:4]] == ["0", "1"]
    assert [line.split()[4] for line in lines[2:4]] == ["n/a", "n/a"]
    assert lines[4] == "1 check: 1 passed"
    assert lines[5].startswith("answer: After 2 steps: loss ")
    assert lines[6:] == [f"record: {tmp_path / 'run'}"]
    assert RunRecord.read(tmp_path / "run").run["command"].startswith("fabrictune train run tiny")
    assert run(["trace", "show", str(tmp_path / "run" / "comm_trace.parquet")]) == 0
    assert "of 2 ranks" in capfd.readouterr().out


def torchrun_on_two(rank: int, port: int) -> dict[str, str]:
    """Return what torchrun tells the only rank of each of two machines."""
    return {**torchrun(rank, port), "LOCAL_RANK": "0"}


@pytest.fixture(scope="module")
def losses() -> list[float]:
    """Return the losses of two ranks started here."""
    recipe = load_recipe(find_recipe("tiny"), {"degrees": {"layout": {"dp": 2}}, "num_steps": 2})
    outcome = train_locally(recipe, on_step=lambda report: None, timeout_s=patience(120))
    return [report.loss for report in outcome.reports]


@pytest.mark.parametrize(
    ("launcher", "second_code"),
    [(torchrun, MAIN), (srun, MAIN), (torchrun_on_two, ELSEWHERE + MAIN)],
    ids=["torchrun", "srun", "two machines"],
)
def test_ranks_that_others_started_are_one_run(
    launcher: Launcher, second_code: str, losses: list[float], tmp_path: Path
) -> None:
    """One record, by rank 0, with the requests of both; not a word from rank 1, also where it reads for itself.

    The losses are those of ranks started here, so each has the samples that are its own.
    """
    words = ["tiny", *TWO_RANKS, "--json", "--out", "run"]
    codes, outs, errors = run_two(words, tmp_path, second_code=second_code, launcher=launcher)
    assert (codes, outs[1], errors) == ([0, 0], "", ["", ""])
    printed = json.loads(outs[0])
    assert printed["outcome"] == "finished"
    assert [step["loss"] for step in printed["steps"]] == losses
    assert set(CommTrace.read(tmp_path / "run" / "comm_trace.parquet").rank_N.tolist()) == {0, 1}


def test_a_rank_of_another_version_and_recipe_stops_all(tmp_path: Path) -> None:
    """Refused by both, said once, with the setting that differs."""
    words = ["tiny", *TWO_RANKS]
    codes, outs, errors = run_two(words, tmp_path, second=["--set", "seed=4"], second_code=FOREIGN + MAIN)
    assert (codes, outs, errors[1]) == ([2, 2], ["", ""], "")
    assert re.fullmatch(
        r'rank 1: fabrictune: "another"\n  allowed: ".*", as on rank 0\n  next: install the same version.*\n'
        r'rank 1: torch: "another"\n.*\n.*\n'
        r"rank 1: seed: 4\n  allowed: 0, as on rank 0\n  next: start every rank with the same recipe .*\n",
        errors[0],
    )
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["tiny", "--set", "model.window=65", "--set", "model.depth=3"],
            "--set: model.window: 65\n  allowed: at most the sequence, 64\n  next: leave it out for full attention\n",
        ),
        (
            ["tiny", "--set", "model.depth=3"],
            "--set: model.depth: 3\n  allowed: a multiple of 4, pp 2 times virtual 2\n",
        ),
        (
            ["tiny"],
            "tiny: degrees.layout: tp 2 times dp 2 times pp 2: 8 ranks\n  allowed: 2, as torchrun has started\n"
            "  next: change the degrees, or start as many ranks\n",
        ),
        (
            ["tiny", *TWO_RANKS, "--set", 'data={"source": "tokens", "path": "SHORT"}'],
            "SHORT: cut short: 164 bytes\n  allowed: 268 bytes: a header and 100 ids of 2 bytes, and their checksums\n"
            "  next: copy the file again, or tokenize the text again\n",
        ),
        (
            ["tiny", *TWO_RANKS, "--set", "model.vocabulary=256", "--set", 'data={"source": "tokens", "path": "GOOD"}'],
            "GOOD: a vocabulary of 257 ids\n  allowed: at most the model's 256\n"
            "  next: give the model a larger vocabulary, or tokenize with a smaller one\n",
        ),
    ],
    ids=["window", "layers", "ranks", "cut short", "vocabulary"],
)
def test_what_cannot_be_trained_is_refused_by_every_rank(words: list[str], message: str, tmp_path: Path) -> None:
    """Before the first step, with one message, whoever finds it."""
    good, short = tmp_path / "good.tokens", tmp_path / "short.tokens"
    (tmp_path / "text").write_text("x" * 99)
    tokenize([tmp_path / "text"], good, ByteTokenizer())
    short.write_bytes(good.read_bytes()[: HEADER_BYTES + 100])
    places = {"GOOD": str(good), "SHORT": str(short)}

    def placed(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    codes, outs, errors = run_two([placed(word) for word in words], tmp_path)
    assert (codes, outs, errors) == ([2, 2], ["", ""], [placed(message), ""])
    assert not (tmp_path / "runs").exists()


def test_weights_go_out_and_in(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run from the weights that another left after one step has the loss of a run's second step, to the last bit."""
    pytest.importorskip("safetensors")
    words = ["train", "run", "tiny", "--set", 'model={"preset": "llama-tiny"}', "--set", "degrees={}", "--json"]
    weights = str(tmp_path / "weights")

    def steps(name: str, *more: str) -> list[dict[str, float]]:
        assert run([*words, "--out", str(tmp_path / name), *more]) == 0
        return list(json.loads(capfd.readouterr().out)["steps"])

    whole = steps("whole", "--set", "num_steps=2")
    steps("first", "--set", "num_steps=1", "--export", weights)
    (second,) = steps("second", "--set", "num_steps=1", "--set", "first_step=1", "--set", f"weights={weights}")
    assert (second["step"], second["loss"]) == (1, whole[1]["loss"])
    assert second["learning_rate"] == whole[1]["learning_rate"]
    assert run([*words[:-1], "--set", "model.depth=8", "--set", f"weights={weights}"]) == 2
    assert f"{weights}/config.json: num_hidden_layers: 4\n  allowed: 8, as the recipe's" in capfd.readouterr().err
    assert run(["train", "run", "tiny", "--export", str(tmp_path / "none")]) == 2
    assert "model.window: 16\n  allowed: none, as in GPT-2" in capfd.readouterr().err


@pytest.mark.parametrize(("stop", "number"), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)])
def test_an_interrupted_run_leaves_what_it_had(
    tmp_path: Path, stop: Callable[[int, int], None], number: signal.Signals
) -> None:
    """Ctrl-C at a terminal reaches the process and all its ranks, SIGTERM of a scheduler the process.

    The run ends after a step: 130, a partial record, no temporary folder.
    """
    (temporary := tmp_path / "temporary").mkdir()
    words = ["tiny", "--set", 'degrees={"layout": {"dp": 2}}', "--set", "num_steps=100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fabrictune", "train", "run", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    assert any(line.strip().startswith("1 ") for line in process.stdout)
    stop(process.pid, number)
    out, error = process.communicate(timeout=patience(60))
    assert (process.returncode, error) == (130, "")
    assert out.splitlines()[-1] == "stopped; partial record in runs/tiny"
    record = RunRecord.read(tmp_path / "runs" / "tiny")
    assert record.run["outcome"] == "interrupted"
    num_steps = len(record.tables["training"]["step"])
    assert num_steps >= 2
    assert record.run["data_state"]["place"] == 2 * num_steps
    assert not [path for path in temporary.iterdir() if path.name.startswith("fabrictune-")]


def test_an_ablation_prints_its_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two ranks, one round of one step: a row for each technique, and the step it is compared with."""
    words = ["train", "ablate", "tiny", *TWO_RANKS, "--rounds", "1", "--steps", "1", "--out", str(tmp_path / "run")]
    assert run(words) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("rounds: 1, counted steps of a trial: 1;")
    assert lines[1].split()[:2] == ["technique", "tokens/s"]
    assert [line.split("  ")[0] for line in lines[2:-3]] == [
        "serial block",
        "parallel block",
        "sliding window",
        "overlap tp",
        "overlap pp",
        "overlap dp",
        "overlap all",
        "one loader",
        "LAMB, 4x batch",
    ]
    assert lines[-1] == f"record: {tmp_path / 'run'}"
    record = RunRecord.read(tmp_path / "run")
    assert (record.kind, record.run["outcome"]) == ("train ablate", "finished")
    assert (record.tables["ablation_steps"]["tokens_per_s"] > 0).all()
    assert set(record.tables["ablation_trials"]["step"].tolist()) == {1}


def test_an_ablation_starts_its_own_ranks(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Under torchrun every rank would start all the others."""
    for name, value in torchrun(0, 1234).items():
        monkeypatch.setenv(name, value)
    assert run(["train", "ablate", "tiny"]) == 2
    assert capfd.readouterr().err == (
        "fabrictune train ablate: started by torchrun\n"
        "  allowed: a process by itself, which starts its own ranks on this machine\n"
    )

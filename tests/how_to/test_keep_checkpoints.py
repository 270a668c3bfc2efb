"""The page on checkpoints says what is true: its commands run as they stand there."""

import json
import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "keep-checkpoints.md").read_text()


@pytest.mark.slow
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Saved, gone on, listed, verified and exported; then a flipped bit is found, and named."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^   ```sh\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    printed = []
    for line in "".join(blocks).splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
        printed.append(capfd.readouterr())
    assert "resumed from step-00000004.g1" in printed[1].err
    assert RunRecord.read(tmp_path / "runs" / "second").run["next_step"] == 6
    assert re.findall(r"^step-\S+", printed[2].out, re.MULTILINE) == ["step-00000006.g2", "step-00000004.g1"]
    assert [row["damaged"] for row in json.loads(printed[4].out)["checkpoints"]] == [[]]
    assert (tmp_path / "weights" / "config.json").exists()

    damaged = tmp_path / "kept" / "step-00000006.g2" / "rank-00000.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert run(["train", "checkpoint", "verify", "kept"]) == 1
    assert re.search(r"rank-00000\.safetensors: \S+: its CRC32C is another", capfd.readouterr().out)
    assert run(["train", "checkpoint", "list", "nowhere"]) == 0
    assert run(["train", "checkpoint", "verify", "nowhere"]) == 2
    assert capfd.readouterr().err.endswith("nowhere: no checkpoint\n  next: check the place\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--save-every", "2"], "--save-every: without --checkpoint\n  next: name the place of the checkpoints\n"),
        (["--checkpoint", "a", "--keep", "2"], "--keep: without --save-every\n  next: say how often to save\n"),
        (["--checkpoint", "a"], "--checkpoint: neither --save-every nor --resume\n  next: give one of them\n"),
    ],
)
def test_options_without_effect_are_refused(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Before anything starts, with exit code 2."""
    assert run(["train", "run", "tiny", *words]) == 2
    assert capfd.readouterr().err == said

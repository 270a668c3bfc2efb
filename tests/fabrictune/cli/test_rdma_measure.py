"""Commands that measure say what is wrong with their options before they look for a device."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run

BOTH_OR_NONE = "  allowed: --sender, --receiver and --token-file together; --soft-roce; or none, for this host\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["timers", "measure", "--sender", "a:18700"],
            "fabrictune rdma timers measure: one end alone, or no token\n" + BOTH_OR_NONE,
        ),
        (
            ["bw", "--receiver", "a:18700", "--soft-roce"],
            "fabrictune rdma bw: one end alone, or no token\n" + BOTH_OR_NONE,
        ),
        (
            ["timers", "measure", "--flap", "1s"],
            "flap: silence cannot end: it takes commands\n  next: say how: --cut-command and --heal-command\n",
        ),
        (
            ["matrix", "a:18700"],
            "fabrictune rdma matrix: 1 workers\n  allowed: two workers or more, and their --token-file\n",
        ),
        (
            ["timers", "measure", "--against", "conectx-6"],
            "--against: unknown profile 'conectx-6'\n",
        ),
    ],
)
def test_options_that_go_ill_together_are_one_message(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, on stderr, and nothing was started."""
    assert run(["rdma", *words]) == 2
    assert capsys.readouterr().err.startswith(said)


def test_a_worker_that_is_not_there_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody listens on port 1 of the loopback."""
    (tmp_path / "token").write_text("0123456789abcdef")
    ends = ["--sender", "127.0.0.1:1", "--receiver", "127.0.0.1:1", "--token-file", str(tmp_path / "token")]
    assert run(["rdma", "lat", *ends, "--out", str(tmp_path / "run")]) == 3
    assert capsys.readouterr().err.startswith("127.0.0.1:1: no worker there (")
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(Path("/sys/class/infiniband").exists(), reason="this machine has an RDMA subsystem")
@pytest.mark.parametrize("words", [["bw"], ["serve", "--token-file", "token"]])
def test_without_a_device_the_reason_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One of the five, exit code 3, with what to do."""
    assert run(["rdma", *words]) == 3
    said = capsys.readouterr().err
    assert said.startswith(
        (
            "RDMA devices of this host: module missing",
            "RDMA devices of this host: ABI",
            "RDMA devices of this host: no ",
        )
    )
    assert "\n  next: " in said

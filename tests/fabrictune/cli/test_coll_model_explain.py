"""`fabrictune coll model --explain` and `--hosts`, from the command line."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[3]
EIGHT_HOSTS = ["--hosts", "8", "--hardware", "h100"]


def explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run(["coll", "model", *words, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_sizes_have_choice_time_and_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of one operation, its reasons and its assumptions."""
    assert run(["coll", "model", "all_reduce", *EIGHT_HOSTS, "-b", "1 MiB", "-e", "4 MiB"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "8 hosts of 8 GPUs, profile h100, NCCL 2.28, 8 NICs of 400 Gbps over InfiniBand"
    assert lines[1] == (
        "graphs (inside/between hosts): ring 8 x 45/45 GB/s, tree 8 x 48/48 GB/s, NVLS 8 x 40/48 GB/s; "
        "16 channels, 4 queue pairs a NIC"
    )
    assert [line.split()[0] for line in lines[4:7]] == ["1048576", "2097152", "4194304"]
    assert "assumed: CollNet is absent: it needs SHARP's plug-in and NCCL_COLLNET_ENABLE=1" in lines


def test_json_has_the_interval_and_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Each size with its terms, which add up to the time, and the notes."""
    values = explained(["all_reduce", "all_to_all", *EIGHT_HOSTS], capsys)
    rows = values["predictions"]
    assert isinstance(rows, list)
    for row in rows:
        assert row["low_ps"] <= row["time_ps"] <= row["high_ps"]
        assert row["latency_ps"] + row["fill_ps"] + row["transfer_ps"] == pytest.approx(row["time_ps"])
    assert values["notes"]
    assert values["ruled_out"]["all_reduce"]["several hosts need CollNet"] == ["NVLS Simple"]  # type: ignore[index]


def test_a_scenario_gives_ranks_and_nics(capsys: pytest.CaptureFixture[str]) -> None:
    """The job of the scenario on hosts with the GPUs of the profile."""
    words = [str(ROOT / "scenarios" / "allreduce.yaml"), "all_reduce", "--explain", "--hardware", "h100"]
    values = explained(words, capsys)
    system = values["system"]
    assert isinstance(system, dict)
    assert system["num_hosts"] * system["num_gpus_per_host"] > 1
    assert system["transport"] == "InfiniBand"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all_reduce", *EIGHT_HOSTS, "--env", "NCCL_ALGO=Rong"], "did you mean 'ring'?"),
        (["all_reduce", *EIGHT_HOSTS, "--env", "NCCL_ALGO"], "allowed: NCCL_NAME=VALUE"),
        (["all_reduce", *EIGHT_HOSTS, "--nccl", "2.20"], "allowed: 2.27, 2.28"),
        (["all_gather", *EIGHT_HOSTS, "--env", "NCCL_ALGO=Tree"], "no algorithm and protocol left for all_gather"),
        (["all_redeuce", *EIGHT_HOSTS], "all_reduce"),
        (["my.yaml", "all_reduce", "--env", "NCCL_ALGO=Ring"], "--env, --tuner and --graphs are for --explain"),
        (["my.yaml"], "OPERATION"),
        (["all_reduce", "--hosts", "2", "--hardware", "h300"], "p4de, p5"),
    ],
)
def test_bad_input_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with what is allowed."""
    assert run(["coll", "model", *words]) == 2
    assert said in capsys.readouterr().err

"""`topo probe` before it sends anything: what it asks for, what it refuses, what it announces."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

SCENARIO = """
name: lab
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1}
traffic: {workload: incast, senders: 1, message: 1 MB}
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--target is missing\n  next: fabrictune topo probe --help\n"),
        (["--rate", "10"], "--target is missing\n  next: fabrictune topo probe --help\n"),
        (["--target", "10.0.0.2"], "--rate is missing\n  next: fabrictune topo probe --help\n"),
    ],
)
def test_targets_and_rate_have_no_default(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever probes a network says whom and how hard: exit code 2, before anything else is looked at."""
    assert run(["topo", "probe", *options]) == 2
    assert capsys.readouterr().err == f"fabrictune topo probe: {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--target", "leaf1"],
            "fabrictune topo probe: --target: no IPv4 address: Expected 4 octets in 'leaf1'\n"
            "  next: fabrictune topo probe --help\n",
        ),
        (
            ["--target", "10.0.0.2", "--source-ports", "0", "--timeout", "1 h", "--max-hops", "0"],
            "fabrictune topo probe: --source-ports: 0\n  allowed: 1 to 16,384\n"
            "fabrictune topo probe: --max-hops: 0\n  allowed: 1 to 32\n"
            "fabrictune topo probe: --timeout: 3600 s\n  allowed: 10 ms to 10 s\n",
        ),
        (
            ["--target", "10.0.0.2", "--timeout", "5"],
            "fabrictune topo probe: --timeout: '5': a duration needs its unit\n"
            "  allowed: a number and one of ps, ns, us, ms, s, min, h; for example '5 us'\n",
        ),
        (["--target", "10.0.0.2", "--names", "nowhere"], "nowhere: no such file\n  next: check the path\n"),
        (
            ["--target", "10.0.0.9", "--against", "lab.yaml"],
            "fabric 'clos-2x1': no NIC has the address 10.0.0.9\n"
            "  next: compare with a fabric whose NICs have the addresses that were probed\n",
        ),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the option it stands in; files are read and the model is asked for its targets first."""
    monkeypatch.chdir(tmp_path)
    Path("lab.yaml").write_text(SCENARIO)
    assert run(["topo", "probe", "--rate", "10", "--dry-run", *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", message)


def test_the_how_to_shows_what_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """The first command of the page, and the line below it."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "probe-paths.md").read_text()
    command, announced = page.partition("```\n$ ")[2].splitlines()[:2]
    assert run(command.split()[1:]) == 0
    assert capsys.readouterr().err == f"{announced}\n"


def test_a_dry_run_gives_its_bounds_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """For a script that decides by them: 64 ports x 8 hops x 3 attempts."""
    assert run(["topo", "probe", "--target", "10.0.0.2", "--rate", "64", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "targets": ["10.0.0.2"],
        "max_probes": 1536,
        "max_rate_per_s": 64,
        "max_duration_s": 8 * (1 + 2 + 4 + 1.5),
    }


def test_a_dry_run_says_what_would_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """2 targets x 16 ports x 4 hops x 2 attempts are 256 probes; 4 x (32 / 50 + 32 / 25 + 2 x 0.5) s are 12 s."""
    options = ["--rate", "50", "--source-ports", "16", "--max-hops", "4", "--attempts", "2", "--dry-run"]
    assert run(["topo", "probe", "--target", "10.0.0.2", "--target", "10.0.0.3", *options]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "would send at most 256 UDP packets of 52 bytes to port 4791 of 10.0.0.2, 10.0.0.3, "
        "at most 50 a second, for at most 12 s\n"
    )

"""`fabrictune rdma timers`, as a user and a script meet it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.rdma_bench.timers.profile_files import write_profile
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """Return what `fabrictune rdma timers ...` prints."""
    assert run(["rdma", "timers", *arguments]) == code
    return capsys.readouterr().out


def values(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    """Return what the command prints as JSON."""
    return json.loads(printed(capsys, *arguments, "--json", code=code))


def test_every_account_stands_beside_the_others(capsys: Capture) -> None:
    """NCCL's newest defaults, T 20 and R 7: 34 s by the standard, 60 s measured, and each with its source."""
    shown = printed(capsys, "predict", "--flap", "30s")
    assert "timeout 20, 7 retries, by profile:" in shown
    assert "connectx-6            8.59 s  51.17 s" in shown
    assert "error 12 at 30.06 s" in shown
    assert all(f"\n  {name}: {profile.source}" in shown for name, profile in KNOWN_PROFILES.items())


def test_a_version_of_nccl_stands_for_its_defaults(capsys: Capture) -> None:
    """2.21 had T 18: 15 s on a ConnectX-6; what is set beside it holds."""
    (prediction,) = values(capsys, "predict", "--nccl", "2.21.5", "--profile", "connectx-6")
    assert (prediction["timeout_exponent"], prediction["retries"]) == (18, 7)
    assert prediction["gives_up_ns"] == pytest.approx(14.67e9, rel=0.01)
    (prediction,) = values(capsys, "predict", "--nccl", "2.21.5", "--retries", "3", "--profile", "ibta")
    assert (prediction["timeout_exponent"], prediction["retries"]) == (18, 3)


def test_a_profile_of_ones_own_is_an_account_too(capsys: Capture, tmp_path: Path) -> None:
    """A file, as `measure` writes it."""
    path = write_profile(KNOWN_PROFILES["soft-roce"], tmp_path / "nic.json")
    (prediction,) = values(capsys, "predict", "--profile", str(path), "--timeout", "14", "--flap", "1 s")
    assert prediction["survives"] is True
    assert prediction["gives_up_ns"] is None, "seven retries never end"


def test_an_account_that_says_nothing_of_the_settings_is_left_out_unless_named(capsys: Capture) -> None:
    """A ConnectX-6 was not seen to agree with itself at R 0."""
    assert "connectx-6 " not in printed(capsys, "predict", "--retries", "0")
    assert run(["rdma", "timers", "predict", "--retries", "0", "--profile", "connectx-6"]) == 2
    assert "retries: 0\n  allowed: 1 or more, for connectx-6" in capsys.readouterr().err


def test_a_table_has_every_timeout_and_retry_count(capsys: Capture) -> None:
    """The row of T 20: R 1 is the early series alone, R 7 the 59.8 s that were measured; the others were not tried."""
    shown = printed(capsys, "table")
    assert "       20   8.225 s*   16.81 s*    25.4 s*   33.99 s*   42.58 s*   51.17 s*    59.76 s\n" in shown
    assert "*: not tried, and no interval known\nassumed: a ConnectX-6 VPI with firmware 20.43.4100" in shown
    assert len(values(capsys, "table", "--profile", "ibta")) == 9 * 8


def test_settings_are_found_for_what_is_wanted(capsys: Capture) -> None:
    """Ten seconds survived and noticed within thirty: T 18, R 6 on a ConnectX-6."""
    shown = printed(capsys, "choose", "--survive", "10s", "--detect-within", "30s").splitlines()
    assert shown[0] == "by the timers of connectx-6 (ConnectX-6 VPI, firmware 20.43.4100):"
    assert shown[2].startswith("NCCL_IB_TIMEOUT=18 NCCL_IB_RETRY_CNT=6")
    assert shown[2].endswith("extrapolated, no interval")
    assert shown[3].endswith("14.67 s to 15.04 s  measured, 5 trials")


def test_survival_is_one_line_and_unknown_adapters_are_named(capsys: Capture) -> None:
    """T 20, R 7: 30.06 s by the standard, 51.17 s by a ConnectX-6; the exit code is 1 where a profile does not."""
    assert printed(capsys, "predict", "--survive", "10s") == (
        "timeout 20, 7 retries: survives 10 s on all profiles; unknown: connectx-7, bluefield-3 (nothing published; "
        "`fabrictune rdma timers measure` makes a profile)\n"
    )
    both = ("--survive", "40s", "--survive", "20s", "--profile", "ibta", "--profile", "connectx-6")
    assert printed(capsys, "predict", *both, code=1).startswith(
        "timeout 20, 7 retries: survives 20 s on all profiles; 40 s on connectx-6; not on ibta (30.06 s); unknown: "
    )
    assert [row["flaps"] for row in values(capsys, "predict", *both, code=1)] == [
        [{"flap_ns": 4e10, "survives": False}, {"flap_ns": 2e10, "survives": True}],
        [{"flap_ns": 4e10, "survives": True}, {"flap_ns": 2e10, "survives": True}],
    ]
    assert "survives 200 s on no profile;" in printed(
        capsys, "predict", "--survive", "200s", "--profile", "ibta", code=1
    )


@pytest.mark.parametrize("name", ["connectx-7", "BlueField-3"])
def test_an_adapter_without_published_timers_is_no_other_one(name: str, capsys: Capture) -> None:
    """The nearest name would be a ConnectX-6, which is another NIC: what is known is said instead."""
    assert run(["rdma", "timers", "table", "--profile", name]) == 2
    refused = capsys.readouterr().err
    assert refused.startswith(f"--profile: {name}: timers unknown (NVIDIA, Adaptive Retransmission: Parameters Control")
    assert "next: measure yours with `fabrictune rdma timers measure`" in refused
    assert "did you mean" not in refused


def test_a_choice_says_which_adapter_it_is_for(capsys: Capture) -> None:
    """Nobody named one; the NICs of a 400G fabric are others."""
    assumed = (
        "assumed: a ConnectX-6 VPI with firmware 20.43.4100, for want of --profile; of a ConnectX-7 or BlueField-3 no "
        "timers are known: `fabrictune rdma timers measure` makes a profile of yours"
    )
    assert printed(capsys, "choose", "--survive", "10s").splitlines()[-1] == assumed
    assert values(capsys, "choose", "--survive", "10s")["assumptions"] == [assumed]
    assert "assumed" not in printed(capsys, "choose", "--survive", "10s", "--profile", "connectx-6")


def test_where_no_settings_do_the_nearest_are_shown(capsys: Capture) -> None:
    """A flap of 30 s noticed within 31 is too much to ask, so the exit code is 1."""
    shown = printed(capsys, "choose", "--survive", "30s", "--detect-within", "31s", code=1)
    assert shown.startswith(
        "no settings do both by the timers of connectx-6 (ConnectX-6 VPI, firmware 20.43.4100); nearest:"
    )
    assert len(values(capsys, "choose", "--survive", "30s", "--detect-within", "31s", code=1)["nearest"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--nccl", "two"], "--nccl: 'two'\n  allowed: a version of NCCL, such as 2.23.4"),
        (["predict", "--retries", "15"], "--retries"),
        (["predict", "--flap", "30"], "--flap: '30': a duration needs its unit"),
        (["table", "--profile", "connectx6"], "did you mean 'connectx-6'?"),
        (["choose"], "--survive is missing"),
    ],
)
def test_a_mistake_says_what_is_allowed(arguments: list[str], message: str, capsys: Capture) -> None:
    """No traceback, and the option by its name."""
    assert run(["rdma", "timers", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_logs_are_explained_and_the_exit_code_says_whether_something_is_wrong(capsys: Capture, tmp_path: Path) -> None:
    """One error 12 is one finding; `--json` gives it with the settings in force."""
    log = tmp_path / "nccl.log"
    log.write_text(
        "a:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
        "a:1:2 [0] NCCL WARN NET/IB : Got completion from peer b<1> with error 12, opcode 0, len 0, vendor err 129\n"
    )
    shown = printed(capsys, "explain", str(log), code=1)
    assert shown.startswith("NCCL 2.21.5+cuda12.4; timeout 18, 7 retries: retry-exceeded error after 14.67 s, flaps of")
    assert (
        "\nassumed: adapter: connectx-6 (ConnectX-6 VPI, firmware 20.43.4100) stands in for devices the log does"
        in shown
    )
    assert "error: a: device not named to the host at b: error 12, IBV_WC_RETRY_EXC_ERR: no answer, once" in shown
    told = values(capsys, "explain", str(log), "--flap", "30s", code=1)
    assert told["settings"]["timeout_exponent"] == 18
    assert (told["settings"]["confidence"], told["networks"]) == ("assumed", ["IB"])
    assert [finding["id"] for finding in told["findings"]] == ["nccl.retries-exceeded", "nccl.flap-too-long"]
    assert run(["rdma", "timers", "explain", str(log), "--fail-on", "never"]) == 0


def test_a_log_without_a_version_has_no_one_setting(capsys: Capture, tmp_path: Path) -> None:
    """NCCL_DEBUG=WARN: three defaults are possible, and --nccl says which."""
    log = tmp_path / "nccl.log"
    log.write_text("a:1:2 [0] NCCL WARN NET/IB : Got completion from peer b<1> with error 12, vendor err 129\n")
    told = values(capsys, "explain", str(log), code=1)
    assert (told["nccl"], told["settings"]) == (None, None)
    assert [one["timeout_exponent"] for one in told["possible_settings"]] == [14, 18, 20]
    told = values(capsys, "explain", str(log), "--nccl", "2.20.3", code=1)
    assert (told["nccl"], told["settings"]["timeout_exponent"]) == ("2.20.3", 18)

"""What NCCL's logs say of timers: errors by both ends, and settings that cannot work."""

import math
from pathlib import Path

import pytest

from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.foundation.records import Finding, Severity
from fabrictune.rdma_bench.timers.nccl_log_report import Explanation, Requirements, explain_log
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES

SECOND_NS = 10**9
VERSION = "a:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4"
ERROR = (
    "{}:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.2.0.5<1> with status={} opcode=0 len=0 vendor err {} "
    "(Send) localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2 hca mlx5_1"
)


def setting(host: str, name: str, value: object) -> str:
    """Return the line that logs a setting of the environment."""
    return f"{host}:1:1 [0] NCCL INFO {name} set by environment to {value}."


def explained(
    tmp_path: Path, *lines: str, wanted: Requirements | None = None, profile: str = "connectx-6"
) -> Explanation:
    """Return the explanation of a log of these lines."""
    path = tmp_path / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    return explain_log(read_nccl_log([path]), KNOWN_PROFILES[profile], wanted or Requirements())


def only(explanation: Explanation) -> Finding:
    """Return the one finding there is."""
    (finding,) = explanation.findings
    return finding


def test_error_12_is_told_by_both_ends_and_how_long_nothing_came(tmp_path: Path) -> None:
    """Three of them are one finding; 2.21 sets T 18, 14.67 s on a ConnectX-6; what was flushed after is counted."""
    lines = [ERROR.format("a", 12, 129)] * 3 + [ERROR.format("a", 5, 249)] * 4
    finding = only(explained(tmp_path, VERSION, *lines))
    assert finding.id == "nccl.retries-exceeded"
    assert finding.entity == "a: mlx5_1, GID ::ffff:10.0.0.1 to the host at 10.2.0.5, GID ::ffff:10.0.0.2"
    assert finding.expected == "an answer within 14.67 s"
    assert finding.actual == (
        "error 12, IBV_WC_RETRY_EXC_ERR: no answer, 3 times; vendor error 129 (0x81); flushed after it: 4"
    )
    assert finding.evidence == tuple(f"{tmp_path}/nccl.log:{line}" for line in (2, 3, 4))
    assert finding.next_step.endswith("timeout 18 with 7 retries survives flaps up to 12.52 s")


def test_for_a_flap_it_says_what_to_set(tmp_path: Path) -> None:
    """30 s are beyond T 18; T 20 with 5 retries is the first to give up of those that survive them."""
    explanation = explained(tmp_path, VERSION, wanted=Requirements(survive_ns=30 * SECOND_NS))
    finding = only(explanation)
    assert finding.id == "nccl.flap-too-long"
    assert finding.actual == "survives up to 12.52 s"
    assert finding.next_step == "for a flap of 30 s set NCCL_IB_TIMEOUT=20 NCCL_IB_RETRY_CNT=5 on every host"


def test_where_nothing_can_be_set_it_says_so(tmp_path: Path) -> None:
    """A flap of 30 s within a watchdog of 20."""
    wanted = Requirements(survive_ns=30 * SECOND_NS, watchdog_ns=20 * SECOND_NS)
    finding = only(explained(tmp_path, VERSION, wanted=wanted))
    assert finding.next_step == (
        "for a flap of 30 s no settings give up before a watchdog of 20 s: raise that, or shorten the flap"
    )


def test_a_watchdog_that_barks_first_is_a_warning(tmp_path: Path) -> None:
    """T 20, 59.76 s: a watchdog of 30 s ends the job without the line that names the link."""
    lines = (VERSION, setting("a", "NCCL_IB_TIMEOUT", 20))
    finding = only(explained(tmp_path, *lines, wanted=Requirements(watchdog_ns=30 * SECOND_NS)))
    assert (finding.id, finding.severity, finding.actual) == (
        *("nccl.watchdog-too-short", Severity.WARNING, "59.76 s"),
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NCCL_IB_RETRY_CNT", 15, "0 to 7: the field has three bits; a larger value is cut off or refused"),
        ("NCCL_IB_RETRY_CNT", "seven", "0 to 7: the field has three bits; a larger value is cut off or refused"),
        ("NCCL_IB_TIMEOUT", 32, "0 to 31: the field has five bits; a larger value waits indefinitely"),
        ("NCCL_IB_TIMEOUT", "-1", "0 to 31: the field has five bits; a larger value waits indefinitely"),
        ("NCCL_IB_RETRY_CNT", 0, "1 to 7: with 0 the first lost packet may end the job"),
        ("NCCL_IB_TIMEOUT", 0, "1 to 31: 0 turns the timer off, and a lost packet is never sent again"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error(name: str, value: object, expected: str, tmp_path: Path) -> None:
    """With the line that logs it."""
    finding = only(explained(tmp_path, VERSION, setting("a", name, value)))
    assert (finding.id, finding.severity) == ("nccl.timer-setting", Severity.ERROR)
    assert (finding.entity, finding.actual, finding.expected) == (f"a: {name}", str(value), expected)
    assert finding.evidence == (f"{tmp_path}/nccl.log:2",)


def test_hosts_that_differ_are_a_warning_and_the_first_to_give_up_decides(tmp_path: Path) -> None:
    """b sets T 22; a logs its environment without it, so it has the version's 18."""
    lines = (VERSION, setting("a", "NCCL_DEBUG", "INFO"), setting("b", "NCCL_IB_TIMEOUT", 22))
    explanation = explained(tmp_path, *lines)
    finding = only(explanation)
    assert (finding.severity, finding.entity) == (Severity.WARNING, "the job: NCCL_IB_TIMEOUT")
    assert finding.actual == "18 on a, 22 on b"
    assert explanation.prediction.spec.timeout_exponent == 18


def test_another_error_says_what_it_means(tmp_path: Path) -> None:
    """A peer whose process has ended may take its memory back before its queue pair: error 10."""
    finding = only(explained(tmp_path, ERROR.format("a", 10, 136)))
    assert finding.id == "nccl.completion-error"
    assert finding.actual.startswith("error 10, IBV_WC_REM_ACCESS_ERR: the peer has taken its memory back")


def test_a_log_without_errors_has_no_findings(tmp_path: Path) -> None:
    """And without a version the newest known is taken: T 20."""
    explanation = explained(tmp_path, setting("a", "NCCL_DEBUG", "INFO"))
    assert not explanation.findings
    assert explanation.prediction.spec.timeout_exponent == 20
    assert explanation.prediction.gives_up_ns < math.inf

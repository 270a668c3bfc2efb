"""What NCCL's logs say of timers: errors by both ends, and settings that cannot work."""

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


def test_a_finding_shows_the_first_five_lines(tmp_path: Path) -> None:
    """Of seven completions, and of six hosts whose settings differ."""
    finding = only(explained(tmp_path, VERSION, *[ERROR.format("a", 12, 129)] * 7))
    assert finding.evidence == tuple(f"{tmp_path}/nccl.log:{line}" for line in range(2, 7))
    lines = [setting(host, "NCCL_IB_TIMEOUT", 18 + (host == "f")) for host in "abcdef"]
    finding = only(explained(tmp_path, VERSION, *lines))
    assert finding.evidence == tuple(f"{tmp_path}/nccl.log:{line}" for line in range(2, 7))


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
        *("nccl.watchdog-too-short", Severity.WARNING, "queue pairs fail after 59.76 s"),
    )


def test_requirements_may_be_met_exactly(tmp_path: Path) -> None:
    """A watchdog that acts when the queue pair fails, a flap as long as the longest that is survived."""
    (prediction,) = explained(tmp_path, VERSION).predictions
    met = Requirements(survive_ns=prediction.longest_flap_ns, watchdog_ns=prediction.gives_up_ns)
    assert not explained(tmp_path, VERSION, wanted=met).findings
    missed = Requirements(survive_ns=met.survive_ns + 1, watchdog_ns=met.watchdog_ns - 1)
    findings = explained(tmp_path, VERSION, wanted=missed).findings
    assert [finding.id for finding in findings] == ["nccl.flap-too-long", "nccl.watchdog-too-short"]


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
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [18]


def test_another_error_says_what_it_means(tmp_path: Path) -> None:
    """A peer whose process has ended may take its memory back before its queue pair: error 10."""
    finding = only(explained(tmp_path, ERROR.format("a", 10, 136)))
    assert finding.id == "nccl.completion-error"
    assert finding.actual.startswith("error 10, IBV_WC_REM_ACCESS_ERR: the peer has taken its memory back")


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (4, "IBV_WC_LOC_PROT_ERR: the adapter may not use the local memory"),
        (9, "IBV_WC_REM_INV_REQ_ERR: the peer refused the request"),
        (10, "IBV_WC_REM_ACCESS_ERR: the peer has taken its memory back"),
        (11, "IBV_WC_REM_OP_ERR: the peer could not complete it"),
        (13, "IBV_WC_RNR_RETRY_EXC_ERR: the peer had no receive posted for too long"),
        (14, "see ibv_poll_cq(3)"),
    ],
)
def test_a_status_is_that_of_verbs(status: int, meaning: str, tmp_path: Path) -> None:
    """Numbers of rdma-core's verbs.h."""
    finding = only(explained(tmp_path, VERSION, ERROR.format("a", status, 1)))
    assert finding.actual.startswith(f"error {status}, {meaning}")


def test_a_log_without_errors_has_no_findings(tmp_path: Path) -> None:
    """2.21 sets T 18; what is not in the log is listed as assumed."""
    explanation = explained(tmp_path, VERSION, setting("a", "NCCL_DEBUG", "INFO"))
    assert not explanation.findings
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [18]
    assert explanation.assumptions == (
        "network: the log does not name it; these timers hold for NET/IB alone",
        "adapter: NCCL does not log its model; connectx-6 is the profile of a ConnectX-6 VPI, firmware 20.43.4100",
    )


def test_without_a_version_every_default_is_possible(tmp_path: Path) -> None:
    """NCCL_DEBUG=WARN logs no version: T is 14, 18 or 20 by version, 3.662 s to 59.76 s on a ConnectX-6."""
    explanation = explained(tmp_path, ERROR.format("a", 12, 129))
    assert explanation.version == ""
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [14, 18, 20]
    finding = only(explanation)
    assert finding.expected == "an answer within 3.662 s to 59.76 s"
    assert finding.next_step.endswith("timeout 14, 18 or 20 with 7 retries survives flaps up to 3.125 s to 51.17 s")
    assert explanation.assumptions[0] == (
        "timeout: 14, 18 or 20, the defaults of NCCL before 2.14, before 2.23.4 and since, as the log names no "
        "version; say it with --nccl"
    )
    assert explanation.assumptions[1] == (
        "settings: no host logs its environment, so that NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT count as not set"
    )


def test_without_a_version_two_timeouts_may_be_left(tmp_path: Path) -> None:
    """a sets 18, b has the default of 14, 18 or 20: the first to give up has 14 or 18."""
    lines = (setting("a", "NCCL_IB_TIMEOUT", 18), setting("b", "NCCL_DEBUG", "WARN"))
    explanation = explained(tmp_path, *lines)
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [14, 18]
    assert explanation.assumptions[0].startswith("timeout: 14 or 18, the defaults of NCCL before 2.14")


def test_without_a_version_a_flap_is_survived_only_if_every_default_survives_it(tmp_path: Path) -> None:
    """T 20 survives 10 s on a ConnectX-6, T 14 does not: unknown does not pass."""
    wanted = Requirements(survive_ns=10 * SECOND_NS)
    finding = only(explained(tmp_path, ERROR.format("a", 5, 249), wanted=wanted))
    assert (finding.id, finding.actual) == ("nccl.flap-too-long", "survives up to 3.125 s to 51.17 s")
    assert finding.entity == "timeout 14, 18 or 20, 7 retries, by connectx-6"
    assert finding.next_step == "for a flap of 10 s set NCCL_IB_TIMEOUT=18 NCCL_IB_RETRY_CNT=6 on every host"


def test_a_version_that_is_said_takes_the_place_of_the_log_s(tmp_path: Path) -> None:
    """As with --nccl 2.12."""
    path = tmp_path / "nccl.log"
    path.write_text(ERROR.format("a", 12, 129) + "\n")
    explanation = explain_log(read_nccl_log([path]), KNOWN_PROFILES["connectx-6"], Requirements(), nccl="2.12.7")
    assert (explanation.version, explanation.predictions[0].spec.timeout_exponent) == ("2.12.7", 14)


def test_a_timeout_that_every_host_logs_needs_no_version(tmp_path: Path) -> None:
    """T 22 is set; no default counts."""
    explanation = explained(tmp_path, setting("a", "NCCL_IB_TIMEOUT", 22))
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [22]
    assert not any("--nccl" in assumption for assumption in explanation.assumptions)


@pytest.mark.parametrize(
    ("lines", "networks"),
    [
        (["NET/OFI Selected Provider is efa (found 4 nics)", "Using network AWS Libfabric"], "AWS Libfabric (efa)"),
        (
            ["NET/OFI Selected provider is cxi, fabric is cxi (found 1 nics)", "Using network Libfabric"],
            "Libfabric (cxi)",
        ),
        (["Ring 00 : 1[160] -> 0[160] [receive] via NET/AWS Libfabric/0"], "AWS Libfabric"),
        (["Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"], "Socket"),
    ],
)
def test_no_advice_for_a_network_without_these_timers(lines: list[str], networks: str, tmp_path: Path) -> None:
    """EFA and Slingshot retransmit by themselves, TCP by its own clock: NCCL_IB_TIMEOUT sets none of them."""
    log = [VERSION, *(f"a:1:1 [0] NCCL INFO {line}" for line in lines)]
    explanation = explained(tmp_path, *log, wanted=Requirements(survive_ns=10 * SECOND_NS))
    assert explanation.predictions == ()
    finding = only(explanation)
    assert (finding.id, finding.severity, finding.entity) == (
        "nccl.no-such-timer",
        Severity.ERROR,
        f"network {networks}",
    )
    assert finding.actual == "no prediction: NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT have no effect on it"


def test_without_requirements_a_network_without_timers_is_information(tmp_path: Path) -> None:
    """Nobody asked whether a flap is survived."""
    assert only(explained(tmp_path, VERSION, "a:1:1 [0] NCCL INFO Using network Socket")).severity == Severity.INFO


@pytest.mark.parametrize("wanted", [Requirements(survive_ns=1), Requirements(watchdog_ns=SECOND_NS)])
def test_with_any_requirement_a_network_without_timers_is_an_error(wanted: Requirements, tmp_path: Path) -> None:
    """Unknown does not pass, however short the flap."""
    finding = only(explained(tmp_path, VERSION, "a:1:1 [0] NCCL INFO Using network Socket", wanted=wanted))
    assert finding.severity == Severity.ERROR


@pytest.mark.parametrize("network", ["IB", "IBext", "IBext_v8"])
def test_networks_of_verbs_have_these_timers(network: str, tmp_path: Path) -> None:
    """The plug-in with SHARP opens its queue pairs with the same two settings."""
    explanation = explained(tmp_path, VERSION, f"a:1:1 [0] NCCL INFO Using network {network}")
    assert len(explanation.predictions) == 1
    assert not explanation.findings


def test_the_devices_of_the_log_choose_the_profile(tmp_path: Path) -> None:
    """Nobody gave one: Broadcom's devices are called bnxt_re, soft RoCE's rxe; of others no profile is known."""
    line = "a:1:1 [0] NCCL INFO NET/IB : Using [0]{}:1/RoCE"

    def chosen(device: str) -> tuple[str, str]:
        path = tmp_path / "nccl.log"
        path.write_text("\n".join([VERSION, line.format(device)]) + "\n")
        explanation = explain_log(read_nccl_log([path]), None, Requirements())
        names = [prediction.profile.name for prediction in explanation.predictions]
        return "".join(names), explanation.assumptions[-1] if explanation.assumptions else ""

    assert chosen("bnxt_re0") == (
        "bnxt",
        "adapter: bnxt, by the name of the log's devices (bnxt_re0); --profile names another",
    )
    assert chosen("mlx5_0") == (
        "connectx-6",
        "adapter: connectx-6 (ConnectX-6 VPI, firmware 20.43.4100) stands in for the log's devices (mlx5_0), whose "
        "model NCCL does not log; no ConnectX-7 or BlueField-3 has been measured: --profile names another",
    )
    assert chosen("irdma0")[0] == ""


def test_a_device_without_a_profile_is_said(tmp_path: Path) -> None:
    """No numbers are invented for it."""
    path = tmp_path / "nccl.log"
    path.write_text("\n".join([VERSION, "a:1:1 [0] NCCL INFO NET/IB : Using [0]irdma0:1/RoCE"]) + "\n")
    finding = only(explain_log(read_nccl_log([path]), None, Requirements()))
    assert (finding.id, finding.entity) == ("nccl.no-such-timer", "devices irdma0")
    assert finding.actual == "no prediction: no profile of these devices is known"
    assert finding.next_step == "measure one with `fabrictune rdma timers measure`, or give one with --profile"


def test_two_versions_in_one_job_are_both_possible(tmp_path: Path) -> None:
    """2.21 sets T 18, 2.26 T 20: the first of them to give up ends the job."""
    other = VERSION.replace("2.21.5", "2.26.2")
    explanation = explained(tmp_path, VERSION, other)
    assert explanation.version == "2.21.5+cuda12.4, 2.26.2+cuda12.4"
    assert [prediction.spec.timeout_exponent for prediction in explanation.predictions] == [18, 20]


@pytest.mark.parametrize(
    ("name", "value", "spec"),
    [
        ("NCCL_IB_TIMEOUT", 31, (31, 7)),
        ("NCCL_IB_TIMEOUT", 32, (18, 7)),
        ("NCCL_IB_RETRY_CNT", 1, (18, 1)),
        ("NCCL_IB_RETRY_CNT", 8, (18, 7)),
    ],
)
def test_a_setting_counts_up_to_the_ends_of_its_field(
    name: str, value: int, spec: tuple[int, int], tmp_path: Path
) -> None:
    """Beyond them NCCL 2.21's defaults stand in for it."""
    (prediction,) = explained(tmp_path, VERSION, setting("a", name, value)).predictions
    assert (prediction.spec.timeout_exponent, prediction.spec.retries) == spec


def test_six_retries_are_six(tmp_path: Path) -> None:
    """One less than the most."""
    explanation = explained(tmp_path, VERSION, setting("a", "NCCL_IB_RETRY_CNT", 6))
    assert [prediction.spec.retries for prediction in explanation.predictions] == [6]


def test_a_network_beside_verbs_is_said(tmp_path: Path) -> None:
    """Its connections retransmit by their own rules."""
    networks = [f"{host}:1:1 [0] NCCL INFO Using network {name}" for host, name in (("a", "IB"), ("b", "Socket"))]
    explanation = explained(tmp_path, VERSION, *networks)
    assert "network: the log also names Socket, for which these timers do not hold" in explanation.assumptions

"""Drafts of scenarios from logs: what the log says, what is assumed, and that each is a scenario."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabrictune.collectives.nccl.job_summary import JobSummary, summarize_job
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.scenario.composition import compose_fabric
from fabrictune.scenario.files import parse_scenario
from fabrictune.validate.drafted_scenario import DraftHints, draft_scenario

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl"


def summary(name: str = "roce-2.30") -> JobSummary:
    return summarize_job(read_nccl_log([GOLDEN / f"{name}.log"]))


def test_a_log_that_says_all_leaves_the_fabric_and_the_operation_open() -> None:
    """Hosts, NICs, rate, channels, queue pairs and algorithm are the log's."""
    draft = draft_scenario(summary(), None, DraftHints(), name="drafted")
    assert [line.partition(":")[0] for line in draft.assumptions] == ["builder", "operation", "message"]
    assert "  nic_rate: 400 Gbps  # speed in the log\n" in draft.text
    assert "    channels: 2\n    qps_per_connection: 4\n" in draft.text
    assert not draft.is_rate_assumed


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.log")), ids=lambda path: path.stem)
def test_every_draft_is_a_scenario(path: Path) -> None:
    """Whose fabric has the log's hosts, each with as many NICs as the draft says."""
    job = summary(path.stem)
    scenario = parse_scenario(draft_scenario(job, None, DraftHints(), name="drafted").text, Path("drafted.yaml"))
    assert len(set(compose_fabric(scenario).nic_host_C.tolist())) == job.num_hosts


@pytest.mark.parametrize("num_hosts", [2, 3, 64, 1000])
def test_a_draft_holds_any_number_of_hosts(num_hosts: int) -> None:
    """On one switch for each NIC of a host."""
    job = replace(summary(), num_hosts=num_hosts, num_ranks=2 * num_hosts)
    scenario = parse_scenario(draft_scenario(job, None, DraftHints(), name="drafted").text, Path("drafted.yaml"))
    assert compose_fabric(scenario).num_nics == 2 * num_hosts


def test_a_rate_that_is_given_is_no_assumption() -> None:
    """And takes the place of the log's."""
    draft = draft_scenario(summary("rccl-2.22"), None, DraftHints(rate_bps=50 * 10**9), name="drafted")
    assert "  nic_rate: 50 Gbps  # --nic-rate\n" in draft.text
    assert (draft.rate_bps, draft.is_rate_assumed) == (50 * 10**9, False)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"num_hosts": 1}, "a job on one host, which sends nothing over a network"),
        ({"num_hosts": UNKNOWN}, "a log that does not say how many ranks and hosts there are"),
        ({"num_ranks": UNKNOWN}, "a log that does not say how many ranks and hosts there are"),
        ({"num_hosts": 10**6}, "4 ranks on 1000000 hosts"),
    ],
)
def test_a_job_without_a_network_is_refused(changes: dict[str, Any], found: str) -> None:
    """What is not known is not made up."""
    job = replace(summary(), **changes)
    with pytest.raises(InputError, match=found):
        draft_scenario(job, None, DraftHints(), name="drafted")

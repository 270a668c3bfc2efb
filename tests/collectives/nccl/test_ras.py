"""RAS's answer: what it says of ranks that are missing, failed or behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.nccl.ras_checks import check_ras
from fabrictune.collectives.nccl.ras_json import read_ras
from fabrictune.foundation.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl" / "ras.json"


def changed(tmp_path: Path, **changes: Any) -> Path:
    """Return a copy with other values in the first communicator."""
    tree = json.loads(GOLDEN.read_text())
    tree["communicators"][0] |= changes
    path = tmp_path / "ras.json"
    path.write_text(json.dumps(tree))
    return path


def test_an_answer_is_read_whole() -> None:
    """Two communicators, of four ranks and two."""
    status = read_ras(GOLDEN)
    assert (status.version, status.time) == ("2.29.7", "2026-02-19 13:06:53")
    first, second = status.communicators
    assert (first.num_ranks, len(first.ranks), [one.rank for one in first.missing]) == (4, 3, [3])
    assert first.operations == ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
    assert [rank.counts[-1] for rank in first.ranks] == [6650, 6650, 6649]
    assert [rank.async_error for rank in second.ranks] == [0, 6]


def test_its_state_is_printed_word_for_word(capsys: pytest.CaptureFixture[str]) -> None:
    """A finding for the missing rank, the failed one and the one behind."""
    assert run(["coll", "ras", str(GOLDEN)]) == 1
    assert capsys.readouterr().out == GOLDEN.with_suffix(".txt").read_text()


def test_it_gives_one_json_value(capsys: pytest.CaptureFixture[str]) -> None:
    """With the least and the most that ranks launched."""
    assert run(["coll", "ras", str(GOLDEN), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["communicators"][0]["launched"][-1] == {
        "operation": "AllReduce",
        "num_least": 6649,
        "num_most": 6650,
    }
    assert {finding["id"] for finding in printed["findings"]} == {
        *("nccl.missing-rank", "nccl.failed-rank", "nccl.lagging-rank")
    }


def test_a_job_that_runs_has_no_finding(tmp_path: Path) -> None:
    """All ranks answer, without error, with equal counts."""
    tree = json.loads(GOLDEN.read_text())
    ranks = [{**rank, "collective_counts": {"AllReduce": 5}} for rank in tree["communicators"][0]["ranks"]]
    tree["communicators"] = [{**tree["communicators"][0], "ranks": ranks, "missing_ranks": []}]
    path = tmp_path / "ras.json"
    path.write_text(json.dumps(tree))
    report = check_ras(read_ras(path))
    assert report.findings == ()
    assert len(report.checks) == 3


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"ranks": 5}, "communicator 0: an entry without what RAS writes (TypeError: not a list)"),
        ({"size": "4"}, "communicator 0: an entry without what RAS writes (ValueError: not a whole number of 64 bits)"),
        ({"ranks": [{}]}, "communicator 0: an entry without what RAS writes (KeyError: 'collective_counts')"),
    ],
)
def test_what_ras_does_not_write_is_refused(tmp_path: Path, changes: dict[str, Any], found: str) -> None:
    """With the communicator that has it."""
    with pytest.raises(InputError) as caught:
        read_ras(changed(tmp_path, **changes))
    assert found in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"), [("Job summary\n===========\n", "no JSON"), ('{"communicators": []}', "no communicator")]
)
def test_another_text_says_how_to_ask(tmp_path: Path, text: str, found: str) -> None:
    """RAS answers in text, unless it is asked for JSON."""
    path = tmp_path / "ras.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=found) as caught:
        read_ras(path)
    assert "ncclras -f json" in str(caught.value)

"""Neighbour tables joined: told once or twice, a link is one cable, and what the ends disagree about is a finding."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.errors import FabricError
from fabrictune.foundation.records import Confidence, Severity
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.files import read_fabric, write_fabric
from fabrictune.topology.graphs import from_networkx, to_networkx
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies
from fabrictune.topology.importers.cabling import Cabling


def joined(*adjacencies: Adjacency, reporters: tuple[str, ...] = ()) -> Fabric:
    """Join adjacencies between the hosts a and b."""
    cabling = Cabling("lab")
    for name in ("a", "b"):
        cabling.add_node(name, NodeKind.HOST, where="here")
    join_adjacencies(cabling, adjacencies, reporters=reporters, confidence=Confidence.MEASURED)
    return cabling.finish()


def told(here: str, there: str, **more: int) -> Adjacency:
    """Return an adjacency between port 1 of two nodes."""
    return Adjacency(here=(here, "1"), there=(there, "1"), where=f"table of {here}", **more)


def test_a_link_told_from_both_ends_is_one_cable() -> None:
    """Without rate and length the defaults are noted, once for the link."""
    imported = joined(told("a", "b"), told("b", "a"), reporters=("a", "b"))
    assert imported.num_ports == 2
    assert imported.findings == ()
    assert imported.notes == (
        "1 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 1",
    )


def test_what_one_end_tells_counts_for_both() -> None:
    """a knows the rate, b the length: 3 m are 15 ns."""
    imported = joined(told("a", "b", rate_bps=400 * 10**9), told("b", "a", cable_mm=3000))
    assert set(imported.port_rate_bps_P.tolist()) == {400 * 10**9}
    assert set(imported.port_delay_ps_P.tolist()) == {15_000}
    assert imported.notes == ()


def test_silence_of_a_reporter_is_a_finding() -> None:
    """b's table was read and does not have the link; where it was not read, nothing follows."""
    assert joined(told("a", "b"), reporters=("a",)).findings == ()
    (finding,) = joined(told("a", "b"), reporters=("a", "b")).findings
    assert (finding.id, finding.severity, finding.confidence) == (
        "cabling.one-sided",
        Severity.WARNING,
        Confidence.MEASURED,
    )
    assert (finding.entity, finding.actual, finding.evidence) == (
        "a:1 -> b:1",
        "one-sided: seen by a only",
        ("table of a",),
    )


def test_two_speeds_are_a_finding_and_the_lower_is_taken() -> None:
    """100 Gbps at one end, 400 Gbps at the other."""
    imported = joined(told("a", "b", rate_bps=100 * 10**9), told("b", "a", rate_bps=400 * 10**9))
    (finding,) = imported.findings
    assert (finding.id, finding.severity) == ("cabling.speed-mismatch", Severity.ERROR)
    assert finding.actual == "100 Gbps at a:1 and 400 Gbps at b:1"
    assert set(imported.port_rate_bps_P.tolist()) == {100 * 10**9}


def results(fabric: Fabric) -> list[tuple[str, str, str]]:
    return [(check.rule, check.result.value, check.subject) for check in fabric.check_files().checks]


def test_a_check_that_found_nothing_is_listed(tmp_path: Path) -> None:
    """It passed, also in what its file and a graph of it give back; one that lacks both ends did not run."""
    rate_bps = 100 * 10**9
    both = joined(told("a", "b", rate_bps=rate_bps), told("b", "a", rate_bps=rate_bps), reporters=("a", "b"))
    passed = [
        ("cabling.speed-mismatch", "passed", "1 links with a speed at both ends"),
        ("cabling.one-sided", "passed", "1 links between devices that were read"),
    ]
    write_fabric(both, tmp_path / "lab.json")
    for fabric in (both, read_fabric(tmp_path / "lab.json"), from_networkx(to_networkx(both))):
        assert results(fabric) == passed
    assert results(joined(told("a", "b"), reporters=("a",))) == [
        ("cabling.speed-mismatch", "not run", "1 links"),
        ("cabling.one-sided", "not run", "1 links"),
    ]


def test_findings_of_an_older_file_have_their_checks(tmp_path: Path) -> None:
    """A file from before checks were kept names the findings alone."""
    odd = joined(told("a", "b"), reporters=("a", "b"))
    assert results(replace(odd, checks=())) == [("cabling.one-sided", "found", "files of the fabric")]


def test_checks_that_are_none_are_refused(tmp_path: Path) -> None:
    """A file that somebody changed by hand."""
    path = tmp_path / "lab.json"
    write_fabric(joined(told("a", "b")), path)
    path.write_text(path.read_text().replace('"num_found": 0', '"num_found": "0"'))
    with pytest.raises(FabricError, match="checks that are none"):
        read_fabric(path)

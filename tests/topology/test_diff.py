"""Two dates of one fabric: each change is told once, by name, and order does not count."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.records import Finding, Severity
from fabrictune.topology.diff import compare_fabrics, not_compared
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.csv_cabling import load_csv

LIST = [
    "a_device,a_port,a_role,b_device,b_port,b_role,rate,length,rail",
    "h1,nic0,host,t1,1,leaf,400G,3 m,0",
    "h2,nic0,host,t1,2,leaf,400G,3 m,0",
    "t1,9,leaf,s1,1,spine,400G,30 m,",
    "t2,9,leaf,s1,2,spine,400G,30 m,",
]


@pytest.fixture
def read(tmp_path: Path):
    """Read a cabling list given as lines."""

    def read_lines(*lines: str) -> Fabric:
        path = tmp_path / "list.csv"
        path.write_text("\n".join(lines))
        return load_csv([path])

    return read_lines


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, str, str]]:
    """Return kind, what it is about, and what was before and after."""
    return [(one.id.removeprefix("diff."), one.entity, one.expected, one.actual) for one in findings]


def test_order_does_not_count(read) -> None:
    """The same cables from the last to the first, ends exchanged where both are switches."""
    turned = read(LIST[0], "s1,2,spine,t2,9,leaf,400G,30 m,", *LIST[3:0:-1])
    assert compare_fabrics(read(*LIST), turned).findings == ()


@pytest.mark.parametrize(
    ("row", "line", "expected"),
    [
        (2, "", [("node-removed", "node h2", "host", "absent"),
                 ("link-removed", "link h2:nic0 - t1:2", "400 Gbps", "absent")]),
        (1, "h1,nic0,host,t2,1,leaf,400G,3 m,0",
            [("link-recabled", "h1:nic0", "to t1:1 at 400 Gbps", "to t2:1 at 400 Gbps")]),
        (1, "h1,nic0,host,t1,1,leaf,100G,3 m,0", [("rate-changed", "link h1:nic0 - t1:1", "400 Gbps", "100 Gbps")]),
        (1, "h1,nic0,host,t1,1,leaf,400G,5 m,0", [("delay-changed", "link h1:nic0 - t1:1", "15 ns", "25 ns")]),
        (1, "h1,nic0,host,t1,1,leaf,400G,3 m,4", [("rail-changed", "NIC h1:nic0", "rail 0", "rail 4")]),
        (4, "t2,9,core,s1,2,spine,400G,30 m,", [("node-changed", "node t2", "tier 1", "tier 3")]),
    ],
)  # fmt: skip
def test_each_change_is_told_once(read, row: int, line: str, expected: list[tuple[str, str, str, str]]) -> None:
    """One row of the list is another, or gone."""
    assert told(compare_fabrics(read(*LIST), read(*LIST[:row], line, *LIST[row + 1 :])).findings) == expected


def test_what_came_is_told_the_other_way_round(read) -> None:
    """Of two dates exchanged, removed becomes added and an error information."""
    before, after = read(*LIST[:2], *LIST[3:]), read(*LIST)
    assert told(compare_fabrics(before, after).findings) == [
        ("node-added", "node h2", "absent", "host"),
        ("link-added", "link h2:nic0 - t1:2", "absent", "400 Gbps"),
    ]
    severities = [
        {one.severity for one in compare_fabrics(*pair).findings} for pair in ((before, after), (after, before))
    ]
    assert severities == [{Severity.INFO}, {Severity.ERROR}]


def test_a_faster_link_is_no_error(read) -> None:
    """Only lost capacity is."""
    faster = read(LIST[0], LIST[1].replace("400G", "800G"), *LIST[2:])
    assert [one.severity for one in compare_fabrics(read(*LIST), faster).findings] == [Severity.INFO]


def test_what_is_assumed_is_not_compared(read) -> None:
    """A list without speeds and lengths says nothing of those of another; of a link that moved, that it is assumed."""
    bare = [line.replace("400G,3 m", ",").replace("400G,30 m", ",") for line in LIST]
    for pair in ((read(*bare), read(*LIST)), (read(*LIST), read(*bare))):
        assert compare_fabrics(*pair).findings == ()
        assert list(not_compared(*pair)) == [
            "links whose rate is assumed in one of the two, not compared: 4",
            "links whose cable length is assumed in one of the two, not compared: 4",
        ]
    moved = [*bare[:1], bare[1].replace("t1,1", "t2,1"), *bare[2:]]
    assert told(compare_fabrics(read(*LIST), read(*moved)).findings) == [
        ("link-recabled", "h1:nic0", "to t1:1 at 400 Gbps", "to t2:1 at 100 Gbps (assumed)")
    ]
    assert list(not_compared(read(*LIST), read(*LIST))) == []


def test_two_cables_that_changed_places_are_two_recablings(small_clos: Fabric) -> None:
    """Both are told at the NIC, the end nearer to the hosts, and no link is removed or added."""
    peer_P = small_clos.port_peer_P.copy()
    peer_P[[0, 1, 2, 3]] = [3, 2, 1, 0]  # host0's first two NICs and their ToR ports
    assert told(compare_fabrics(small_clos, replace(small_clos, port_peer_P=peer_P)).findings) == [
        ("link-recabled", "host0:nic0", "to tor0-0:down0/0 at 200 Gbps", "to tor0-1:down0/0 at 200 Gbps"),
        ("link-recabled", "host0:nic1", "to tor0-1:down0/0 at 200 Gbps", "to tor0-0:down0/0 at 200 Gbps"),
    ]

"""Names and classes of links, read back from a record's table."""

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.record_view import open_run


def view_of(record: RunRecord) -> FabricView:
    fabric = open_run(record, "run").fabric
    assert fabric is not None
    return fabric


def test_links_and_nics_are_named_by_both_ends(record: RunRecord) -> None:
    """Port 8 is tor0's swp3; NIC 3 is port 6, h3's eth0."""
    fabric = view_of(record)
    assert fabric.link_label(8) == "tor0:swp3 → tor1:swp3"
    assert fabric.nic_label(3) == "h3:eth0"


def test_link_classes_go_the_way_of_a_packet(record: RunRecord) -> None:
    """Up from the hosts, across, and down again; every port is in one class: 4 + 4 + 4 = 12."""
    classes = view_of(record).link_classes()
    assert list(classes) == ["host → ToR", "ToR → ToR", "ToR → host"]
    assert [ports.tolist() for ports in classes.values()] == [[0, 2, 4, 6], [8, 9, 10, 11], [1, 3, 5, 7]]


def test_only_links_between_switches_are_compared(record: RunRecord) -> None:
    """ECMP chooses among the four directions between the ToRs and nowhere else."""
    assert view_of(record).compared_ports.tolist() == [8, 9, 10, 11]

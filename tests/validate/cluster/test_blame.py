"""Low flows, and the NIC that they share."""

from itertools import permutations

from fabrictune.validate.cluster.blame import blame_nics

NICS = ("a", "b", "c", "d")
FLOWS = list(permutations(NICS, 2))


def test_a_nic_whose_flows_are_all_low_is_blamed_once() -> None:
    """Of c's 6 flows all are low, of each other NIC's 6 two: c explains them all."""
    (blame,) = blame_nics(FLOWS, ["c" in flow for flow in FLOWS])
    assert (blame.nic, len(blame.flows), blame.num_flows_of_nic) == ("c", 6, 6)


def test_one_low_flow_stands_for_itself() -> None:
    """One of 6 flows says nothing of a NIC: it may have met another on a link."""
    (blame,) = blame_nics(FLOWS, [flow == ("a", "b") for flow in FLOWS])
    assert (blame.nic, [FLOWS[number] for number in blame.flows]) == ("", [("a", "b")])


def test_nothing_low_blames_nobody() -> None:
    """No low flow, no blame."""
    assert not list(blame_nics(FLOWS, [False] * len(FLOWS)))

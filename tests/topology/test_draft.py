"""The order of ports and NICs is that in which links are added."""

from fabrictune.topology.draft import FIRST_IPV4, FabricDraft
from fabrictune.topology.fabric import NO_NIC, NO_RAIL


def test_ports_and_nics_follow_the_links() -> None:
    """A host's port is a NIC of its own from the moment it is cabled; a cable of two hosts makes two."""
    draft = FabricDraft("three")
    switch, first, second = draft.add_switch("s", tier=1), draft.add_host("a"), draft.add_host("b")
    draft.add_link((switch, "p0"), (second, "e0"), rate_bps=100, delay_ps=5, rail=3)
    draft.add_link((first, "e0"), (switch, "p1"), rate_bps=100, delay_ps=5)
    draft.add_link((first, "e1"), (second, "e1"), rate_bps=100, delay_ps=5)
    fabric = draft.finish()
    assert fabric.port_peer_P.tolist() == [1, 0, 3, 2, 5, 4]
    assert fabric.port_nic_P.tolist() == [NO_NIC, 0, 1, NO_NIC, 2, 3]
    assert fabric.nic_host_C.tolist() == [second, first, first, second]
    assert fabric.nic_rail_C.tolist() == [3, NO_RAIL, NO_RAIL, NO_RAIL]


def test_addresses_count_from_the_first() -> None:
    """NIC 0 is 10.0.0.1."""
    draft = FabricDraft("pair")
    draft.add_link((draft.add_host("a"), "e"), (draft.add_host("b"), "e"), rate_bps=100, delay_ps=5)
    assert draft.finish().nic_ipv4_C.tolist() == [FIRST_IPV4, FIRST_IPV4 + 1] == [0x0A000001, 0x0A000002]


def test_a_second_link_can_join_the_nic_of_the_first() -> None:
    """A NIC on two ToRs is one endpoint with one address."""
    draft = FabricDraft("dual")
    host = draft.add_host("a")
    for number in range(2):
        switch = draft.add_switch(f"s{number}", tier=1)
        nic = 0 if number else None
        draft.add_link((host, f"e{number}"), (switch, "p"), rate_bps=100, delay_ps=5, nic=nic)
    fabric = draft.finish()
    assert fabric.num_nics == 1
    assert fabric.port_nic_P.tolist() == [0, NO_NIC, 0, NO_NIC]

"""Accept a cluster of sixteen hosts with what its engineer has: cabling, counters, collectives; one page."""

import pytest

from tests.first_hour.session import Session

pytest.importorskip("torch")

BEFORE = "NIC statistics:\n     tx_bytes_phy: 1000\n     link_down_events_phy: 1\n     rx_prio3_pause: 10\n"
AFTER = "NIC statistics:\n     tx_bytes_phy: 2000001000\n     link_down_events_phy: 2\n     rx_prio3_pause: 10\n"
HEAD = (
    "Port          Neighbor Device ID       Neighbor Port ID    TTL\n---------- ------------------------ ------ ---\n"
)


def planned() -> str:
    """Sixteen hosts on two leaves, and two spines with four cables to each; 400 Gbps."""
    rows = ["Side A Device,Side A Role,Side A Name,Side B Device,Side B Role,Side B Name,Speed"]
    rows += [f"node{n:02},server,eth1,leaf{n // 8 + 1},leaf,Ethernet{n % 8 + 1},400G" for n in range(16)]
    for leaf in (1, 2):
        for place in range(8):
            spine = f"spine{place // 4 + 1},spine,Ethernet{4 * (leaf - 1) + place % 4 + 1}"
            rows.append(f"leaf{leaf},leaf,Ethernet{9 + place},{spine},400G")
    return "\n".join(rows) + "\n"


def seen() -> str:
    """What EOS on both leaves shows; the cables of node02 and node11 changed places."""
    hosts = [*range(16)]
    hosts[2], hosts[11] = 11, 2
    text = ""
    for leaf in (1, 2):
        text += f"leaf{leaf}#show lldp neighbors\n{HEAD}"
        for place in range(8):
            text += f"Et{place + 1:<9} node{hosts[8 * (leaf - 1) + place]:02}                   eth1      120\n"
        for place in range(8):
            port = f"Ethernet{4 * (leaf - 1) + place % 4 + 1}"
            text += f"Et{place + 9:<9} spine{place // 4 + 1}                   {port}  120\n"
    return text


def test_a_cluster_is_accepted_or_not(session: Session) -> None:
    """Swapped cables by name, a link that went down, collectives checked and fitted, and a page of all of it."""
    session.write("planned.csv", planned())
    session.write("leaves.txt", seen())
    screen = session.command("fabrictune topo diff planned.csv leaves.txt --fail-on warning", exit_code=1)
    assert screen.count("link-recabled") == 2
    assert "node02:eth1  to leaf1:Ethernet3 at 400 Gbps  to leaf2:Ethernet4 at 100 Gbps (assumed)" in screen
    assert "links whose rate is assumed in one of the two, not compared: 30" in screen

    session.write("before/node02.txt", BEFORE)
    session.write("after/node02.txt", AFTER)
    counters = "fabrictune rdma counters before/node02.txt after/node02.txt --out runs/counters"
    screen = session.command(counters, exit_code=1)
    assert "link downs: 1; expected no rise" in screen

    session.command("fabrictune coll bench all_reduce -b '4 KiB' -e '64 KiB' -n 3 -w 1 --ranks 2")
    screen = session.command("fabrictune coll compare runs/bench")
    assert "asymptotic busbw" in screen
    session.command("fabrictune report build runs/bench runs/compare --out page.html")
    assert "all_reduce" in (session.folder / "page.html").read_text()

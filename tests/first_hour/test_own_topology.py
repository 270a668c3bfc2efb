"""A topology and an importer of the user's own, without editing the installed package."""

import re

from tests.first_hour.pages import first_block
from tests.first_hour.session import ROOT, Session

RING = """\
name: my-ring
fabric: {builder: ./my_ring.py, num_switches: 8, link_rate: 400 Gbps}
traffic: {workload: permutation, message: 1 MB}
"""


def test_a_ring_is_built_analyzed_and_simulated_from_a_file(session: Session) -> None:
    """Three commands; a misspelt setting is told with its line and the nearest key."""
    session.write("my_ring.py", first_block("add-a-topology", "python"))
    session.write("ring.yaml", RING)
    built = session.command("fabrictune topo build ./my_ring.py num_switches=8 --trust-code")
    assert built.startswith("ring-8x2: 16 hosts with 16 NICs, 8 switches, 24 links\n")
    analyzed = session.command("fabrictune ecmp analyze ring.yaml --trust-code", exit_code=1)
    assert re.search(r"switch\d:\w+ -> switch\d:\w+: \d flows offer", analyzed)
    assert "record: runs/my-ring" in session.command(
        "fabrictune sim run ring.yaml --trust-code --fail-on never --quiet"
    )
    misspelt = session.command("fabrictune sim run ring.yaml --trust-code --set fabric.num_switch=4", exit_code=2)
    assert "--set: fabric.num_switch: unknown key 'num_switch'\n  did you mean 'num_switches'?\n" in misspelt


def test_tables_are_read_checked_and_used_from_a_file(session: Session) -> None:
    """Three commands from two tables to collisions; a one-sided link is found also in the saved fabric."""
    page = (ROOT / "docs" / "how-to" / "add-an-importer.md").read_text()
    leaf, spine, *_ = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    session.write("my_eos.py", first_block("add-an-importer", "python"))
    session.write("tables/leaf1.eos", leaf)
    session.write("tables/spine1.eos", spine)
    keys = "fabric: {file: tables, format: ./my_eos.py, rate: 400 Gbps}"
    session.write("mine.yaml", f"name: mine\n{keys}\ntraffic: {{workload: permutation, message: 1 MB}}\n")
    read = session.command("fabrictune topo import tables --format ./my_eos.py --trust-code --out fabric.json")
    assert read.startswith("eos: 2 hosts with 2 NICs, 2 switches, 4 links\n")
    checked = session.command("fabrictune topo validate fabric.json --fail-on warning", exit_code=1)
    assert "leaf1:Ethernet50 -> spine1:Ethernet2: one-sided: seen by leaf1 only" in checked
    analyzed = session.command("fabrictune ecmp analyze mine.yaml --trust-code")
    assert "No oversubscribed links" in analyzed

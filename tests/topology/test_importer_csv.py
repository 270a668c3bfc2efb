"""Cabling lists: columns by many names, quantities in many spellings, and rows that are no cables."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric
from fabrictune.topology.importers.csv_cabling import COLUMNS, load_csv

HEADING = "a_device,a_port,b_device,b_port"


@pytest.fixture
def load(tmp_path: Path):
    """Read a list given as text."""

    def load_text(text: str) -> Fabric:
        path = tmp_path / "cabling.csv"
        path.write_text(text)
        return load_csv([path])

    return load_text


def test_a_plain_list(load) -> None:
    """Two servers on a leaf, a leaf on a spine: hosts by their names, tiers from the cabling."""
    imported = load(f"{HEADING}\nserver1,eth0,leaf1,e1\nserver2,eth0,leaf1,e2\nleaf1,e9,spine1,e1\n")
    assert imported.node_name_N == ("server1", "leaf1", "server2", "spine1")
    assert imported.node_tier_N.tolist() == [0, 1, 0, 2]
    assert imported.link_label(0) == "server1:eth0 -> leaf1:e1"
    assert imported.notes == (
        "devices without a role, taken as hosts by their names: 2 (server1, server2)",
        "devices without a role, taken as switches by their names: 2 (leaf1, spine1)",
        "3 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 3",
    )


def test_netbox_bulk_import_headings(load) -> None:
    """The columns of NetBox: power and planned cables are skipped, the length has its unit beside it."""
    imported = load(
        "Label,Side A Device,Side A Type,Side A Name,Side B Device,Side B Type,Side B Name,Type,"
        "Status,Length,Length Unit\n"
        "c1,host1,dcim.interface,eth0,leaf1,dcim.interface,Ethernet0,dac-passive,connected,3,m\n"
        "c2,leaf1,dcim.powerport,PSU1,pdu1,dcim.poweroutlet,1,power,connected,,\n"
        "c3,leaf1,dcim.interface,Ethernet8,spine1,dcim.interface,Ethernet0,mmf,planned,30,m\n"
    )
    assert imported.node_name_N == ("host1", "leaf1")
    assert imported.port_delay_ps_P.tolist() == [15_000, 15_000]
    assert imported.notes[0] == "cables that carry no traffic, skipped: 2"


@pytest.mark.parametrize(
    ("heading", "value", "rate_gbps"),
    [
        ("rate", "400 Gbps", 400),
        ("Speed", "400G", 400),
        ("speed", "100GbE", 100),
        ("Link Rate (Gbps)", "25", 25),
        ("port_speed_mbps", "100000", 100),
        ("bandwidth", "1.6T", 1600),
    ],
)
def test_rates_as_people_write_them(load, heading: str, value: str, rate_gbps: int) -> None:
    """With a unit, in short, or with the unit in the heading."""
    imported = load(f"{HEADING},{heading}\na,1,b,1,{value}\n")
    assert imported.port_rate_bps_P.tolist() == [rate_gbps * 10**9] * 2


@pytest.mark.parametrize(
    ("heading", "value", "metres"),
    [("length", "30 m", 30), ("Cable Length", "3 Meters", 3), ("length_cm", "250", 2.5), ("length", "2.5m", 2.5)],
)
def test_lengths_as_people_write_them(load, heading: str, value: str, metres: float) -> None:
    """5 ns a metre."""
    imported = load(f"{HEADING},{heading}\na,1,b,1,{value}\n")
    assert imported.port_delay_ps_P.tolist() == [metres * 5000] * 2


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_told_from_the_heading(load, delimiter: str) -> None:
    """Spreadsheets write semicolons where commas are decimal points."""
    assert load(f"{HEADING}\na,1,b,1\n".replace(",", delimiter)).num_ports == 2


def test_roles_and_rails_are_used(load) -> None:
    """A role comes before a name; a rail is that of the NIC."""
    imported = load(
        "local_device,local_interface,remote_device,remote_interface,local_role,remote_role,rail\n"
        "x1,nic3,server-switch,1,GPU,leaf,3\n"
    )
    assert imported.node_tier_N.tolist() == [0, 1]
    assert imported.nic_rail_C.tolist() == [3]


def test_no_heading_means_two_columns() -> None:
    """Of all the names that are known."""
    names = [name for names in COLUMNS.values() for name in names]
    assert len(names) == len(set(names)) > 100


def test_without_hosts_that_is_noted(load) -> None:
    """Nothing says what is a host, so tiers are unknown."""
    imported = load(f"{HEADING}\nx,1,y,1\n")
    assert imported.notes[0] == "no device is a host by role or name; give a column a_role and b_role"
    assert np.all(imported.node_tier_N == UNKNOWN_TIER)


def test_a_list_of_both_ends_must_tell_both(load) -> None:
    """Two cables are told from both ends, the third from one."""
    rows = ["a,1,b,1", "b,1,a,1", "a,2,b,2", "b,2,a,2", "a,3,b,3"]
    imported = load("\n".join([HEADING, *rows]))
    assert imported.num_ports == 6
    assert [(finding.id, finding.entity) for finding in imported.findings] == [("cabling.one-sided", "a:3 -> b:3")]


def test_every_mistake_is_told_with_its_line(load, tmp_path: Path) -> None:
    """A wrong unit, no port, a wrong rail, a port used twice."""
    with pytest.raises(InputError) as raised:
        load(f"{HEADING},rate,rail\na,1,b,1,4 parsecs,0\na,2,b,,,\na,3,b,3,,left\na,3,b,4,,\n")
    assert str(raised.value).replace(f"{tmp_path}/", "") == (
        "cabling.csv:2: rate: '4 parsecs': 'parsecs' is no unit of rate\n"
        "  allowed: a number and one of bps, Kbps, Mbps, Gbps, Tbps; for example '400 Gbps'\n"
        "cabling.csv:3: no b_port\n"
        "  allowed: a device and a port at each end\n"
        "cabling.csv:4: rail: 'left'\n"
        "  allowed: a whole number from 0\n"
        "cabling.csv:5: the interface a:3 a second time (first at cabling.csv:4)\n"
        "  allowed: one link for each interface"
    )


def test_a_missing_column_says_what_to_call_it(load) -> None:
    """The nearest heading is shown."""
    with pytest.raises(InputError) as raised:
        load("a_device,a_prt,b_device,b_port\n")
    (mistake,) = raised.value.mistakes
    assert (mistake.found, mistake.nearest) == ("no column for the a_port", "a_prt")
    assert mistake.next_step == "call a column a_port, or one of a_port, local_port, from_port, source_port"


@pytest.mark.parametrize("text", ['a_device,"a_port\n1', f'{HEADING}\n"a"x,1,b,1\n', "\n\n,\n"])
def test_what_is_no_table_is_one_message(load, text: str) -> None:
    """Quotes that do not close, and nothing but commas."""
    with pytest.raises(InputError):
        load(text)


def test_what_a_device_without_a_role_is_taken_for_is_noted(load) -> None:
    """A word for a switch counts more than one for a host; a name that says nothing is a switch."""
    rows = ("gpu-leaf-01,1,storage-1,e0", "compute-tor-2,1,dgx07,e0", "gpu-leaf-01,9,box,1", "compute-tor-2,9,box,2")
    fabric = load("\n".join((HEADING, *rows, "")))
    kinds = dict(zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True))
    assert {name for name, kind in kinds.items() if kind == 0} == {"storage-1", "dgx07"}
    assert fabric.notes[:3] == (
        "devices without a role, taken as switches by their names: 2 (gpu-leaf-01, compute-tor-2)",
        "devices without a role, taken as hosts by their names: 2 (storage-1, dgx07)",
        "devices without a role, taken as switches since nothing says what they are: 1 (box)",
    )


def test_a_role_that_is_not_known_is_noted(load) -> None:
    """It was taken for a switch's, silently."""
    fabric = load("a_device,a_port,a_role,b_device,b_port,b_role\nx1,1,brewery,leaf1,2,leaf\n")
    assert "role 'brewery' is not known, taken as switches since nothing says what they are: 1 (x1)" in fabric.notes


@pytest.mark.parametrize("rate", ["2147483648 Gbps", "101T"])
def test_a_rate_that_no_link_has_is_refused(load, rate: str) -> None:
    """With the bound."""
    with pytest.raises(InputError, match="allowed: above 0, up to 100 Tbps"):
        load(f"{HEADING},rate\na,1,b,1,{rate}\n")

"""What is in the databases of SONiC switches is their cabling as it is heard, from dumps and from archives."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import import_fabric

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
LEAF, SPINE = GOLDEN / "leaf1.appl_db.json", GOLDEN / "spine1.redis.json"


def links(fabric: Fabric) -> list[str]:
    """Return each link once."""
    return [fabric.link_label(port) for port in range(0, fabric.num_ports, 2)]


def archive(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write a packed archive."""
    with tarfile.open(path, "w:gz") as file:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return path


def dumped(**rows: Mapping[str, str]) -> bytes:
    """Return a dump; `__` in a name is what is between table and key."""
    return json.dumps({key: {"type": "hash", "value": value} for key, value in rows.items()}).encode()


def test_two_switches_are_joined_by_what_they_hear() -> None:
    """A neighbour heard as `sonic` with the chassis id of spine1 is spine1; a local port id is known by its name."""
    fabric = import_fabric([LEAF, SPINE])
    assert links(fabric) == [
        "leaf1:Ethernet0 -> gpu1:ens1f0np0",
        "leaf1:Ethernet4 -> gpu2:ens1f0np0",
        "leaf1:Ethernet8 -> spine1:Ethernet0",
    ]
    assert dict(zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True)) == {
        "leaf1": 1,
        "spine1": 1,
        "gpu1": 0,  # a station
        "gpu2": 0,  # bridges and routes, as hosts with containers do, on a port that Linux has named
    }
    assert fabric.port_rate_bps_P[::2].tolist() == [100 * 10**9, 100 * 10**9, 400 * 10**9]
    assert not fabric.findings
    assert fabric.notes == (
        f"{LEAF}: neighbours on ports that PORT does not list, as management ports, left out: 1",
        f"{SPINE}: ports whose neighbour is another than configured: 1 (Ethernet0: leaf9 configured, leaf1 heard)",
        "links without a cable length, taken as 10 m: 2",
    )


def test_an_archive_is_read_like_its_dumps(tmp_path: Path) -> None:
    """Only the databases in it, packed or not; whatever else is there, wherever its name leads, is passed over."""
    config = {"PORT": {"Ethernet0": {"speed": "25000"}}, "DEVICE_METADATA": {"localhost": {"hostname": "old"}}}
    first = archive(
        tmp_path / "sonic_dump_leaf1.tar.gz",
        {
            "sonic_dump_leaf1/log/syslog": b"noise\n" * 1000,
            "sonic_dump_leaf1/dump/APPL_DB.json.gz": gzip.compress(LEAF.read_bytes()),
            "sonic_dump_leaf1/dump/CONFIG_DB.json": b"{}",
            "sonic_dump_leaf1/etc/sonic/config_db.json": json.dumps(config).encode(),
            "../../etc/passwd": b"root\n",
        },
    )
    second = archive(tmp_path / "b.tgz", {"dump/CONFIG_DB.json": SPINE.read_bytes()})
    fabric = import_fabric([first, second])
    assert links(fabric) == links(import_fabric([LEAF, SPINE]))
    assert fabric.node_name_N[:2] == ("leaf1", "spine1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tgz", "sonic_dump_leaf1.tar.gz"]


def test_a_folder_of_databases_is_one_switch(tmp_path: Path) -> None:
    """As an archive has them in dump/; those without cabling are noted."""
    (tmp_path / "APPL_DB.json").write_bytes(LEAF.read_bytes())
    (tmp_path / "CONFIG_DB.json").write_bytes(dumped(**{"DEVICE_METADATA|localhost": {"hostname": "leaf7"}}))
    (tmp_path / "COUNTERS_DB.json").write_bytes(dumped(**{"COUNTERS:oid:0x1": {"SAI": "1"}}))
    fabric = import_fabric([tmp_path])
    assert fabric.node_name_N[0] == "leaf7"
    assert fabric.notes[0] == f"{tmp_path}/COUNTERS_DB.json: a database without cabling, left out"


def test_asics_of_one_switch_are_one_node(tmp_path: Path) -> None:
    """Each has its own databases, with its number; the host has the name."""
    heard = {"lldp_rem_port_id": "eth1", "lldp_rem_port_id_subtype": "5", "lldp_rem_sys_cap_enabled": "00 80"}
    members = {"dump/CONFIG_DB.json": dumped(**{"DEVICE_METADATA|localhost": {"hostname": "chassis1"}})}
    for asic in range(2):
        port, neighbour = f"Ethernet{asic}", {**heard, "lldp_rem_sys_name": f"gpu{asic}"}
        members[f"dump/APPL_DB{asic}.json"] = dumped(
            **{f"PORT_TABLE:{port}": {"speed": "100000"}, f"LLDP_ENTRY_TABLE:{port}": neighbour}
        )
    fabric = import_fabric([archive(tmp_path / "x.tar.gz", members)])
    assert links(fabric) == ["chassis1:Ethernet0 -> gpu0:eth1", "chassis1:Ethernet1 -> gpu1:eth1"]


def test_an_archive_without_databases_is_refused(tmp_path: Path) -> None:
    """Any other archive of a site."""
    path = archive(tmp_path / "logs.tar.gz", {"log/syslog": b"x" * 100})
    with pytest.raises(InputError) as caught:
        import_fabric([path])
    assert str(caught.value) == (
        f"{path}: an archive without databases\n  allowed: dump/APPL_DB.json and dump/CONFIG_DB.json in it"
    )


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    """Half of a download."""
    path = archive(tmp_path / "x.tar.gz", {"dump/APPL_DB.json": LEAF.read_bytes() * 50})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"a damaged archive \(.*\)\n  next: copy it from the switch again$"):
        import_fabric([path])


def test_a_member_that_outgrows_the_limit_is_refused(tmp_path: Path) -> None:
    """A packed member of zeros is small until it is unpacked."""
    bomb = gzip.compress(b" " * (17 * 2**20))
    path = archive(tmp_path / "x.tar.gz", {"dump/APPL_DB.json.gz": bomb})
    with pytest.raises(InputError) as caught:
        import_fabric([path])
    assert str(caught.value) == (f"{path}: dump/APPL_DB.json.gz: a packed file\n  allowed: at most {16 * 2**20} bytes")


@pytest.mark.parametrize("size", [1, 30, 300, 700])
def test_damaged_bytes_of_an_archive_never_escape(size: int, tmp_path: Path) -> None:
    """Each byte of the packed file in turn, some of them: a fabric or an error for the user."""
    path = archive(tmp_path / "x.tar.gz", {"dump/APPL_DB.json": LEAF.read_bytes()})
    data = bytearray(path.read_bytes())
    for place in range(size, len(data), 97):
        changed = bytearray(data)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        with suppress(InputError):
            assert import_fabric([path], "sonic-dump").num_ports

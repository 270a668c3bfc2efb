"""SONiC minigraphs: several switches joined, what is no cable left out, and bombs refused."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import NodeKind
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.topology.importers.minigraph import load_minigraph


def minigraph(links: str, hostname: str = "tor1") -> str:
    """Return a minigraph with these links."""
    return (
        f"<DeviceMiniGraph><PngDec><DeviceInterfaceLinks>{links}</DeviceInterfaceLinks></PngDec>"
        f"<Hostname>{hostname}</Hostname></DeviceMiniGraph>"
    )


def link(start: str, end: str, more: str = "") -> str:
    """Return a link between two `device:port`."""
    (device, port), (peer, peer_port) = start.split(":"), end.split(":")
    return (
        f"<DeviceLinkBase><ElementType>DeviceInterfaceLink</ElementType>{more}"
        f"<StartDevice>{device}</StartDevice><StartPort>{port}</StartPort>"
        f"<EndDevice>{peer}</EndDevice><EndPort>{peer_port}</EndPort></DeviceLinkBase>"
    )


def saved(tmp_path: Path, *texts: str) -> list[Path]:
    """Write minigraphs given as text."""
    paths = [tmp_path / f"switch{row}.xml" for row in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_golden_minigraphs_give_golden_fabric(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ToR and a leaf tell of one link; rates come from the link, the port, and by default, in this order."""
    monkeypatch.chdir(golden)
    imported = load_minigraph([Path("tor1.minigraph.xml"), Path("leaf1.minigraph.xml")])
    write_fabric(imported, tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "minigraph.fabric.json").read_text()
    assert imported.notes == (
        "tor1.minigraph.xml: links of type DeviceMgmtLink, left out: 1",
        "tor1.minigraph.xml: links inside a chassis, left out: 1",
        "tor1.minigraph.xml: devices without a link, left out: 1",
        "1 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 4",
    )
    assert imported.findings == ()


def test_every_mistake_is_told_with_its_line(golden: Path) -> None:
    """Two speeds that are none, a link with one end, a port used twice, and a link to itself in other case."""
    with pytest.raises(InputError) as raised:
        load_minigraph([golden / "broken.minigraph.xml"])
    assert str(raised.value).replace(f"{golden}/", "") + "\n" == (golden / "broken.minigraph.txt").read_text()


def test_a_minigraph_is_told_from_other_xml(golden: Path, tmp_path: Path) -> None:
    """By its root element, whatever the file is called."""
    path = tmp_path / "switch.txt"
    path.write_bytes((golden / "leaf1.minigraph.xml").read_bytes())
    assert import_fabric([path]).name == "leaf1"


def test_types_decide_before_names(tmp_path: Path) -> None:
    """A device without a type is a host if its name begins with `server`."""
    (path,) = saved(tmp_path, minigraph(link("tor1:1", "server9:e") + link("tor1:2", "other:e")))
    fabric = load_minigraph([path])
    assert [NodeKind(kind).name for kind in fabric.node_kind_N] == ["SWITCH", "HOST", "SWITCH"]


def test_two_bandwidths_of_one_link_are_a_finding(tmp_path: Path) -> None:
    """400 Gbps in one file and 200 Gbps in the other: the link is kept at the lower."""
    texts = [
        minigraph(link("a:1", "b:2", f"<Bandwidth>{megabits}</Bandwidth>"), name)
        for name, megabits in (("a", 400_000), ("b", 200_000))
    ]
    imported = load_minigraph(saved(tmp_path, *texts))
    assert [finding.id for finding in imported.findings] == ["cabling.speed-mismatch"]
    assert imported.port_rate_bps_P.tolist() == [200_000_000_000] * 2


def test_the_same_switch_twice_is_a_mistake(tmp_path: Path) -> None:
    """Two files of one hostname, in whatever case."""
    with pytest.raises(InputError, match="the switch 'a' a second time"):
        load_minigraph(saved(tmp_path, minigraph("", "a"), minigraph("", "A")))


@pytest.mark.parametrize("text", ["<system/>", "<DeviceMiniGraph/>", minigraph("", " ")])
def test_what_is_no_minigraph_is_refused(text: str, tmp_path: Path) -> None:
    """Another root, and a minigraph that is nobody's."""
    with pytest.raises(InputError, match=r"xml:1: <\w+>: no minigraph of a switch"):
        load_minigraph(saved(tmp_path, text))


def test_an_entity_bomb_is_refused(golden: Path, tmp_path: Path) -> None:
    """A hostname of ten to the ninth letters, from nine lines."""
    entities = "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE DeviceMiniGraph [<!ENTITY x0 "x">{entities}]>' + minigraph("", "&x9;")
    (path,) = saved(tmp_path, bomb)
    with pytest.raises(InputError, match="1: a document type declaration"):
        load_minigraph([path])

"""What an importer reads, our own file keeps: every column of the fabric comes back, whatever format it came from."""

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.topology.diff import compare_fabrics
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import read_fabric, write_fabric
from fabrictune.topology.graphs import read_graphml, write_graphml
from fabrictune.topology.importers import IMPORTERS, import_fabric

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
SAMPLES: Mapping[str, tuple[str, ...]] = {  # of each format; those of our own are written from another
    "fabrictune": ("lab.fabric.json",),
    "infragraph": ("lab.infragraph.yaml",),
    "containerlab": ("lab.clab.yml",),
    "csv": ("lab.cabling.csv",),
    "hpcc": ("servers.simai.txt",),
    "htsim": ("tree.topo",),
    "ibnetdiscover": ("subnet.ibnetdiscover",),
    "lldp": ("pod.lldp.output", "leaf1.lldp.json", "node1.lldp.json", "pod.switches.txt"),
    "minigraph": ("tor1.minigraph.xml", "leaf1.minigraph.xml"),
    "sonic-dump": ("leaf1.appl_db.json", "spine1.redis.json"),
    "sonic": ("tor1.config_db.json", "leaf1.config_db.json"),
}


def assert_same(first: Fabric, second: Fabric) -> None:
    """Every column of one is that of the other."""
    for name, column in vars(first).items():
        assert np.array_equal(column, getattr(second, name)), name


def assert_kept(fabric: Fabric) -> None:
    """The fabric is the same after our own file, and the file the same after the fabric."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first.json", Path(folder) / "second.json"
        write_fabric(fabric, first)
        again = read_fabric(first)
        assert_same(fabric, again)
        assert compare_fabrics(fabric, again).findings == ()
        write_fabric(again, second)
        assert first.read_bytes() == second.read_bytes()


def test_every_importer_has_a_sample() -> None:
    """Besides GraphML, which the next test writes."""
    assert SAMPLES.keys() | {"graphml"} == IMPORTERS.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_recognised_and_kept(name: str) -> None:
    """By their looks alone; as GraphML as well."""
    paths = [GOLDEN / file for file in SAMPLES[name]]
    fabric = import_fabric(paths)
    assert_same(fabric, import_fabric(paths, name))
    assert_kept(fabric)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fabric.graphml"
        write_graphml(fabric, path)
        assert_same(fabric, read_graphml(path))


@given(st.sampled_from(sorted(SAMPLES)), st.randoms(use_true_random=False))
def test_whatever_can_be_read_is_kept(name: str, chance: random.Random) -> None:
    """Samples with a digit or letter changed here and there: those that are still fabrics come back as they were."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for file in SAMPLES[name]:
            data = bytearray((GOLDEN / file).read_bytes())
            for _ in range(chance.randint(0, 3)):
                place = chance.randrange(len(data))
                if data[place : place + 1].isalnum():
                    data[place] = chance.choice(b"0123456789abcxyz")
            paths.append(Path(folder) / file)
            paths[-1].write_bytes(data)
        try:
            fabric = import_fabric(paths, name)
        except InputError:
            assume(False)
        assert_kept(fabric)


@given(st.data())
def test_any_cabling_list_is_kept(data: st.DataObject) -> None:
    """Up to five devices of any name and role, joined by cables of any rate and length."""
    name = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)
    devices = data.draw(st.lists(name, min_size=2, max_size=5, unique=True))
    role_of = {device: data.draw(st.sampled_from(["server", "leaf", "spine", ""])) for device in devices}
    lines = ["a_device|a_port|a_role|b_device|b_port|b_role|rate|length|rail"]
    for row in range(data.draw(st.integers(1, 6))):
        first, second = data.draw(st.permutations(devices))[:2]
        rate, metres, rail = (data.draw(st.integers(1, high)) for high in (1600, 1000, 8))
        lines.append(
            f"{_quoted(first)}|p{row}|{role_of[first]}|{_quoted(second)}|p{row}|{role_of[second]}|{rate}G|{metres}m|{rail}"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.csv"
        path.write_text("\n".join(lines))
        assert_kept(import_fabric([path]))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'

"""Any file at all gives a Fabric or an InputError: formats are told apart, and damage is never a traceback."""

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.documents import load_yaml
from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.graphs import write_graphml
from fabrictune.topology.importers import IMPORTERS, import_fabric

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
FORMAT_OF_TREE = {
    "lab.clab.yml": "containerlab",
    "lab.fabric.json": "fabrictune",
    "leaf1.config_db.json": "sonic",
    "leaf1.lldp.json": "lldp",
    "node1.lldp.json": "lldp",
    "tor1.config_db.json": "sonic",
}
FORMAT_OF = FORMAT_OF_TREE | {
    "pod.lldp.output": "lldp",
    "subnet.ibnetdiscover": "ibnetdiscover",
    "tor1.minigraph.xml": "minigraph",
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def imported(name: str, data: bytes) -> Fabric | InputError:
    """Return what importing a file of this name and content comes to, in the format it had before it was damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return import_fabric([path], FORMAT_OF.get(name))
        except InputError as error:
            return error


@given(st.sampled_from(sorted(FORMAT_OF)), st.randoms(use_true_random=False))
def test_damaged_text_never_escapes(name: str, chance: random.Random) -> None:
    """Bytes deleted, doubled and overwritten at random places."""
    data = bytearray((GOLDEN / name).read_bytes())
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.choice([1, 1, 2, 20]))
        data[start:end] = chance.choice(
            [b"", bytes(data[start:end]) * 2, b"-", b"[", b'"', b": ", b"\xff", b"\n", b"&a"]
        )
    assert isinstance(imported(name, bytes(data)), Fabric | InputError)


@given(st.sampled_from(sorted(FORMAT_OF_TREE)), st.randoms(use_true_random=False), json_values)
def test_foreign_values_never_escape(name: str, chance: random.Random, value: Any) -> None:
    """Any value of the file's tree replaced by any other; JSON is YAML too, so one writer serves both."""
    tree = load_yaml(GOLDEN / name).tree
    inner: Any = tree
    while True:
        keys: Sequence[Any] = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = chance.choice(keys)
        if chance.random() < 0.2 or not isinstance(inner[key], dict | list) or not inner[key]:
            inner[key] = value
            break
        inner = inner[key]
    assert isinstance(imported(name, json.dumps(tree).encode()), Fabric | InputError)


@pytest.mark.parametrize("suffix", [".yml", ".json", ".graphml"])
def test_noise_is_one_message(suffix: str) -> None:
    """A megabyte of random bytes."""
    error = imported(f"noise{suffix}", random.Random(1).randbytes(2**20))
    assert isinstance(error, InputError)
    assert len(error.mistakes) == 1


@pytest.mark.parametrize("suffix", [".yml", ".json", ".graphml"])
def test_an_empty_file_is_one_message(suffix: str) -> None:
    """Nothing is said to be nothing."""
    assert "an empty file" in str(imported(f"empty{suffix}", b" \n"))


def test_formats_are_told_apart(small_clos: Fabric, tmp_path: Path) -> None:
    """The project's own JSON is no SONiC configuration, whatever it is called."""
    write_fabric(small_clos, tmp_path / "fabric.json")
    write_graphml(small_clos, tmp_path / "fabric.graphml")
    for path in tmp_path.iterdir():
        assert import_fabric([path]).num_nics == 128
    assert import_fabric([GOLDEN / "lab.clab.yml"]).name == "lab"
    assert import_fabric([GOLDEN / "tor1.config_db.json"]).name == "tor1"


def test_a_named_format_wins_over_the_looks(tmp_path: Path) -> None:
    """JSON is YAML, so a lab written as JSON can be read when its format is named."""
    path = tmp_path / "lab.json"
    path.write_text('{"topology": {"nodes": {"a": {"kind": "linux"}}}}')
    assert import_fabric([path], "containerlab").node_name_N == ("a",)


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    """The message lists what there is."""
    with pytest.raises(InputError) as raised:
        import_fabric([GOLDEN / "lab.clab.yml"], "containrlab")
    assert str(raised.value) == (
        f"format: unknown format 'containrlab'\n  did you mean 'containerlab'?\n  allowed: {', '.join(IMPORTERS)}"
    )


def test_missing_files_are_all_told(tmp_path: Path) -> None:
    """Two files that do not exist are two mistakes."""
    with pytest.raises(InputError) as raised:
        import_fabric([tmp_path / "a.yml", tmp_path / "b.yml"])
    assert [mistake.found for mistake in raised.value.mistakes] == ["no such file"] * 2


def test_a_file_nobody_recognises_lists_the_formats(tmp_path: Path) -> None:
    """The next step is to name the format."""
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(InputError, match="a format that no importer recognises"):
        import_fabric([path])

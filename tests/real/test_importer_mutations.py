"""Ten thousand damaged files, shared out over all importers: each gives a fabric or an error for the user.

The files are public ones, and samples of the project for formats, or forms of them, that have none. They are damaged
as disks, editors and hasty people damage them: bytes lost, doubled or overwritten, lines moved, numbers made absurd,
words exchanged, ends cut off. All of it is seeded, so that a failure can be had again.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.graphs import write_graphml
from fabrictune.topology.importers import IMPORTERS, import_fabric
from fabrictune.topology.validation import validate_fabric

pytestmark = [pytest.mark.real, pytest.mark.slow]

NUM_MUTATIONS = 10_000
MAX_SECONDS = 10.0  # of processor time for one file; the slowest takes a tenth of a second
GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
REAL_FILES: Mapping[str, tuple[str, ...]] = {
    "containerlab": ("clab/clos02.clab.yml", "clab/01-linux-nodes.clab.yml", "clab/basic-clab-sonic-l2-evpn.clab.yml"),
    "hpcc": ("sim/hpcc_topology.txt",),
    "htsim": ("sim/leaf_spine_tiny.topo",),
    "ibnetdiscover": (
        "ib/ib_traffic_topo_aware_ibnetdiscover.txt",
        "ib/opensm_doc_chassis.ibnetdiscover.txt",
    ),
    "lldp": ("lldp/spine01.json0.json", "lldp/lldpctl.json"),
    "minigraph": ("sonic/t1-sample-graph-mlnx.minigraph.xml",),
    "sonic": ("sonic/t0-s6000.config_db.json", "sonic/asic0.config_db.json"),
}
SAMPLES: Mapping[str, str] = {
    "csv": "lab.cabling.csv",
    "hpcc": "servers.simai.txt",
    "infragraph": "lab.infragraph.yaml",
    "lldp": "pod.lldp.output",
    "minigraph": "tor1.minigraph.xml",
}

ABSURD = [b"-1", b"0", b"1e309", b"NaN", b"99999999", b"9" * 400, b"4294967296", b"null", b"[]", b"{}", b"", b"\xff"]


def lose(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice((1, 1, 3, 30, 300)) :]


def double(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + 2 * data[start : start + chance.choice((1, 10, 100))] + data[start + 100 :]


def overwrite(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + chance.randbytes(chance.choice((1, 2, 8))) + data[start + 8 :]


def cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data) + 1)]


def move_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
        del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def make_absurd(data: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    for number in sorted(chance.sample(numbers, min(2, len(numbers))), key=lambda match: -match.start()):
        data = data[: number.start()] + chance.choice(ABSURD) + data[number.end() :]
    return data


def exchange_words(data: bytes, chance: random.Random) -> bytes:
    words = list(re.finditer(rb"\w+", data))
    if not words:
        return data
    taken, given = chance.choice(words), chance.choice(words)
    return data[: taken.start()] + given.group() + data[taken.end() :]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    lose,
    double,
    overwrite,
    cut_off,
    move_lines,
    make_absurd,
    exchange_words,
)


def originals(name: str, real_data: Path, folder: Path) -> list[Path]:
    """Return the undamaged files of a format; those of our own two are written from a public topology."""
    files = [real_data / file for file in REAL_FILES.get(name, ())]
    files += [GOLDEN / SAMPLES[name]] if name in SAMPLES else []
    if files:
        return files
    fabric = import_fabric([real_data / REAL_FILES["containerlab"][0]])
    path = folder / ("fabric.graphml" if name == "graphml" else "fabric.json")
    (write_graphml if name == "graphml" else write_fabric)(fabric, path)
    return [path]


def outcome(path: Path, name: str) -> str:
    """Return what importing a file comes to, checks of the fabric included; any other error is let out."""
    try:
        fabric = import_fabric([path], name)
    except InputError as error:
        return type(error).__name__
    validate_fabric(fabric)
    return type(fabric).__name__


@pytest.mark.parametrize("name", IMPORTERS)
def test_damaged_files_are_fabrics_or_errors(name: str, real_data: Path, tmp_path: Path) -> None:
    """Both outcomes occur: the damage is neither harmless nor always fatal."""
    files = originals(name, real_data, tmp_path)
    assert [outcome(path, name) for path in files] == [Fabric.__name__] * len(files)
    contents = [(path.suffix, path.read_bytes()) for path in files]
    outcomes: dict[str, int] = {}
    for row in range(-(-NUM_MUTATIONS // len(IMPORTERS))):
        chance = random.Random(f"{name} {row}")
        suffix, data = chance.choice(contents)
        for damage in chance.choices(DAMAGES, k=chance.choice((1, 1, 2, 4))):
            data = damage(data, chance) or b" "
        path = tmp_path / f"damaged{suffix}"
        path.write_bytes(data)
        started = time.process_time()
        result = outcome(path, name)
        assert time.process_time() - started < MAX_SECONDS, f"row {row}"
        outcomes[result] = outcomes.get(result, 0) + 1
    assert outcomes.keys() == {"Fabric", "FabricError", "InputError"}, outcomes

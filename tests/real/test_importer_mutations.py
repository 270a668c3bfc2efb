"""Ten thousand damaged files, shared out over all importers: each gives a fabric or an error for the user.

The files are public ones, and samples of the project for formats, or forms of them, that have none. They are damaged
as disks, editors and hasty people damage them: bytes lost, doubled or overwritten, lines moved, numbers made absurd,
words exchanged, ends cut off. All of it is seeded, so that a failure can be had again.
"""

import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.graphs import write_graphml
from fabrictune.topology.importers import IMPORTERS, import_fabric
from fabrictune.topology.validation import validate_fabric
from tests.fuzz.damage import damaged

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
SAMPLES: Mapping[str, tuple[str, ...]] = {
    "csv": ("lab.cabling.csv",),
    "hpcc": ("servers.simai.txt",),
    "ibnetdiscover": (*("subnet.ports.txt", "subnet.iblinkinfo.txt", "subnet.iblinkinfo-l.txt", "lab.ibsim.txt"),),
    "infragraph": ("lab.infragraph.yaml",),
    "lldp": ("pod.lldp.output", "pod.switches.txt", "spine1.eos.txt", "leaf1.keyvalue.txt"),
    "minigraph": ("tor1.minigraph.xml",),
    "sonic-dump": ("leaf1.appl_db.json", "spine1.redis.json"),
}


def originals(name: str, real_data: Path, folder: Path) -> list[Path]:
    """Return the undamaged files of a format; those of our own two are written from a public topology."""
    files = [real_data / file for file in REAL_FILES.get(name, ())]
    files += [GOLDEN / file for file in SAMPLES.get(name, ())]
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
        path = tmp_path / f"damaged{suffix}"
        path.write_bytes(damaged(data, chance))
        started = time.process_time()
        result = outcome(path, name)
        assert time.process_time() - started < MAX_SECONDS, f"row {row}"
        outcomes[result] = outcomes.get(result, 0) + 1
    assert outcomes.keys() == {"Fabric", "FabricError", "InputError"}, outcomes

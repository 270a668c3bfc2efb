"""What is released: two wheels, the sources, a bill of materials."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.sweep
def test_what_is_released_is_built_and_tried(tmp_path: Path) -> None:
    """Wheels run with an empty PATH, have names that an index takes, and every package is listed with its licence."""
    command = [ROOT / "setup" / "wheels.sh", tmp_path]
    done = subprocess.run(command, env={**os.environ, "VENV": sys.prefix}, check=True, capture_output=True, text=True)
    tags = sorted(path.name.split("-", 2)[2] for path in tmp_path.glob("*.whl"))
    assert [tag.partition("-manylinux")[0] for tag in tags] == ["cp311-cp311", "cp312-abi3"]
    assert all("-manylinux_2_" in tag for tag in tags)
    assert done.stdout.count("tried: ") >= 2
    (sources,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CMakeLists.txt", "netsim/engine/engine.cpp", "netsim/__init__.py", "fabrictune/netsim"} <= names
    (bill,) = tmp_path.glob("*.cdx.json")
    components = json.loads(bill.read_text())["components"]
    assert {"numba", "numpy", "pyarrow", "click"} <= {component["name"] for component in components}
    without = {component["name"] for component in components if not component.get("licenses")}
    assert without <= {"protobuf"}, "whose wheel names none"

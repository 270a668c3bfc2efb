"""Extensions of all five tables, as files and as entry points of an installed package, from the command line."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cc.laws import LAWS
from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.foundation.errors import FabrictuneError, InputError, UntrustedCodeError
from fabrictune.foundation.extensions.tables import Table
from fabrictune.installed_extensions import TABLES
from fabrictune.scenario.extensions import describe_extensions
from fabrictune.scenario.fabrics import build_named
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.topology.builders import BUILDERS
from fabrictune.topology.hashing import HASHES
from fabrictune.topology.importers import IMPORTERS

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "how-to"
MODULES = {  # file name -> page; the first block of Python on it
    "my_ring.py": "add-a-topology",
    "my_eos.py": "add-an-importer",
    "my_hash.py": "add-a-hash",
    "pairwise.py": "add-a-collective",
    "my_law.py": "add-a-law",
}
TABLE_OF: dict[str, Table[Any]] = {
    "my_ring.py": BUILDERS,
    "my_eos.py": IMPORTERS,
    "my_hash.py": HASHES,
    "pairwise.py": ALGORITHMS,
    "my_law.py": LAWS,
}
SCENARIO = """\
name: extended
fabric: {builder: ./my_ring.py, num_switches: 4, hosts_per_switch: 1}
routing: {function: ./my_hash.py, tiers: [{tier: 1, function: ./my_hash.py}]}
traffic:
  workload: mix
  parts:
    - name: gather
      traffic:
        workload: collective
        operation: all_gather
        layout: {dp: 4}
        message: 1 MB
        expansion: {algorithm: ./pairwise.py}
law: ./my_law.py
"""
INSTALLED = """\
name: installed
fabric: {builder: ring, num_switches: 4, hosts_per_switch: 1}
routing: {function: dect_x}
traffic:
  workload: collective
  operation: all_gather
  layout: {dp: 4}
  message: 1 MB
  expansion: {algorithm: pairwise}
law: {name: quarter, parameters: {increase: 500 Mbps}}
"""
ENTRY_POINTS = """\
[fabrictune.topologies]
ring = acme_net.my_ring:BUILDER
clos = acme_net.my_ring:BUILDER
[fabrictune.importers]
eos = acme_net.my_eos:IMPORTER
[fabrictune.hashes]
dect_x = acme_net.my_hash:HASH
broken = acme_net.broken:HASH
[fabrictune.collectives]
pairwise = acme_net.pairwise:ALGORITHM
[fabrictune.laws]
quarter = acme_net.my_law
"""


def module(name: str) -> str:
    """Return the file that a how-to has the reader save."""
    page = (PAGES / f"{MODULES[name]}.md").read_text()
    (first, *_) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(first)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with the files of all five how-tos, and a scenario that names four of them."""
    for name in MODULES:
        (tmp_path / name).write_text(module(name))
    (tmp_path / "extended.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same files as a package that is installed in the same folder."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{folder}")
    code = folder / "acme_net"
    code.mkdir()
    for name in MODULES:
        (folder / name).rename(code / name)
    (code / "__init__.py").write_text("")
    (code / "broken.py").write_text("import math\nGAIN = 1 / 0\n")
    information = folder / "acme_net-1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-net\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "installed.yaml").write_text(INSTALLED)
    return folder


@pytest.fixture
def installed(package: Path) -> Cli:
    """Return a function that runs `fabrictune` where the package is installed."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "fabrictune", *arguments]
        return subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)

    return run


def test_the_tables_are_five_with_groups_of_their_own() -> None:
    """Each has its group of entry points."""
    assert [table.kind.group for table in TABLES] == [
        "fabrictune.topologies",
        "fabrictune.importers",
        "fabrictune.hashes",
        "fabrictune.collectives",
        "fabrictune.laws",
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind.what)
def test_the_projects_own_entries_pass_the_checks_of_extensions(table: Table[object]) -> None:
    """A rule that the project's own entries break would be the wrong rule."""
    assert [mistake for entry in table.own.values() for mistake in table.kind.check(entry)] == []


@pytest.mark.parametrize("name", MODULES)
def test_no_file_runs_without_leave(folder: Path, name: str) -> None:
    """Nothing of it is executed, whichever table it is for."""
    path = folder / name
    path.write_text(f"__import__('pathlib').Path({str(folder / 'ran')!r}).touch()\n{path.read_text()}")
    with pytest.raises(UntrustedCodeError, match="next: read it, then run again with --trust-code"):
        TABLE_OF[name].load(path, trust_code=False)
    assert not (folder / "ran").exists()
    assert TABLE_OF[name].load(path, trust_code=True).file == path
    assert (folder / "ran").exists()


def test_a_scenario_that_names_files_loads_with_leave_only(folder: Path) -> None:
    """Leave stays with the scenario, also with other settings; no key of a file gives it."""
    path = folder / "extended.yaml"
    with pytest.raises(UntrustedCodeError, match=r"my_ring\.py: a topology in a file outside the project"):
        load_scenario(path)
    scenario = load_scenario(path, trust_code=True)
    assert override(scenario, {"fabric.num_switches": 5}, origin="test").fabric.spec.num_switches == 5
    path.write_text(f"trust_code: true\n{SCENARIO}")
    with pytest.raises(InputError, match="unknown key 'trust_code'"):
        load_scenario(path, trust_code=True)


def test_a_scenario_lists_its_extensions_once(folder: Path) -> None:
    """Two tiers by one file are one line; a law is listed where it is compiled."""
    scenario = load_scenario(folder / "extended.yaml", trust_code=True)
    listed = describe_extensions(scenario)
    assert [(entry["kind"], Path(entry["file"]).name) for entry in listed] == [
        ("topology", "my_ring.py"),
        ("hash function", "my_hash.py"),
        ("collective algorithm", "pairwise.py"),
    ]
    assert {len(entry["sha256"]) for entry in listed} == {64}


def test_a_setting_of_a_builder_in_a_file_is_checked_at_its_line(folder: Path) -> None:
    """With the nearest name, as for the project's own; and all of them."""
    path = folder / "extended.yaml"
    path.write_text(SCENARIO.replace("num_switches: 4, hosts_per_switch: 1", "num_swiches: 4, hosts_per_switch: two"))
    with pytest.raises(FabrictuneError) as raised:
        load_scenario(path, trust_code=True)
    assert str(raised.value) == (
        f"{path}:2: fabric.hosts_per_switch: 'two' where a whole number is needed\n"
        f"{path}:2: fabric.num_swiches: unknown key 'num_swiches'\n"
        "  did you mean 'num_switches'?\n"
        "  allowed: num_switches, hosts_per_switch, link_rate, cable"
    )


WRONG = {
    "a builder that raises": (
        "my_ring.py",
        ("    draft = FabricDraft", "    1 / 0\n    draft = FabricDraft"),
        "my_ring.py:28: build_ring: raised ZeroDivisionError: division by zero",
    ),
    "a builder that returns something else": (
        "my_ring.py",
        ("    return draft.finish()", "    return draft"),
        "my_ring.py: a builder that returned FabricDraft\n  allowed: Fabric",
    ),
    "a spec that raises": (
        "my_ring.py",
        ("        if self.num_switches < 3:", "        if self.num_switches < {}:"),
        "my_ring.py:22: RingSpec: raised TypeError: '<' not supported between instances of 'int' and 'dict'",
    ),
    "a spec that is no dataclass": (
        "my_ring.py",
        ("@dataclass(frozen=True, kw_only=True)\n", ""),
        "BUILDER: spec: RingSpec: no dataclass\n  allowed: a frozen dataclass whose fields are the settings",
    ),
    "a hash of the wrong type": (
        "my_hash.py",
        ("    return DECT_X(flows.wire_bytes(), seed_F)", "    return seed_F.astype(np.int64)"),
        "my_hash.py:14: hash_dect_x: int64[256] for 256 flows\n  allowed: uint64[256]",
    ),
    "a hash wider than it says": (
        "my_hash.py",
        ("num_bits=16", "num_bits=8"),
        "my_hash.py:14: hash_dect_x: a hash of 16 bits\n  allowed: 8, its num_bits",
    ),
    "a hash whose seeds do not shift it": (
        "my_hash.py",
        ("DECT_X(flows.wire_bytes(), seed_F)", "DECT_X(flows.wire_bytes(), seed_F) * (seed_F + np.uint64(1)) % 9"),
        "my_hash.py:14: hash_dect_x: seeds that change hashes by different values, with is_shifted_by_seed=True\n"
        "  next: set is_shifted_by_seed=False",
    ),
    "an algorithm that loses a chunk": (
        "pairwise.py",
        ("for distance in range(1, n)", "for distance in range(2, n)"),
        "pairwise.py:9: all_gather: all_gather of 2 members, 1 a host: "
        "member 0 ends with contributions [0, 0] in chunk 1",
    ),
    "an algorithm that returns something else": (
        "pairwise.py",
        ("    return from_moves(n, n, moves)", "    return moves"),
        "pairwise.py:9: all_gather: all_gather of 1 members, 1 a host: list where a Schedule is needed",
    ),
    "an algorithm that raises": (
        "pairwise.py",
        ("    return Cost(rounds=min(1, n - 1), buffers=(n - 1) / n)", "    return Cost(round=1)"),
        "pairwise.py:21: all_gather_cost: raised TypeError",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_extension_is_refused_at_its_line(folder: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test finds in the project's own entries, a check finds in others'; file and line say where."""
    monkeypatch.chdir(folder)
    name, (old, new), message = WRONG[case]
    text = (folder / name).read_text()
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new))
    is_built = name == "my_ring.py"
    with pytest.raises(InputError) as raised:
        build_named(name, {"num_switches": 4}, trust_code=True) if is_built else TABLE_OF[name].load(
            Path(name), trust_code=True
        )
    assert str(raised.value).removeprefix(f"{folder}/").startswith(message)


def test_an_importer_that_returns_something_else_is_refused(cli: Cli, folder: Path) -> None:
    """The mistake names the file and its digest."""
    (folder / "my_eos.py").write_text(module("my_eos.py").replace("return cabling.finish()", "return cabling"))
    (folder / "leaf1.eos").write_text("Et1 server1 eth0 120\n")
    done = cli("topo", "import", "leaf1.eos", "--format", "./my_eos.py", "--trust-code")
    assert done.returncode == 2
    assert re.match(r"my_eos\.py, SHA-256 [0-9a-f]{64}: an importer that returned Cabling\n", done.stderr)


def test_a_run_of_files_records_every_digest(cli: Cli, folder: Path) -> None:
    """Four files, with the law's."""
    done = cli("sim", "run", "extended.yaml", "--trust-code", "--fail-on", "never", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads((folder / "runs" / "extended" / "run.json").read_text())["extensions"]
    assert [entry["file"] for entry in listed] == ["my_ring.py", "my_hash.py", "pairwise.py", "my_law.py"]


def test_a_sweep_runs_files_in_its_workers(cli: Cli, folder: Path) -> None:
    """Leave and files reach every run; the same command does nothing twice, and a changed file is a new point."""
    command = ("sim", "sweep", "extended.yaml", "--vary", "fabric.num_switches=4;5", "--seeds", "1", "--trust-code")
    refused = cli(*command[:-1], "--quiet")
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)
    done = cli(*command, "--quiet", "--fail-on", "never")
    assert (done.returncode, done.stderr) == (0, "")
    points = folder / "runs" / "extended-sweep" / "points"
    before = {path.name for path in points.iterdir()}
    assert cli(*command, "--quiet", "--fail-on", "never").returncode == 0
    assert {path.name for path in points.iterdir()} == before
    (folder / "my_hash.py").write_text(module("my_hash.py") + "# changed\n")
    assert cli(*command, "--quiet", "--fail-on", "never").returncode == 0
    assert len({path.name for path in points.iterdir()} - before) == len(before)


def test_a_package_is_used_by_name_without_leave(installed: Cli, package: Path) -> None:
    """Installing it was the leave; package and version are in the record."""
    done = installed("sim", "run", "installed.yaml", "--fail-on", "never", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads((package / "runs" / "installed" / "run.json").read_text())["extensions"]
    assert [(entry["kind"], entry["name"]) for entry in listed] == [
        ("topology", "ring"),
        ("hash function", "dect_x"),
        ("collective algorithm", "pairwise"),
        ("law", "quarter"),
    ]
    assert {(entry["package"], entry["version"]) for entry in listed} == {("acme-net", "1.2")}


def test_the_doctor_lists_packages_with_versions(installed: Cli) -> None:
    """With what hides or breaks an entry."""
    listed = json.loads(installed("doctor", "--json").stdout)["extensions"]
    assert {(entry["name"], entry["state"]) for entry in listed} == {
        ("ring", "ok"),
        ("clos", "hidden"),
        ("eos", "ok"),
        ("broken", "unusable"),
        ("dect_x", "ok"),
        ("pairwise", "ok"),
        ("quarter", "ok"),
    }
    shown = installed("doctor").stdout
    assert re.search(r"topology +ring +ok +acme-net +1\.2 +acme_net\.my_ring:BUILDER", shown)
    assert "broken.py:2: ZeroDivisionError: division by zero\n  next: repair or uninstall acme-net\n" in shown


def test_a_name_of_a_package_is_offered_where_one_is_misspelt(installed: Cli) -> None:
    """Beside the project's own."""
    done = installed("topo", "build", "rng")
    assert done.stderr == (
        "BUILDER: unknown builder 'rng'\n  did you mean 'ring'?\n"
        "  allowed: clos, fat_tree, megascale, barre, hpn, meta24k, rail_only, ring\n"
    )


def test_what_a_spec_of_a_package_raises_is_placed(installed: Cli, package: Path) -> None:
    """Its own line, and no traceback, as of a file."""
    ring = package / "acme_net" / "my_ring.py"
    ring.write_text(ring.read_text().replace("if self.num_switches < 3:", "if self.num_switches < {}:"))
    done = installed("topo", "build", "ring", "num_switches=4")
    assert done.stderr == (
        f"{ring}:22: RingSpec: raised TypeError: '<' not supported between instances of 'int' and 'dict'\n"
    )


def test_an_installed_importer_recognises_files(installed: Cli, package: Path) -> None:
    """After the project's own; the note names the package."""
    (package / "leaf1.eos").write_text("Et1 server1 eth0 120\n")
    done = installed("topo", "import", "leaf1.eos")
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: read by the importer eos of acme-net 1.2\n" in done.stdout

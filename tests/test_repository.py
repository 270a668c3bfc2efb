"""The repository keeps its own promises: every package, dependency, benchmark and folder stands where it is listed."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import grimp  # comes with import-linter
import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGE = ROOT / "fabrictune"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_symlink() and (path / "__init__.py").exists())
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))  # of the top
MODULE_OF = {  # where the distribution's name is not its module's
    "pyyaml": "yaml",
    "protobuf": "google",
    "google-crc32c": "google_crc32c",
}
INDIRECT = {"markupsafe": "jinja2", "pydantic_core": "pydantic", "urllib3": "kubernetes"}  # with it, always
FROM_THE_DISTRIBUTION = {"pyverbs"}  # bound to its own libibverbs: what the index has by this name fits none


def plain_name(requirement: str) -> str:
    """Return a requirement's distribution in lower case with hyphens: `PyYAML>=6` is `pyyaml`."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_folder_of_code_is_a_room_of_the_one_package() -> None:
    """A folder without its link in `fabrictune` would be in no wheel, and checked by nothing."""
    assert sorted([*ROOMS, "fabrictune"]) == FOLDERS
    assert all((PACKAGE / room).resolve() == ROOT / room for room in [*ROOMS, "scenarios"])


def test_the_bare_names_are_banned() -> None:
    """In a checkout `import netsim` would find the folder; installed, another project's package or nothing."""
    banned = PYPROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert sorted(name for name in banned if "." not in name) == ROOMS


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Import-linter orders the rooms; this orders the modules of each. Imports for type checkers count too."""
    graph = grimp.build_graph("fabrictune", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules of a circle


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    """Dependencies and extras, against every import statement of the packages."""
    imported: set[str] = set()
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    known = {"fabrictune"} | set(sys.stdlib_module_names) | FROM_THE_DISTRIBUTION
    foreign = {INDIRECT.get(name, name) for name in imported - known}
    declared = {plain_name(text) for text in PYPROJECT["project"]["dependencies"]}
    extras = {plain_name(text) for texts in PYPROJECT["project"]["optional-dependencies"].values() for text in texts}
    modules, extra_modules = ({MODULE_OF.get(name, name) for name in names} for names in (declared, extras))
    assert modules <= foreign <= modules | extra_modules


def test_what_is_installed_is_pinned() -> None:
    """Torch at the version tested, since another brings gigabytes of CUDA."""
    pins = dict(line.lower().replace("_", "-").split("==") for line in read_constraints())
    project = PYPROJECT["project"]
    wanted = {
        plain_name(text)
        for text in [
            *PYPROJECT["build-system"]["requires"],
            *project["dependencies"],
            *project["optional-dependencies"]["train"],
            *project["optional-dependencies"]["probe"],
            *PYPROJECT["dependency-groups"]["dev"],
            *("pip", "cmake", "ninja", "ziglang"),
        ]
    }
    assert wanted <= set(pins)
    assert pins["torch"] == "2.13.0"


def read_constraints() -> list[str]:
    """Return the pins of constraints.txt."""
    return [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def test_every_python_child_is_started_in_one_place() -> None:
    """`sys.executable` in a list of words is a process that searches the current directory, without `-P`."""
    rooms = sorted({path.resolve() for path in (ROOT / "fabrictune").iterdir() if path.is_dir()})
    sources = [path for room in rooms for path in room.rglob("*.py")]
    assert len(sources) > 500
    start = re.compile(r"\[\s*(sys\.executable|python),")
    found = [str(path.relative_to(ROOT)) for path in sources if start.search(path.read_text())]
    assert found == ["foundation/children.py"]


def test_every_benchmark_is_run() -> None:
    """A benchmark that `make bench` does not know of is never seen again."""
    tree = ast.parse((ROOT / "benchmarks" / "run.py").read_text())
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "BENCHMARKS"
    ]
    assert sorted(listed[0]) == sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "run")


def test_the_readme_names_every_folder() -> None:
    """The tree in the README is the newcomer's map."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."} - {
        "build",
        "dist",
        "runs",
    }
    readme = (ROOT / "README.md").read_text()
    assert [folder for folder in sorted(folders) if f"\n{folder}/" not in readme] == []


def test_every_relative_link_of_the_documents_leads_somewhere() -> None:
    """Links between documents break silently when a file moves."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    links = [
        (document, target)
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    ]
    assert [(str(document), target) for document, target in links if not (document.parent / target).exists()] == []


@pytest.mark.slow
def test_the_wheel_runs_without_compiler_and_without_this_checkout(tmp_path: Path) -> None:
    """Unpacked elsewhere, with an empty PATH and only its declared dependencies beside it, it simulates the incast."""
    subprocess.run([ROOT / "setup" / "wheel.sh", tmp_path], env={**os.environ, "VENV": sys.prefix}, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".inl"))]
    assert {name.partition("/")[0] for name in names} == {"fabrictune", "fabrictune-0.1.0.dist-info"}
    assert "fabrictune/py.typed" in names
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    start = "from fabrictune.cli.main import main; main()"
    command = [sys.executable, "-S", "-c", start, "sim", "run", "--json", "--fail-on", "never", "--out", "run"]
    scenario = tmp_path / "site" / "fabrictune" / "scenarios" / "incast.yaml"
    run = subprocess.run(
        [*command, scenario],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": f"{tmp_path / 'site'}:{libraries}"},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)
    workers = "from fabrictune.rdma_bench.measurement.workers import PACKAGES; print(PACKAGES)"
    environment = {"PYTHONPATH": f"{tmp_path / 'site'}:{libraries}"}
    found = subprocess.run(
        [sys.executable, "-S", "-c", workers], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert found.stdout.strip() == str((tmp_path / "site").resolve()), "where a system's Python finds the workers"

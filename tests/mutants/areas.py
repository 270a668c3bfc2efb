"""Core areas: which files are mutated, and which tests are nearest to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.cpp_source import cpp_mutations
from tests.mutants.mutation import Mutation
from tests.mutants.python_source import python_mutations


@dataclass(frozen=True, kw_only=True)
class Area:
    """Patterns of files and the tests that are run on each mutant, by paths from the root."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # files of these patterns that run at import only, before a mutant is chosen
    is_cpp: bool = False
    is_compiled: bool = False  # from its files: the code of a function is not all there is of it


AREAS = (
    Area(
        name="engine",
        sources=("netsim/engine/**/*.?pp", "netsim/engine/**/*.inl", "topology/fairness_engine/*.?pp"),
        tests=("tests/netsim", "tests/skip", "tests/threads", "tests/topology/test_fairness.py"),
        left_out=("netsim/engine/bindings/module.cpp", "topology/fairness_engine/bindings.cpp"),
        is_cpp=True,
    ),
    Area(
        name="laws",
        sources=("cc/*.py",),
        tests=("tests/cc", "tests/netsim/test_laws.py", "tests/netsim/test_packet.py"),
        is_compiled=True,
    ),
    Area(
        name="timers",
        sources=("foundation/retransmission.py", "rdma_bench/timers/*.py"),
        tests=("tests/foundation/test_retransmission.py", "tests/rdma_bench/timers"),
    ),
    Area(
        name="collectives",
        sources=("collectives/*.py", "collectives/schedules/*.py"),
        tests=("tests/collectives/*.py",),
    ),
    Area(name="collisions", sources=("topology/ecmp/*.py",), tests=("tests/topology/ecmp",)),
    Area(name="hardware", sources=("hardware/*.py",), tests=("tests/hardware",), left_out=("hardware/nccl.py",)),
    Area(name="ledger", sources=("trainer_probe/ledger.py",), tests=("tests/trainer_probe/test_ledger.py",)),
)


def mutations_of(area: Area, root: Path) -> list[Mutation]:
    """Return all mutations of an area, by file and place."""
    find = cpp_mutations if area.is_cpp else python_mutations
    return [mutation for path in source_files(area, root) for mutation in find(path, (root / path).read_bytes())]


def source_files(area: Area, root: Path) -> list[str]:
    """Return the paths of an area's files from the root."""
    return sorted(set(_found(area.sources, root)) - set(area.left_out))


def nearest_tests(area: Area, root: Path, source: str) -> list[str]:
    """Return an area's test files, that of the same name as a source first."""
    files = {str(path.relative_to(root)) for found in _found(area.tests, root) for path in _tests_below(root / found)}
    own = f"test_{Path(source).stem}.py"
    return sorted(files, key=lambda file: (Path(file).name != own, file))


def _found(patterns: tuple[str, ...], root: Path) -> Iterator[str]:
    return (str(path.relative_to(root)) for pattern in patterns for path in root.glob(pattern))


def _tests_below(path: Path) -> Iterator[Path]:
    return path.rglob("test_*.py") if path.is_dir() else iter([path] if path.name.startswith("test_") else [])

"""A copy of the checkout in which mutants live, so that no mutant is ever in the checkout itself.

The engines in it hold every C++ mutant. What does not compile is left out, line by line.
"""

import importlib.util
import json
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.mutants.cpp_source import HEADER, with_mutants
from tests.mutants.mutation import Mutation

MAX_BUILDS = 8
ENGINES = {"_engine": "netsim", "_fairness": "topology"}


def copy_checkout(root: Path, tree: Path, mutated: Collection[str]) -> None:
    """Make `tree` hold what git tracks or would track in `root`, less the files that are to hold mutants.

    A file that is the same already keeps its time, so that little is compiled again.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = {name for name in listed.split("\0") if name and ((root / name).exists() or (root / name).is_symlink())}
    present = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    for name in present - names:
        (tree / name).unlink()
    for name in sorted(names - set(mutated)):
        if _copied(root / name, tree / name) and name.endswith(".py"):
            py_compile.compile(str(tree / name), invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def _copied(source: Path, place: Path) -> bool:
    """Copy a file or link unless it is the same; return whether it was not."""
    if source.is_symlink():
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source.readlink())
        return False
    content = source.read_bytes()
    if place.exists() and place.read_bytes() == content:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(source.stat().st_mode)
    return True


def build_engines(root: Path, tree: Path, build: Path, mutants: Mapping[int, Mutation]) -> set[int]:
    """Compile all C++ mutants into the tree's engines; return the numbers of those that do not compile.

    Their keys are kept in the build's folder, so that the next build begins without them.
    """
    originals = {path: (root / path).read_bytes() for path in sorted({mutant.path for mutant in mutants.values()})}
    build.mkdir(parents=True, exist_ok=True)
    header = build / "mutants.hpp"
    _write_if_new(header, HEADER.encode())
    known = build / "refused.json"
    keys = set(json.loads(known.read_text())) if known.exists() else set()
    refused = {number for number, one in mutants.items() if one.key in keys}
    for _ in range(MAX_BUILDS):
        for path, source in originals.items():
            kept = [(number, one) for number, one in mutants.items() if one.path == path and number not in refused]
            _write_if_new(tree / path, with_mutants(source, kept))
        errors = _build(tree, build, header)
        if not errors:
            _install(tree, build)
            known.write_text(json.dumps(sorted(mutants[number].key for number in refused)))
            return refused
        lines = _lines_with_errors(errors, tree)
        more = {number for number, one in mutants.items() if (one.path, one.line) in lines} - refused
        if not more:
            raise SystemExit(f"the engine with mutants does not compile:\n{errors[-4000:]}")
        refused |= more
    raise SystemExit(f"the engine with mutants does not compile after {MAX_BUILDS} builds")


def _write_if_new(path: Path, content: bytes) -> None:
    """Write a file, but leave one with that content alone, so that it is not compiled again."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _build(tree: Path, build: Path, header: Path) -> str:
    """Return what the compiler says where it fails, else nothing."""
    tools, folder = Path(sys.executable).parent, build / "build_of_cpp"
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], check=True, capture_output=True, text=True
    ).stdout.strip()
    configure: list[str | Path] = [
        *(tools / "cmake", "-S", tree, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"),
        *("-DFABRICTUNE_MUTANTS=ON", f"-DCMAKE_CXX_FLAGS=-include {header}", f"-Dnanobind_DIR={nanobind}"),
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    for command in (configure, [tools / "cmake", "--build", folder, "--", "-k", "0"]):
        words = [str(word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            return f"{done.stdout}{done.stderr}"
    return ""


def _install(tree: Path, build: Path) -> None:
    for name, folder in ENGINES.items():
        (library,) = (build / "build_of_cpp").glob(f"{name}.*.so")
        shutil.copy2(library, tree / folder / library.name)


def copy_engines(tree: Path) -> None:
    """Put the checkout's own engines into the tree, for mutants of Python."""
    for name, folder in ENGINES.items():
        found = importlib.util.find_spec(f"fabrictune.{folder}.{name}")
        assert found is not None, "the checkout is installed"
        assert found.origin is not None, "a library is a file"
        shutil.copy2(found.origin, tree / folder / Path(found.origin).name)


def _lines_with_errors(errors: str, tree: Path) -> set[tuple[str, int]]:
    """Return the (file, line) of every place that an error message names."""
    places = re.findall(r"^(\S+?):(\d+):\d+:\s+(?:error|required)", errors, re.MULTILINE)
    resolved = {(Path(path).resolve(), int(line)) for path, line in places}
    return {(str(path.relative_to(tree)), line) for path, line in resolved if path.is_relative_to(tree)}


def engine_libraries(tree: Path) -> Sequence[Path]:
    """Return the engines of a tree."""
    return [library for name, folder in ENGINES.items() for library in (tree / folder).glob(f"{name}.*.so")]

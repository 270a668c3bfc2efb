"""The set-up scripts choose what works, and where nothing does they say what to do next."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BASH = shutil.which("bash") or "bash"


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of bash after the set-up functions were read, with this environment and no other."""
    lines = ["set -euo pipefail", *(f"source setup/{name}.sh" for name in ("debian", "python", "compiler")), script]
    return subprocess.run(
        [BASH, "-c", "\n".join(lines)],
        cwd=ROOT,
        env={"VENV": sys.prefix, **environment},
        capture_output=True,
        text=True,
    )


def write_command(path: Path, script: str) -> None:
    """Make an executable of a line of shell."""
    path.write_text(f"#!{BASH}\n{script}\n")
    path.chmod(0o755)


def test_without_python_the_next_step_is_named(tmp_path: Path) -> None:
    """A PATH with no Python and no apt-get: exit code 3, what was looked for, what to type."""
    result = run("ensure_python", PATH=str(tmp_path))
    assert result.returncode == 3
    assert result.stderr.endswith(
        "set-up stopped: no Python 3.11 or newer found (looked for python3, python3.11 to python3.14)\n"
        "  next: install one (apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3\n"
    )


def test_an_old_python_is_passed_over(tmp_path: Path) -> None:
    """`python3` answers the version check with no; `python3.12` is a real one."""
    write_command(tmp_path / "python3", "exit 1")
    write_command(tmp_path / "python3.12", f'exec "{sys.executable}" "$@"')
    result = run("ensure_python", PATH=str(tmp_path))
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'python3.12'}\n")


def test_a_python_named_by_hand_is_taken(tmp_path: Path) -> None:
    """`make PYTHON=...` wins over what is on the PATH."""
    result = run("ensure_python", PATH=str(tmp_path), PYTHON=sys.executable)
    assert result.stdout == f"{sys.executable}\n"


def test_a_compiler_that_fails_on_cpp20_is_passed_over(tmp_path: Path) -> None:
    """`c++` is there but cannot build the probe; the next candidate can."""
    working = shutil.which("g++") or shutil.which("clang++")
    if working is None:
        pytest.skip("no C++ compiler on the path")
    write_command(tmp_path / "c++", "exit 1")
    write_command(tmp_path / "g++", f'exec "{working}" "$@"')
    result = run("ensure_compiler; echo $CXX", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (result.returncode, result.stdout) == (0, "g++\n")


def test_one_package_that_cannot_be_had_does_not_cost_the_others(tmp_path: Path) -> None:
    """apt-get refuses a list with one unknown name: then each is tried alone, and what is lacking is named."""
    write_command(tmp_path / "id", "echo 0")
    write_command(tmp_path / "dpkg", "exit 1")
    refuses = 'case "$*" in *slurmd*) exit 100;; esac'
    write_command(tmp_path / "apt-get", f'{refuses}; echo "${{@: -1}}" >> {tmp_path}/installed')
    result = run("ensure_test_packages", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert result.returncode == 0
    assert result.stderr.splitlines()[-1].endswith("so tests that use them are skipped: slurmd")
    assert {"redis-server", "munge"} <= set((tmp_path / "installed").read_text().split())


def test_every_system_package_has_its_reason() -> None:
    """Each line costs every fresh machine time."""
    lines = (ROOT / "setup" / "test_packages.txt").read_text().splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert packages
    assert all(re.fullmatch(r"[a-z0-9.+-]+  # .+", line) for line in packages)


def test_the_committed_stubs_are_those_of_the_compiled_modules(tmp_path: Path) -> None:
    """mypy believes the stubs; after a change of the bindings, `make stubs` writes them anew."""
    subprocess.run([ROOT / "setup" / "stubs.sh", tmp_path], env={**os.environ, "VENV": sys.prefix}, check=True)
    for stub in ("netsim/_engine.pyi", "topology/_fairness.pyi"):
        assert (tmp_path / stub).read_text() == (ROOT / stub).read_text()

"""The tool behind `make mutants`: what it changes, what it leaves, and what it finds."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.areas import AREAS, mutations_of, nearest_tests, source_files
from tests.mutants.argued import argued
from tests.mutants.cpp_source import HEADER, cpp_mutations, with_mutants
from tests.mutants.exchange import changed_functions
from tests.mutants.mutation import Mutation
from tests.mutants.python_source import python_mutations
from tests.mutants.sampling import sample
from tests.mutants.summary import Result, summary
from tests.mutants.trials import in_child

ROOT = Path(__file__).parents[1]

PYTHON = b'''"""A module: 1 < 2."""
LIMIT: Literal[5] = 3

def clip(value: int, /, *, low: int = 0) -> int:
    assert value < 100, f"{value + 1}"
    if not value or value <= low:
        stop(low)
        return min(value, LIMIT) // 2
    for one, other in zip(low, value, strict=True):
        continue
    raise ValueError(f"{value - 1}")
'''

CPP = b"""
constexpr int QUANTUM = 64;
template <int size>
int f(int a, bool is_on) {
    if constexpr (size > 2) a += 0x10;
    int counts[4] = {};
    if (!is_on && a < 7) return std::min(a, QUANTUM);
    switch (a) {
        case 3: stop(a); break;
    }
    if (a) __builtin_prefetch(&counts[1]);
    rows.prefetch(a + 1);
#if defined(__x86_64__) || defined(__i386__)
    pause();
#endif
    return a * 2 + counts[0];
}
"""

PROGRAM = b"""
int f(int a, bool is_on) {
    int result = 0;
    if (is_on && a < 7) result += a;
    return result;
}
"""


def changes(mutations: list[Mutation]) -> list[tuple[str, str]]:
    """Return what is mutated and what it becomes."""
    return [(mutation.before, mutation.after) for mutation in mutations]


def test_python_is_mutated_where_it_runs() -> None:
    """Not in annotations, assertions, errors and texts."""
    assert changes(python_mutations("clip.py", PYTHON)) == [
        ("LIMIT: Literal[5] = 3", "LIMIT: Literal[5] = 4"),
        ("def clip(value: int, /, *, low: int = 0) -> int:", "def clip(value: int, /, *, low: int = 1) -> int:"),
        ("if not value or value <= low:", "if value or value <= low:"),
        ("if not value or value <= low:", "if not value and value <= low:"),
        ("if not value or value <= low:", "if not value or value < low:"),
        ("stop(low)", "pass"),
        ("return min(value, LIMIT) // 2", "return max(value, LIMIT) // 2"),
        ("return min(value, LIMIT) // 2", "return min(value, LIMIT) * 2"),
        ("return min(value, LIMIT) // 2", "return min(value, LIMIT) // 3"),
        ("continue", "pass"),
    ]


def test_cpp_is_mutated_where_a_mutant_can_be_chosen_at_run_time() -> None:
    """Not what the compiler must know."""
    assert changes(cpp_mutations("f.cpp", CPP)) == [
        ("if constexpr (size > 2) a += 0x10;", "if constexpr (size > 2) ;"),
        ("if constexpr (size > 2) a += 0x10;", "if constexpr (size > 2) a -= 0x10;"),
        *(
            ("if (!is_on && a < 7) return std::min(a, QUANTUM);", after)
            for after in (
                "if (is_on && a < 7) return std::min(a, QUANTUM);",
                "if (!is_on || a < 7) return std::min(a, QUANTUM);",
                "if (!is_on && a <= 7) return std::min(a, QUANTUM);",
                "if (!is_on && a < 8) return std::min(a, QUANTUM);",
                "if (!is_on && a < 7) return std::max(a, QUANTUM);",
            )
        ),
        ("case 3: stop(a); break;", "case 3: ; break;"),
        ("case 3: stop(a); break;", "case 3: stop(a); ;"),
        ("pause();", ";"),
        ("return a * 2 + counts[0];", "return a / 2 + counts[0];"),
        ("return a * 2 + counts[0];", "return a * 3 + counts[0];"),
        ("return a * 2 + counts[0];", "return a * 2 - counts[0];"),
        ("return a * 2 + counts[0];", "return a * 2 + counts[1];"),
    ]


def test_one_build_holds_every_mutant_of_cpp(tmp_path: Path) -> None:
    """f(6), f(7) and f(0) with a switch on and off are 6, 0, 0, 0: each mutant gives something else, but one."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler by the name c++")
    mutations = cpp_mutations("f.cpp", PROGRAM)
    (tmp_path / "f.cpp").write_bytes(
        HEADER.replace("#pragma once", "#include <cstdio>\n#include <cstdlib>").encode()
        + with_mutants(PROGRAM, list(enumerate(mutations, start=1)))
        + b'int main(int, char** words) { fabrictune_mutant = std::atoi(words[1]); std::printf("%d %d %d %d",'
        b" f(6, true), f(7, true), f(0, true), f(6, false)); }"
    )
    subprocess.run([compiler, "-std=c++20", "-o", "f", "f.cpp"], cwd=tmp_path, check=True)
    results = [
        subprocess.run([tmp_path / "f", str(number)], check=True, capture_output=True, text=True).stdout
        for number in range(len(mutations) + 1)
    ]
    assert dict(zip([("", ""), *changes(mutations)], results, strict=True)) == {
        ("", ""): "6 0 0 0",
        ("int result = 0;", "int result = 1;"): "7 1 1 1",
        ("if (is_on && a < 7) result += a;", "if (is_on || a < 7) result += a;"): "6 7 0 6",
        ("if (is_on && a < 7) result += a;", "if (is_on && a <= 7) result += a;"): "6 7 0 0",
        ("if (is_on && a < 7) result += a;", "if (is_on && a < 8) result += a;"): "6 7 0 0",
        ("if (is_on && a < 7) result += a;", "if (is_on && a < 7) ;"): "0 0 0 0",
        ("if (is_on && a < 7) result += a;", "if (is_on && a < 7) result -= a;"): "-6 0 0 0",
    }


@pytest.mark.parametrize("options", [[], ["--exchange", "steps.py", "--tests", "test_steps.py"]])
def test_trials_find_the_killed_and_the_survivor(tmp_path: Path, options: list[str]) -> None:
    """A test that never looks at the boundary kills three of four, one of them by its limit of processor time.

    In a new process for each mutant, and in one where the function's code is exchanged.
    """
    source = b"def steps(end):\n    step = 0\n    while step < end:\n        step += 1\n    return step > 2\n"
    (tmp_path / "steps.py").write_bytes(source)
    (tmp_path / "test_steps.py").write_text(
        "from steps import steps\n\n\ndef test_steps():\n    assert steps(8)\n    assert not steps(1)\n"
    )
    wanted = {"step += 1": "step -= 1", "return step > 2": "return step >= 2", "step = 0": "step = 1"}
    jobs = [
        {"path": "steps.py", "start": one.start, "end": one.end, "new": one.new, "tests": ["test_steps.py"]}
        for one in python_mutations("steps.py", source)
        if wanted.get(one.before) == one.after
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.trials", "--least-cpu-s", "1", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="".join(f"{json.dumps(job)}\n" for job in jobs),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [
        {"is_killed": False, "by": ""},
        {"is_killed": True, "by": "time limit"},
        {"is_killed": False, "by": ""},
    ]
    assert (tmp_path / "steps.py").read_bytes() == source


def test_what_a_function_does_is_exchanged_and_what_runs_at_import_is_not() -> None:
    """A constant, a default and a class's attribute are not; a method and a function in a function are."""
    source = (
        b"LIMIT = 3\nclass Steps:\n    first = 4\n    def count(self, one=5):\n        return [lambda: one < 6]\n"
        b"def double(value):\n    return value * 7\n"
    )
    names = {
        str(digit): [old.co_qualname for old, _ in changed_functions("steps.py", source, mutated) or []]
        for digit in range(3, 8)
        for mutated in [source.replace(b"%d" % digit, b"%d" % (digit + 2))]
    }
    assert names == {"3": [], "4": [], "5": [], "6": ["Steps.count"], "7": ["double"]}


def test_what_a_fixture_reaches_serves_the_later_tests_of_its_file(tmp_path: Path) -> None:
    """The first test only begins what the second one looks at."""
    source = b"def double(value):\n    return value * 2\n"
    (tmp_path / "steps.py").write_bytes(source)
    (tmp_path / "test_steps.py").write_text(
        "import pytest\nfrom steps import double\n\n"
        "@pytest.fixture(scope='module')\ndef four():\n    return double(2)\n\n"
        "def test_it_is_a_number(four):\n    assert four > 0\n\ndef test_it_is_four(four):\n    assert four == 4\n"
    )
    (job,) = [
        {"path": "steps.py", "start": one.start, "end": one.end, "new": one.new, "tests": []}
        for one in python_mutations("steps.py", source)
        if one.after == "return value * 3"
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.trials", "--exchange", "steps.py", "--tests", "test_steps.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"is_killed": True, "by": "test_steps.py::test_it_is_four"}


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_trial_ends_with_the_process_that_tries(tmp_path: Path, by: signal.Signals) -> None:
    """It leads a session of its own, which no signal to the others reaches."""
    (tmp_path / "test_steps.py").write_text(
        "import os, pathlib, time\n\n\ndef test_that_waits():\n"
        "    pathlib.Path('new').write_text(str(os.getpid()))\n    os.rename('new', 'process')\n    time.sleep(600)\n"
    )
    (tmp_path / "steps.py").touch()
    trials = subprocess.Popen(
        [sys.executable, "-m", "tests.mutants.trials"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert trials.stdin is not None
    with trials.stdin:
        print(json.dumps({"path": "steps.py", "tests": ["test_steps.py"]}), file=trials.stdin, flush=True)
        _wait_until((tmp_path / "process").exists)
        trials.send_signal(by)
        trials.wait()
    trial = Path("/proc", (tmp_path / "process").read_text(), "stat")
    _wait_until(lambda: not trial.exists() or ") Z " in trial.read_text())


def test_what_waits_for_ever_is_ended_and_what_works_is_not() -> None:
    """A trial that takes no processor time, and one that takes more than the time that it may take none."""

    def waits() -> dict[str, int]:
        time.sleep(600)
        return {}

    def works() -> dict[str, int]:
        rounds, begun = 0, time.process_time()  # of this process, which begins at 0
        while time.process_time() - begun < 1:
            rounds += 1
        return {"rounds": rounds}

    assert in_child(waits, idle_s=0.5) == {"ended": "time limit"}
    assert in_child(works, idle_s=5)["rounds"] > 0


def _wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    pytest.fail("it has not come to this in a minute")


def test_a_sample_is_the_same_for_the_same_seed_and_fair_to_small_areas() -> None:
    """Of 3 and 20 mutants eight are all three, and five."""
    mutations = python_mutations("clip.py", PYTHON)
    many = [replace(mutations[0], start=place) for place in range(20)]
    first, again, other = (sample({"few": mutations[:3], "many": many}, 8, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert {name: len(chosen) for name, chosen in first.items()} == {"few": 3, "many": 5}


def test_the_test_of_the_same_name_comes_first() -> None:
    """It kills most."""
    laws = next(area for area in AREAS if area.name == "laws")
    assert nearest_tests(laws, ROOT, "cc/swift.py")[0] == "tests/cc/test_swift.py"


def test_argued_mutants_count_for_nothing_and_others_are_shown() -> None:
    """Four tried, of which one is argued and one does not compile: one of two is killed."""
    mutations = python_mutations("clip.py", PYTHON)[:4]
    states = ("killed", "survived", "survived", "not compiled")
    results = [(one, Result(state=state, by="")) for one, state in zip(mutations, states, strict=True)]
    text = summary({"laws": 9}, {"laws": results}, {mutations[1].change: "it changes nothing"})
    assert text.splitlines()[1].split() == ["laws", "9", "3", "1", "1", "1", "1", "50.0%"]
    assert text.splitlines()[-3:] == [
        "clip.py:6",
        "  - if not value or value <= low:",
        "  + if value or value <= low:",
    ]


def test_every_argued_mutant_is_one() -> None:
    """A row that fits no line any more argues for nothing."""
    rows = argued(ROOT)
    possible = {
        mutation.change
        for area in AREAS
        if any(path in {row[0] for row in rows} for path in source_files(area, ROOT))
        for mutation in mutations_of(area, ROOT)
    }
    assert sorted(set(rows) - possible) == []

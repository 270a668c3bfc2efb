"""Trials of mutants: each in a process of its own, forked from one that has the libraries loaded.

    python -m tests.mutants.trials [--least-cpu-s N] [--cpp TEST FILE...] [--exchange SOURCE... --tests TEST FILE...]

runs in the tree of the mutants (`tree.py`), reads a mutant a line from standard input as JSON and writes its result
likewise. The tests are run once without a mutant first. With `--cpp` and `--exchange` that shows which of them reach
which mutant: only these are run, the quickest first, in a process that has them all loaded.

A mutant is killed by the first test that fails, by a crash, or by a limit of processor time for each test, which a busy
machine does not shorten. What takes no processor time for a minute waits for ever, and is killed too.
"""

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.mutants.exchange import Calls, changed_functions, exchanging, functions_of, key_of, last_line

MAX_MUTANTS = 65_536  # as in the engines
LIBRARIES = (
    "numpy",
    "pyarrow.parquet",
    "pydantic",
    "llvmlite.binding",
    "networkx",
    "yaml",
    "hypothesis",
    "rich.console",
)
ARGUMENTS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not sweep and not real"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # loaded before
)
MEMORY_BYTES = 8 * 2**30
LEAST_CPU_S, CPU_FACTOR = 8.0, 4  # of a test; a mutated law is compiled anew in it
IDLE_S = 60
_CHILD_FAILED = 97
_PARENT_DEATH_SIGNAL = 1  # of prctl(2), Linux


class Recorder:
    """A pytest plugin: the first test that fails, and after each test its processor time and what `after` returns.

    A test that takes more processor time than its limit ends the process.
    """

    def __init__(self, after: Callable[[], list[Any]], limits_s: Mapping[str, float]) -> None:
        self._after, self._limits_s = after, limits_s
        self.first_failure = ""
        self.notes: dict[str, tuple[float, Any]] = {}
        self.notes_of_fixtures: list[tuple[str, Any]] = []
        self._started_s = 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start the test's time, and set its limit."""
        self._started_s = time.process_time()
        if nodeid in self._limits_s:
            limit_s = self._started_s + self._limits_s[nodeid]
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a failure's name, and note what the test's fixtures have reached, which may serve later tests."""
        if report.failed and not self.first_failure:
            self.first_failure = report.nodeid
        if getattr(report, "when", "") == "setup":
            self.notes_of_fixtures.append((report.nodeid, self._after()))

    def pytest_collectreport(self, report: Any) -> None:
        """Keep the name of a file that cannot be collected."""
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note what the test has reached."""
        self.notes[nodeid] = (time.process_time() - self._started_s, self._after())


def run_tests(
    tests: list[str], after: Callable[[], list[Any]] = list, limits_s: Mapping[str, float] | None = None
) -> tuple[int, Recorder]:
    """Run tests in this process; return pytest's exit code and the recorder."""
    import pytest

    recorder = Recorder(after, limits_s or {})
    return int(pytest.main([*ARGUMENTS, *tests], plugins=[recorder])), recorder


def in_child(work: Callable[[], dict[str, Any]], idle_s: float = IDLE_S) -> dict[str, Any]:
    """Return what `work` returns in a forked process; `{"ended": why}` where it does not.

    `idle_s` is how long it may take no processor time.
    """
    reading, writing = os.pipe()
    parent, process = os.getpid(), os.fork()
    if process == 0:
        _be_a_child(work, writing, parent)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as pipe, _ended_when_idle(process, idle_s):  # noqa: PTH123  # a descriptor
            text = pipe.read()
        _, status = os.waitpid(process, 0)
    finally:  # also where this process is told to end
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)  # what its tests have left
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"ended": "time limit" if number in (signal.SIGXCPU, signal.SIGKILL) else signal.Signals(number).name}
    return json.loads(text) if text else {"ended": f"exit code {os.WEXITSTATUS(status)}"}


@contextlib.contextmanager
def _ended_when_idle(session: int, idle_s: float) -> Iterator[None]:
    """Kill a session that takes no processor time."""
    ticks_before = -1

    def on_alarm(*_: object) -> None:
        nonlocal ticks_before
        ticks = _cpu_ticks(session)
        if ticks == ticks_before:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
        ticks_before = ticks

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, idle_s, idle_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _cpu_ticks(session: int) -> int:
    """Return the processor time of a session's processes and of those that they have waited for; see proc(5)."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended
            fields = path.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks


def end_with(parent: int, by: int) -> None:
    """Have this process sent a signal when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def _be_a_child(work: Callable[[], dict[str, Any]], writing: int, parent: int) -> None:
    code = _CHILD_FAILED
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with(parent, signal.SIGKILL)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silent, descriptor)
        os.write(writing, json.dumps(work()).encode())
        code = 0
    finally:
        os._exit(code)


def leave_the_checkout(tree: Path) -> None:
    """Import the package from the tree, although it is installed from its checkout."""
    names = {distribution.metadata["Name"] for distribution in distributions()}
    assert "fabrictune" in names, "installed, for its version"
    sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")]
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(tree)))]
    sys.dont_write_bytecode = True


class Survey:
    """What a run without a mutant shows: each test's processor time, and what it reached."""

    def __init__(
        self, tests: list[str], after: Callable[[], list[Any]] = list, prepare: Callable[[], None] = lambda: None
    ) -> None:
        """Run the tests; ends the program where one fails."""

        def work() -> dict[str, Any]:
            prepare()
            code, recorder = run_tests(tests, after)
            return {**_result(code, recorder), "notes": recorder.notes, "fixtures": recorder.notes_of_fixtures}

        result = in_child(work)
        if result.get("is_killed", True):
            raise SystemExit(f"the tests fail without a mutant: {result}")
        self.cpu_s: dict[str, float] = {test: cpu_s for test, (cpu_s, _) in result["notes"].items()}
        self.reached: dict[str, list[Any]] = {test: reached for test, (_, reached) in result["notes"].items()}
        of_file: dict[str, list[Any]] = {}
        for test, reached in result["fixtures"]:
            of_file.setdefault(test.partition("::")[0], []).extend(reached)
            self.reached[test] = self.reached[test] + of_file[test.partition("::")[0]]

    def trial(self, tests: list[str], least_cpu_s: float, prepare: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Return what comes of tests with what `prepare` changes in their process."""
        limits_s = {test: least_cpu_s + CPU_FACTOR * cpu_s for test, cpu_s in self.cpu_s.items()}

        def work() -> dict[str, Any]:
            prepare()
            return _result(*run_tests(tests, limits_s=limits_s))

        result = in_child(work)
        return {"is_killed": True, "by": result["ended"]} if "ended" in result else result


def _result(code: int, recorder: Recorder) -> dict[str, Any]:
    return {"is_killed": code != 0, "by": recorder.first_failure or (f"pytest exit code {code}" if code else "")}


class PythonTrials:
    """Mutants of Python: the file is written into the tree for as long as the trial takes."""

    def __init__(self, tree: Path, least_cpu_s: float) -> None:
        self._tree, self._least_cpu_s = tree, least_cpu_s
        self._surveys: dict[tuple[str, ...], Survey] = {}  # by the tests

    def try_one(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return whether the mutant was killed, and by what."""
        path, tests = self._tree / job["path"], job["tests"]
        key = tuple(sorted(tests))
        survey = self._surveys.get(key) or Survey(tests)
        self._surveys[key] = survey
        original = path.read_bytes()
        path.write_bytes(original[: job["start"]] + job["new"].encode() + original[job["end"] :])
        try:
            return survey.trial(tests, self._least_cpu_s)
        finally:
            path.write_bytes(original)


class ExchangeTrials:
    """Mutants of Python functions, in a process that has all modules and tests loaded.

    Only a kill is an answer: import and what runs with it have seen the file as it was.
    """

    def __init__(self, sources: list[str], tests: list[str], least_cpu_s: float) -> None:
        self._least_cpu_s = least_cpu_s
        run_tests(["--collect-only", *tests])
        self._functions = functions_of([Path(source) for source in sources])
        files = {function.__code__.co_filename for found in self._functions.values() for function in found}
        calls = Calls(sorted(files))
        self._survey = Survey(tests, calls.take, calls.begin)

    def try_one(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return whether the mutant was killed, and by what."""
        path = Path(job["path"]).resolve()
        original = path.read_bytes()
        mutated = original[: job["start"]] + job["new"].encode() + original[job["end"] :]
        changed = changed_functions(str(path), original, mutated)
        if not changed:
            return {"is_killed": False, "by": "seen at import"}
        exchanged = [(function, new) for old, new in changed for function in self._functions.get(key_of(old), [])]
        tests = [test for test, calls in self._survey.reached.items() if _is_called(calls, exchanged)]
        if not tests:
            return {"is_killed": False, "by": "not reached"}
        quickest_first = sorted(tests, key=lambda test: self._survey.cpu_s[test])
        return self._survey.trial(quickest_first, self._least_cpu_s, exchanging(exchanged))


def _is_called(calls: list[list[Any]], exchanged: list[tuple[FunctionType, CodeType]]) -> bool:
    """Return whether code in one of the functions was among those called."""
    codes = [function.__code__ for function, _ in exchanged]
    spans = {(code.co_filename, code.co_firstlineno, last_line(code)) for code in codes}
    return any(file == name and first <= line <= last for file, line in calls for name, first, last in spans)


class CppTrials:
    """Mutants of C++: a number in the engines, and only tests that reach it."""

    def __init__(self, tests: list[str], libraries: list[Path], least_cpu_s: float) -> None:
        self._least_cpu_s = least_cpu_s
        run_tests(["--collect-only", *tests])  # loads what all trials need
        handles = [ctypes.CDLL(str(library)) for library in libraries]
        self._chosen = [ctypes.c_int.in_dll(handle, "fabrictune_mutant") for handle in handles]
        self._reached = [(ctypes.c_ubyte * MAX_MUTANTS).in_dll(handle, "fabrictune_reached") for handle in handles]
        self._survey = Survey(tests, self._take_reached)

    def try_one(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return whether the mutant was killed, and by what; one that no test reaches lives."""
        number = job["number"]
        tests = [test for test, numbers in self._survey.reached.items() if number in numbers]
        if not tests:
            return {"is_killed": False, "by": "not reached"}
        quickest_first = sorted(tests, key=lambda test: self._survey.cpu_s[test])
        return self._survey.trial(quickest_first, self._least_cpu_s, lambda: self._choose(number))

    def _choose(self, number: int) -> None:
        for chosen in self._chosen:
            chosen.value = number

    def _take_reached(self) -> list[int]:
        numbers = {number for reached in self._reached for number, hit in enumerate(bytes(reached)) if hit}
        for reached in self._reached:
            ctypes.memset(reached, 0, len(reached))
        return sorted(numbers)


def main() -> None:
    """Try each mutant that comes in."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.trials", description=__doc__)
    parser.add_argument("--least-cpu-s", type=float, default=LEAST_CPU_S, help="what every test may take")
    parser.add_argument("--cpp", nargs="+", metavar="TEST FILE", help="mutants of the engines, and their tests")
    parser.add_argument("--exchange", nargs="+", metavar="SOURCE", help="mutants of these files' functions")
    parser.add_argument("--tests", nargs="+", metavar="TEST FILE", help="the tests of `--exchange`")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # a trial ends with it, in `in_child`
    end_with(os.getppid(), signal.SIGTERM)
    tree = Path.cwd()
    leave_the_checkout(tree)
    answers = os.dup(1)
    os.dup2(2, 1)  # pytest's own words
    for name in LIBRARIES:
        importlib.import_module(name)
    trials: CppTrials | ExchangeTrials | PythonTrials
    if given.cpp:
        from tests.mutants.tree import engine_libraries

        trials = CppTrials(given.cpp, list(engine_libraries(tree)), given.least_cpu_s)
    elif given.exchange:
        trials = ExchangeTrials(given.exchange, given.tests, given.least_cpu_s)
    else:
        trials = PythonTrials(tree, given.least_cpu_s)
    gc.freeze()
    with open(answers, "w", encoding="utf-8") as out:  # noqa: PTH123  # a descriptor
        for line in sys.stdin:
            out.write(f"{json.dumps(trials.try_one(json.loads(line)))}\n")
            out.flush()


if __name__ == "__main__":
    main()

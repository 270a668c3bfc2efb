"""`python -m tests.skip.omissions`: every value of exact skip's walk left out in turn, and the run that tells.

Builds the engine once more in build/omissions, with a number at each place where the walk tells a visitor a value. A
value that is left out is not kept, compared or moved. It is *caught* if a run's results change; one that follows from
others never is, and stands in IMPLIED with the reason.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build/omissions"
COPIED = ("CMakeLists.txt", "netsim/engine", "topology/fairness_engine")
SOURCES = ("skip/state_walk.inl", "skip/features_walk.inl", "state/host_links.hpp", "state/entropy_cache.hpp")
CALL = re.compile(r"\bvisitor\.(same|instant|stamp|anchor|count)\(")
NUM_PLAIN, NUM_FEATURED = 40, 80

LEFT_OUT = """
inline int omitted = -1;

template <typename Visitor>
bool leave_out(Visitor& visitor) {
    if constexpr (requires { visitor.place; }) {
        visitor.place++;
    } else {
        visitor.keep(0);
    }
    return true;
}
"""
TOLD = """
template <typename Visitor, typename... Arguments>
bool tell_KIND(int number, Visitor& visitor, Arguments&&... arguments) {
    return number == omitted ? leave_out(visitor) : visitor.KIND(arguments...);
}
"""

# What follows from other values, so that no run can tell that it is left out.
IMPLIED: dict[str, str] = {}


@dataclass(frozen=True)
class Value:
    """A place where the walk tells a value."""

    number: int
    file: str
    line: int
    text: str  # what is told, and as what

    @property
    def name(self) -> str:
        """Return it as IMPLIED has it."""
        return f"{Path(self.file).stem}: {self.text}"


def plant(engine: Path) -> list[Value]:
    """Number the values told in a copy of the engine's sources; return them."""
    values: list[Value] = []
    for file in SOURCES:
        source = (engine / file).read_text()
        parts, end = [], 0
        for match in CALL.finditer(source):
            close = _end_of_call(source, match.end())
            text = " ".join(f"{match[1]}({source[match.end() : close]}".split())
            values.append(Value(len(values), file, source.count("\n", 0, match.start()) + 1, text))
            parts += [source[end : match.start()], f"tell_{match[1]}({values[-1].number}, visitor, "]
            end = match.end()
        (engine / file).write_text("".join([*parts, source[end:]]))
    visitors = engine / "skip/visitors.hpp"
    head, namespace, rest = visitors.read_text().partition("namespace netsim {\n")
    tellers = LEFT_OUT + "".join(TOLD.replace("KIND", kind) for kind in ("same", "instant", "stamp", "anchor", "count"))
    visitors.write_text(head + namespace + tellers + rest)
    for file in SOURCES[2:]:
        path = engine / file
        path.write_text(
            path.read_text().replace("#pragma once\n", '#pragma once\n#include "../skip/visitors.hpp"\n', 1)
        )
    module = engine / "bindings/module.cpp"
    text = module.read_text().replace(
        '#include "law.hpp"\n', '#include "law.hpp"\n#include "../skip/visitors.hpp"\n', 1
    )
    module.write_text(
        text.replace(
            "    bind_law(module);\n",
            '    module.def("omit", [](int number) { omitted = number; });\n    bind_law(module);\n',
            1,
        )
    )
    return values


def _end_of_call(source: str, place: int) -> int:
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(source[place], 0)
        place += 1
    return place


def build() -> list[Value]:
    """Build the engine with numbered values in FOLDER, and let it be the one that is imported; return the values."""
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in COPIED:
        source, copy = ROOT / name, tree / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    values = plant(tree / "netsim/engine")
    binaries = Path(sys.executable).parent
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True).strip()
    configure = [
        "-S",
        str(tree),
        "-B",
        str(FOLDER / "build"),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={binaries / 'ninja'}",
    ]
    options = ["-DFABRICTUNE_MUTANTS=ON", f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]
    subprocess.run([binaries / "cmake", *configure, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([binaries / "ninja", "-C", FOLDER / "build", "_engine"], check=True, stdout=subprocess.DEVNULL)
    (file,) = (FOLDER / "build").glob("_engine.*.so")
    spec = spec_from_file_location("fabrictune.netsim._engine", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fabrictune.netsim._engine"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return values


class Runs:
    """The runs that are to tell, and what they leave without skip."""

    def __init__(self) -> None:
        from tests.skip.features import featured_run
        from tests.skip.runs import LAWS, finished, random_run, results, searching_long
        from tests.skip.targets import TARGETS

        runs = {
            **{name: make() for name, make in TARGETS.items()},
            **{f"plain {seed}": random_run(seed) for seed in range(NUM_PLAIN)},
            **{f"featured {seed}": featured_run(seed) for seed in range(NUM_FEATURED)},
        }
        self.runs = {name: (searching_long(run.inputs()), LAWS[run.law]) for name, run in runs.items()}
        self.finished, self.results = finished, results
        self.truth, self.names = {}, []
        for name, (inputs, law) in self.runs.items():
            self.truth[name] = results(finished(inputs, law, skips=False, events_per_slice=10**8))
            skipping = finished(inputs, law, skips=True, events_per_slice=10**8)
            assert results(skipping) == self.truth[name], name
            if skipping.num_skipped_events or name in TARGETS:
                self.names.append(name)

    def first_that_differs(self) -> str | None:
        """Return the first run whose results are not those without skip, and one that differs."""
        for place, name in enumerate(self.names):
            inputs, law = self.runs[name]
            try:
                got: dict[str, Any] = self.results(self.finished(inputs, law, skips=True, events_per_slice=10**8))
            except Exception as error:
                return self._found(place, f"{name}: {type(error).__name__}")
            different = [key for key, value in self.truth[name].items() if got[key] != value]
            if different:
                return self._found(place, f"{name}: {different[0]}")
        return None

    def _found(self, place: int, text: str) -> str:
        self.names.insert(0, self.names.pop(place))  # what has caught one often catches the next
        return text


def verdicts(values: list[Value], wanted: str) -> Iterator[tuple[Value, str | None]]:
    """Yield each value, and the run that tells that it is left out."""
    engine: Any = sys.modules["fabrictune.netsim._engine"]
    engine.omit(-1)
    runs = Runs()
    print(f"{len(runs.names)} runs that skip something, {len(values)} values", flush=True)
    for value in values:
        if wanted in value.name:
            engine.omit(value.number)
            yield value, runs.first_that_differs()
    engine.omit(-1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="values whose name holds this")
    options = parser.parse_args()
    num_wrong = 0
    for value, found in verdicts(build(), options.only):
        expected = value.name in IMPLIED
        is_wrong = (found is None) != expected
        num_wrong += is_wrong
        mark = "caught" if found else "implied" if expected else "SURVIVED"
        print(f"{mark}  {value.file}:{value.line} {value.text}  {found or IMPLIED.get(value.name, '')}", flush=True)
    print(f"{num_wrong} values that no run tells and nothing implies, or implied ones that a run tells")
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

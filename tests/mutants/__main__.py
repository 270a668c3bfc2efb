"""Command of `make mutants`: a sample of mutants of the core areas, each against the tests nearest to it.

    python -m tests.mutants [--sample N] [--seed S] [--area NAME]... [--again]

Takes as many from each area, the same for the same seed. Results are kept in build/mutants/results.jsonl under the
digest of the mutated file: the next call goes on where this one was stopped. `--again` tries survivors once more.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutants.areas import AREAS, Area, mutations_of, nearest_tests, source_files
from tests.mutants.argued import argued
from tests.mutants.mutation import Mutation
from tests.mutants.sampling import sample
from tests.mutants.summary import Result, summary
from tests.mutants.tree import build_engines, copy_checkout, copy_engines

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutants"
RESULTS = FOLDER / "results.jsonl"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="mutants in all, as many from each area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--area", action="append", choices=[area.name for area in AREAS])
    parser.add_argument("--again", action="store_true", help="try survivors again")
    given = parser.parse_args()
    areas = [area for area in AREAS if not given.area or area.name in given.area]
    mutations = {area.name: mutations_of(area, ROOT) for area in areas}
    chosen = sample(mutations, given.sample, given.seed)
    known = {} if not RESULTS.exists() else _read_results()
    done = {key: result for key, result in known.items() if not (given.again and result.state == "survived")}
    waiting = {area.name: [mutation for mutation in chosen[area.name] if mutation.key not in done] for area in areas}
    for is_cpp in (True, False):
        own = [area for area in areas if area.is_cpp == is_cpp and waiting[area.name]]
        if own:
            done |= _tried(own, waiting, is_cpp=is_cpp)
    results = {name: [(one, done[one.key]) for one in chosen[name]] for name in chosen}
    print(summary({name: len(mutations[name]) for name in mutations}, results, argued(ROOT)))


def _tried(areas: Sequence[Area], waiting: dict[str, list[Mutation]], *, is_cpp: bool) -> dict[str, Result]:
    """Return the results of areas of one language; each has its tree, so that one does not rebuild for the other."""
    tree = FOLDER / ("tree_of_cpp" if is_cpp else "tree")
    FOLDER.mkdir(parents=True, exist_ok=True)
    engines = {}
    if is_cpp:
        engines = dict(enumerate((one for area in areas for one in mutations_of(area, ROOT)), start=1))
    copy_checkout(ROOT, tree, {mutation.path for mutation in engines.values()})
    numbers = {mutation.key: number for number, mutation in engines.items()}
    refused = set()
    if is_cpp:
        refused = build_engines(ROOT, tree, FOLDER, engines)
    else:
        copy_engines(tree)
    return {
        mutation.key: result
        for area in areas
        for mutation, result in _try_all(area, waiting[area.name], tree, numbers, refused)
    }


def _try_all(
    area: Area, waiting: list[Mutation], tree: Path, numbers: dict[str, int], refused: set[int]
) -> Iterator[tuple[Mutation, Result]]:
    """Try mutants of one area one after another, and keep each result at once."""
    compiling = [one for one in waiting if numbers.get(one.key, 0) not in refused]
    for mutation in waiting:
        if mutation not in compiling:
            yield mutation, _keep(area, mutation, {"state": "not compiled", "by": ""})
    loaded = ["--cpp", *nearest_tests(area, tree, "")] if area.is_cpp else _exchange(area, tree)
    quick = [] if area.is_compiled else compiling
    decided = set()
    for mutation, answer in _answers(area, quick, tree, numbers, loaded):
        if area.is_cpp or answer["is_killed"]:
            decided.add(mutation.key)
            yield mutation, _keep(area, mutation, answer)
    left = [one for one in compiling if one.key not in decided]
    for mutation, answer in _answers(area, left, tree, numbers, []):
        yield mutation, _keep(area, mutation, answer)


def _exchange(area: Area, tree: Path) -> list[str]:
    # Nothing is compiled there, so that a test that takes seconds hangs.
    return ["--least-cpu-s", "2", "--exchange", *source_files(area, tree), "--tests", *nearest_tests(area, tree, "")]


def _answers(
    area: Area, mutations: list[Mutation], tree: Path, numbers: dict[str, int], options: list[str]
) -> Iterator[tuple[Mutation, dict[str, Any]]]:
    """Yield what a process of trials says of each mutant."""
    if not mutations:
        return
    with _server(area, tree, options) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for place, mutation in enumerate(mutations, start=1):
            job = {
                "path": mutation.path,
                "start": mutation.start,
                "end": mutation.end,
                "new": mutation.new,
                "number": numbers.get(mutation.key),
                "tests": nearest_tests(area, tree, mutation.path),
            }
            server.stdin.write(f"{json.dumps(job)}\n")
            server.stdin.flush()
            line = server.stdout.readline()
            if not line:
                raise SystemExit(f"the trials of {area.name} have ended: see {FOLDER / area.name}.log")
            answer = json.loads(line)
            state = "killed" if answer["is_killed"] else "survived"
            print(f"{area.name} {place}/{len(mutations)} {state}: {mutation.key}", file=sys.stderr, flush=True)
            yield mutation, answer


def _server(area: Area, tree: Path, options: list[str]) -> "subprocess.Popen[str]":
    log = (FOLDER / f"{area.name}.log").open("w")
    return subprocess.Popen(
        [sys.executable, "-m", "tests.mutants.trials", *options],
        cwd=tree,
        env={**os.environ, "XDG_CACHE_HOME": str(FOLDER / "cache")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


def _keep(area: Area, mutation: Mutation, answer: dict[str, Any]) -> Result:
    state = answer.get("state") or ("killed" if answer["is_killed"] else "survived")
    facts = {"state": state, "by": answer["by"]}
    with RESULTS.open("a") as file:
        file.write(f"{json.dumps({'mutant': mutation.key, 'area': area.name, **facts})}\n")
    return Result(**facts)


def _read_results() -> dict[str, Result]:
    rows = map(json.loads, RESULTS.read_text().splitlines())
    return {row["mutant"]: Result(state=row["state"], by=row["by"]) for row in rows}


if __name__ == "__main__":
    main()

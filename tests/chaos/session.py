"""A session: runs one after another, a line of JSON each in a file, so that it goes on where it was stopped."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.chaos import damage, tensors
from tests.chaos.plan import NUM_STEPS, UNDISTURBED, Plan, make_plan
from tests.chaos.runs import observe
from tests.chaos.undisturbed import Undisturbed
from tests.chaos.verdicts import Verdict, judge, without_late

LINES, RUNS, REFERENCE = "runs.jsonl", "runs", "undisturbed.json"


class Session:
    """The runs of one seed in a folder."""

    def __init__(self, folder: Path, seed: int, only: str | None = None) -> None:
        self.folder, self._seed, self._only = folder, seed, only
        (folder / RUNS).mkdir(parents=True, exist_ok=True)

    @property
    def runs(self) -> Path:
        """Where the evidence of failed runs lies."""
        return self.folder / RUNS

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of this session's finished runs, in order of number."""
        path = self.folder / LINES
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines if line.endswith("}")]  # the last may have been cut short
        key = [self._seed, self._only]
        own = {entry["verdict"]["number"]: entry["verdict"] for entry in entries if entry["key"] == key}
        return [Verdict.from_json(own[number]) for number in sorted(own)]

    def go_on(self, num_runs: int, until_s: float, *, keeps_all: bool = False) -> Iterator[Verdict]:
        """Do the runs that are not done yet, until a moment of the monotonic clock; yields each verdict."""
        done = {verdict.number for verdict in self.verdicts()}
        undisturbed = self.undisturbed()
        for number in range(num_runs):
            if number in done:
                continue
            if time.monotonic() > until_s:
                return
            verdict = self.run(make_plan(self._seed, number, self._only), undisturbed)
            self._append(verdict)
            if not verdict.failures and not keeps_all:
                shutil.rmtree(self.runs / verdict.folder, ignore_errors=True)
            yield verdict

    def run(self, plan: Plan, undisturbed: Undisturbed) -> Verdict:
        """Do one run; its plan, verdict and journal's events lie in its folder."""
        folder = self.runs / f"{plan.number:05d}-{plan.fault.name.replace(' ', '-')}"
        observed = observe(plan, folder, undisturbed)
        verdict = judge(without_late(observed))
        (folder / "verdict.json").write_text(json.dumps({"plan": asdict(plan), **asdict(verdict)}, indent=1))
        events = (f"{event.elapsed_s:9.3f} {event.kind} {json.dumps(dict(event.values))}" for event in observed.events)
        (folder / "events.txt").write_text("\n".join(events) + "\n")
        return verdict

    def undisturbed(self) -> Undisturbed:
        """Return what an undisturbed run comes to; it is made once a session. Raises RuntimeError where it fails."""
        path = self.folder / REFERENCE
        if path.exists():
            return Undisturbed.read(path)
        folder = self.folder / "undisturbed"
        observed = observe(Plan(number=0, fault=UNDISTURBED, injections=()), folder, None)
        steps = {str(e.values["step"]): e for e in observed.events if e.kind == "step"}
        final = damage.newest_checkpoint(folder / "storage")
        if observed.exit_code != 0 or final is None or len(steps) != NUM_STEPS or observed.leftovers:
            raise RuntimeError(
                f"the undisturbed run fails: exit code {observed.exit_code}, {len(steps)} steps, "
                f"last checkpoint {final}, left {observed.leftovers}: {folder / 'console'}"
            )
        durations_s = sorted(event.values["elapsed_ns"] / 1e9 for event in steps.values())
        found = Undisturbed(
            digest=tensors.digest(final),
            final_step=damage.step_of(final),
            losses={step: event.values["loss"] for step, event in steps.items()},
            duration_s=observed.duration_s,
            step_s=durations_s[len(durations_s) // 2],
        )
        found.write(path)
        return found

    def _append(self, verdict: Verdict) -> None:
        with (self.folder / LINES).open("a") as file:
            file.write(json.dumps({"key": [self._seed, self._only], "verdict": asdict(verdict)}) + "\n")

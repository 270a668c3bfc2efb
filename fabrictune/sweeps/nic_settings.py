"""Settings of a sweep's front for NICs and switches, added to the sweep's record; none is ever applied."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fabrictune.cc.nic_parameters import NicFiles
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.settings.binding import bind
from fabrictune.scenario.nic_settings import nic_changes
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.switch_settings.report import SwitchReport, reporter
from fabrictune.sweeps.results import best_first
from fabrictune.sweeps.store import SweepFolder

NIC_FILE, SWITCH_FILE, PATCH_FILE = "nic-settings.txt", "switch-settings.txt", "switch-patches.json"


@dataclass(frozen=True, kw_only=True)
class SettingsWriter:
    """What changes are counted from: a sweep's scenario, and the files of its switches, which are read beforehand."""

    base: Scenario
    files: NicFiles
    report: Callable[[Scenario], SwitchReport | None]

    @classmethod
    def of(cls, base: Scenario, files: str) -> "SettingsWriter":
        """Return the writer for a sweep's scenario; raises InputError for files of switches that cannot be read."""
        return cls(base=base, files=NicFiles(files), report=reporter(base))


def settings_of_front(record: RunRecord, folder: SweepFolder, writer: SettingsWriter) -> RunRecord:
    """Return the record with the lines of each point on the front, the best in the first objective first.

    They are in its head as `nic_settings` (settings, lines, needs, since) and `switch_settings`, and in files of their
    own. Lines are those of what differs from the sweep's scenario, or from the files of its switches. A point whose law
    no NIC has built in has none for NICs.
    """
    nic_rows: list[dict[str, Any]] = []
    switch_rows: list[dict[str, Any]] = []
    patches: list[dict[str, Any]] = []
    for settings, scenario in _front(record, folder):
        if changes := nic_changes(writer.base, scenario, writer.files):
            row = {"lines": list(changes.lines), "needs": changes.needs, "since": changes.since}
            nic_rows.append({"settings": settings, **row})
        if found := writer.report(scenario):
            switch_rows.append({"settings": settings, **found.as_json()})
            patches.append({"settings": settings, "switches": dict(found.patches)})
    nic_text = "\n".join(_block(row["settings"], row["lines"]) for row in nic_rows)
    switch_text = "\n".join(_block(row["settings"], SwitchReport.lines(row)) for row in switch_rows)
    written = {
        NIC_FILE: nic_text.encode() if nic_rows else b"",
        SWITCH_FILE: switch_text.encode() if switch_rows else b"",
        PATCH_FILE: json.dumps(patches, indent=2).encode() if any(entry["switches"] for entry in patches) else b"",
    }
    return replace(
        record,
        run={**record.run, "nic_settings": nic_rows, "switch_settings": switch_rows},
        files={**record.files, **{name: content for name, content in written.items() if content}},
    )


def _front(record: RunRecord, folder: SweepFolder) -> Iterator[tuple[str, Scenario]]:
    """Yield settings and scenario of each Pareto-optimal point."""
    is_on_front = record.tables["points"]["is_on_front"]
    for point in (point for point in best_first(record) if is_on_front[point]):
        run = folder.read(record.run["point_ids"][point][0])
        scenario = bind(Scenario, json.loads(run.run["scenario"]), folder=folder.directory)
        yield str(record.tables["points"]["settings"][point]), scenario


def _block(settings: str, lines: Iterable[str]) -> str:
    """Return lines for a shell below a comment, which ends with its line whatever text the settings have."""
    return "\n".join((f"# {_printable(settings)}", *map(_printable, lines), ""))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)

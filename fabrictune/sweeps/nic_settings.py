"""NIC settings of a sweep's front, added to the sweep's record; none is ever applied."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fabrictune.cc.nic_parameters import NicFiles
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.settings.binding import bind
from fabrictune.scenario.nic_settings import nic_settings
from fabrictune.scenario.schema import Scenario
from fabrictune.sweeps.results import best_first
from fabrictune.sweeps.store import SweepFolder

FILE = "nic-settings.txt"


def settings_of_front(record: RunRecord, folder: SweepFolder, files: str) -> RunRecord:
    """Return the record with the lines of each point on the front, the best in the first objective first.

    They are in its head as `nic_settings` (settings, lines) and in a file of their own; a point whose law no NIC has
    built in has none.
    """
    rows: list[dict[str, Any]] = []
    is_on_front = record.tables["points"]["is_on_front"]
    for point in (point for point in best_first(record) if is_on_front[point]):
        run = folder.read(record.run["point_ids"][point][0])
        scenario = bind(Scenario, json.loads(run.run["scenario"]), folder=folder.directory)
        if lines := nic_settings(scenario, NicFiles(files)):
            rows.append({"settings": str(record.tables["points"]["settings"][point]), "lines": list(lines)})
    text = "\n".join(_block(row["settings"], row["lines"]) for row in rows)
    return replace(
        record,
        run={**record.run, "nic_settings": rows},
        files={**record.files, **({FILE: text.encode()} if rows else {})},
    )


def _block(settings: str, lines: Sequence[str]) -> str:
    """Return lines for a shell below a comment, which ends with its line whatever text the settings have."""
    comment = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in settings)
    return "\n".join((f"# {comment}", *lines, ""))

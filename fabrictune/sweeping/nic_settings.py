"""The points of a sweep's front as settings that a NIC accepts, put into the sweep's record; none is ever applied."""

import json
from dataclasses import replace

import numpy as np

from cc.nic_parameters import NicFiles
from fabrictune.scenario.nic_settings import nic_settings
from fabrictune.scenario.schema import Scenario
from fabrictune.sweeping.storing import SweepFolder
from foundation.records import RunRecord
from foundation.settings.binding import bind

FILE = "nic-settings.txt"


def settings_of_front(record: RunRecord, folder: SweepFolder, files: str) -> RunRecord:
    """Return the record with the lines of each point on the front, the best in the first objective first.

    They stand in its head as `nic_settings` (settings, lines) and in a file of their own; a point whose law no NIC has
    built in has none.
    """
    found = []
    for point in _front(record):
        run = folder.read(record.run["point_ids"][point][0])
        scenario = bind(Scenario, json.loads(run.run["scenario"]), folder=folder.directory)
        if lines := nic_settings(scenario, NicFiles(files)):
            found.append({"settings": str(record.tables["points"]["settings"][point]), "lines": list(lines)})
    text = "\n".join("\n".join((f"# {one['settings']}", *one["lines"], "")) for one in found)
    return replace(
        record,
        run={**record.run, "nic_settings": found},
        files={**record.files, **({FILE: text.encode()} if found else {})},
    )


def _front(record: RunRecord) -> list[int]:
    """Return the points on the front, the best in the first objective first."""
    objectives = record.tables["objectives"]
    metric, goal = next(iter(record.run["objectives"].items()))
    rows = np.flatnonzero(objectives["metric"] == metric)
    order = np.argsort(objectives["value"][rows] * (-1 if goal == "maximise" else 1), kind="stable")
    on_front = record.tables["points"]["is_on_front"]
    return [point for point in objectives["point"][rows][order].tolist() if on_front[point]]

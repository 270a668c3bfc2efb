"""Changes of a job's recipe or code while it is operated, and the return to what was before.

`train change` leaves a file in the job's folder. The driver records it, lets the ranks end after their step with a
checkpoint, and starts a generation with the changed task. An error of code or data before that one has saved a
checkpoint of its own takes the job back to the task before.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.trainer_probe.operation.continuation import ROLL_BACK, read_continuation
from fabrictune.trainer_probe.operation.decisions import Cause, Decision, Diagnosis
from fabrictune.trainer_probe.operation.journal import open_journal
from fabrictune.trainer_probe.operation.run_folder import RunFolder
from fabrictune.trainer_probe.operation.tasks import JobTask
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

OF_CODE: tuple[Cause, ...] = ("rank failed", "rank hung", "deadlock", "not a number", "loader failed")


def ask_change(folder: RunFolder, settings: Mapping[str, Any], code: str) -> None:
    """Ask for a change of a job; raises InputError where there is no job, or the changed recipe has another layout."""
    journal = open_journal(str(folder.path), is_read_only=True)
    try:
        task = read_continuation(journal.read()).task
    finally:
        journal.close()
    if task is None:
        raise InputError(Mistake(where=str(folder.path), found="no generation has started"))
    recipe = find_recipe(task.recipe)
    before = load_recipe(recipe, task.settings).degrees.layout
    after = load_recipe(recipe, {**task.settings, **settings}).degrees.layout
    if after != before:
        found = f"another layout ({after.describe()})"
        raise InputError(
            Mistake(where="--set", found=found, allowed=before.describe(), next_step="stop the job, and start it so")
        )
    with replaced_file(folder.change_file) as half:
        half.write_text(json.dumps({"settings": dict(settings), "code": code}))


def read_change(folder: RunFolder) -> Mapping[str, Any] | None:
    """Return the change that was asked for, None without one."""
    try:
        content = folder.change_file.read_text()
    except OSError:
        return None
    return dict(json.loads(content))


def changed(task: JobTask, change: Mapping[str, Any]) -> JobTask:
    """Return a task with a change."""
    return replace(task, settings={**task.settings, **change["settings"]}, code=change["code"] or task.code)


def decide_rollback(diagnosis: Diagnosis, before_change: JobTask | None) -> Decision | None:
    """Return the decision to go back where a change has failed before it saved a checkpoint, else None."""
    if before_change is None or diagnosis.cause not in OF_CODE:
        return None
    reason = f"{diagnosis.cause} ({diagnosis.entity}) before the changed task has saved a checkpoint"
    return Decision(action=ROLL_BACK, reason=reason)

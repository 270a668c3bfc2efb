"""The folder of a validation: what is validated, a file a stage, and what becomes of them.

`cluster.json` says which nodes, fabric and settings; a run with others is refused, so that no page mixes two clusters.
`stages/NAME.json` are the results, `collection` and `counters-*` what the nodes said, `record` the run record.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.output_files import check_writable, replaced_file
from fabrictune.validate.cluster.results import StageResult, read_results

PLAN, STAGES, RECORD = "cluster.json", "stages", "record"
FORMAT_KEY, FORMAT = "fabrictune_cluster", 1
MAX_PLAN_BYTES = 2**24


def open_folder(folder: Path, plan: Mapping[str, Any]) -> Path:
    """Return the folder of stages, new or that of the same plan; raises RecordError and InputError."""
    try:
        _check_place(folder)
        (folder / STAGES).mkdir(parents=True, exist_ok=True)
        check_writable(folder / STAGES)
    except OSError as error:
        found = f"cannot be written ({error.strerror})"
        raise RecordError(Mistake(where=str(folder), found=found)) from None
    path = folder / PLAN
    values = {FORMAT_KEY: FORMAT, **plan}
    if path.exists():
        _check_same(path, json.loads(json.dumps(values)))
        return folder / STAGES
    with replaced_file(path) as half:
        half.write_text(json.dumps(values, indent=1) + "\n")
    return folder / STAGES


def read_baseline(folder: Path) -> dict[str, StageResult]:
    """Return the results of an earlier validation; raises InputError where there is none."""
    if not (folder / PLAN).is_file():
        step = "name the folder that validate cluster --out wrote"
        raise InputError(Mistake(where=str(folder), found="no validation of a cluster", next_step=step))
    return read_results(folder / STAGES)


def _check_place(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RecordError(Mistake(where=str(folder), found="not a folder", next_step="name another"))
    if folder.is_dir() and not (folder / PLAN).is_file() and any(folder.iterdir()):
        found = "a folder with other files, which are not replaced"
        raise RecordError(Mistake(where=str(folder), found=found, next_step="name another"))


def _check_same(path: Path, plan: Mapping[str, Any]) -> None:
    tree = load_json(path, max_bytes=MAX_PLAN_BYTES).tree
    earlier: Mapping[str, Any] = tree if isinstance(tree, dict) else {}
    different = sorted(key for key in {*earlier, *plan} if earlier.get(key) != plan.get(key))
    if different:
        raise InputError(
            Mistake(
                where=str(path),
                found=f"a validation with other {', '.join(different)}",
                next_step="name another folder with --out, or give what it was begun with",
            )
        )

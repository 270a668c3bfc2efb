"""Places for checkpoints that are full, fail or are slow.

Training goes on without them: what is at risk is the work since the last checkpoint, and that is said.
"""

from fabrictune.trainer_probe.operation.decisions import Cause, Diagnosis
from fabrictune.trainer_probe.operation.observations import StorageStatus
from fabrictune.trainer_probe.operation.rules.error_signs import kind_of_error
from fabrictune.trainer_probe.operation.rules.thresholds import typical
from fabrictune.trainer_probe.operation.rules.view import View, seconds


def find_bad_storage(view: View) -> Diagnosis | None:
    """Return the diagnosis of the first storage that is full or, where none is, of one that is slow."""
    found = [
        (node.node, storage, *sign)
        for node in view.nodes
        for storage in (node.heartbeat.storages if node.heartbeat is not None else ())
        if (sign := _sign(storage, view)) is not None
    ]
    if not found:
        return None
    order: tuple[Cause, ...] = ("storage full", "storage slow")
    _, storage, cause, _ = min(found, key=lambda entry: (order.index(entry[2]), entry[1].url, entry[0]))
    same = [entry for entry in found if entry[1].url == storage.url and entry[2] == cause]
    return Diagnosis(
        cause=cause,
        entity=f"storage {storage.url}",
        nodes=tuple(dict.fromkeys(entry[0] for entry in same)),
        evidence=tuple(f"node {node}: {reason}" for node, _, _, reason in same),
        quiet_s=storage.write_s or 0.0,
        is_fatal=False,
        error=storage.failure,
    )


def _sign(storage: StorageStatus, view: View) -> tuple[Cause, str] | None:
    if storage.failure and kind_of_error(storage.failure, is_waiting=False) == "storage full":
        return "storage full", f"the last save failed: {storage.failure}"
    if storage.free_bytes is not None and storage.free_bytes <= view.settings.full_bytes:
        return "storage full", f"{storage.free_bytes:,} bytes are free"
    if storage.failure:
        return "storage slow", f"the last save failed: {storage.failure}"
    limit_s = max(view.settings.save_floor_s, view.settings.slow_save_factor * typical(view.snapshot.save_s))
    if storage.write_s is not None and storage.write_s > limit_s:
        return "storage slow", f"the last save took {seconds(storage.write_s)}, with a limit of {seconds(limit_s)}"
    return None

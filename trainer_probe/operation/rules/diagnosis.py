"""From all nodes at one moment to the fault that explains what is seen.

The signs are tried in the order of cause, not of arrival: a lost executor explains its ranks, a rank that was killed or
stopped explains the errors and waits of its peers. What does not end a generation comes last.

Left out: a rank's wait for work of a library that its page does not show.
"""

from collections.abc import Callable

from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.observations import Snapshot
from fabrictune.trainer_probe.operation.rules.deaths import find_failed_rank, find_killed_rank, find_stopped_rank
from fabrictune.trainer_probe.operation.rules.hangs import find_hang
from fabrictune.trainer_probe.operation.rules.links import find_broken_transport, find_unreached_store
from fabrictune.trainer_probe.operation.rules.losses import find_not_a_number, find_spike
from fabrictune.trainer_probe.operation.rules.services import find_dead_service, find_service_error
from fabrictune.trainer_probe.operation.rules.settings import RuleSettings
from fabrictune.trainer_probe.operation.rules.silence import find_lost_node
from fabrictune.trainer_probe.operation.rules.storages import find_bad_storage
from fabrictune.trainer_probe.operation.rules.view import View

Search = Callable[[View], Diagnosis | None]

# In order of cause. All that end a generation, then those that do not; `find_hang` has both, the fatal ones first.
SEARCHES: tuple[Search, ...] = (
    find_lost_node,
    find_killed_rank,
    find_stopped_rank,
    find_failed_rank,
    find_dead_service,
    find_unreached_store,
    find_service_error,
    find_broken_transport,
    find_not_a_number,
    find_hang,
    find_bad_storage,
    find_spike,
)


def diagnose(snapshot: Snapshot, settings: RuleSettings) -> Diagnosis | None:
    """Return what is wrong with a job, None where nothing is known to be."""
    view = View(snapshot=snapshot, settings=settings)
    found = (search(view) for search in SEARCHES)
    return next((diagnosis for diagnosis in found if diagnosis is not None), None)

"""Snapshots show the rules a generation's own processes."""

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.operation.driver_state import Generation, Node
from fabrictune.trainer_probe.operation.observations import Heartbeat, ServiceStatus, StorageStatus
from fabrictune.trainer_probe.operation.snapshots import RecentFigures


def test_processes_of_the_generation_before_are_left_out() -> None:
    """Its loader has ended, as it should; the node's last heartbeat is still of that generation."""
    gone = ServiceStatus(name="loader", pid=9, process_state="")
    heartbeat = Heartbeat(node="node0", generation=1, number=5, state="running", services=(gone,))
    node = Node(name="node0", life="joined", heartbeat=heartbeat)
    for number, services in ((1, (gone,)), (2, ())):
        generation = Generation(number=number, nodes=("node0",), ranks_of={"node0": (0,)})
        (view,) = RecentFigures().snapshot(generation, [node], ParallelLayout(), 1.0).nodes
        assert view.heartbeat is not None
        assert view.heartbeat.services == services


def test_what_the_last_save_of_a_storage_came_to_is_shown() -> None:
    """A failure until one succeeds; memory is no storage."""
    node = Node(name="node0", life="joined", heartbeat=Heartbeat(node="node0", generation=1, number=5, state="running"))
    generation = Generation(number=1, nodes=("node0",), ranks_of={"node0": (0,)})
    figures = RecentFigures()

    def storages() -> tuple[StorageStatus, ...]:
        (view,) = figures.snapshot(generation, [node], ParallelLayout(), 1.0).nodes
        assert view.heartbeat is not None
        return view.heartbeat.storages

    figures.take("save failed", {"tier": "/saves", "cause": "rank 2: OSError: [Errno 28] No space left on device"})
    figures.take("save failed", {"tier": "memory", "cause": "rank 2: late"})
    assert [(found.url, found.failure[-9:]) for found in storages()] == [("/saves", "on device")]
    assert figures.unsaved() == "storage full: storage /saves: rank 2: OSError: [Errno 28] No space left on device"
    figures.take("saved", {"tier": "/saves", "blocked_ns": 10**6, "elapsed_s": 2.0})
    assert storages() == (StorageStatus(url="/saves", write_s=2.0),)
    assert figures.unsaved() == ""

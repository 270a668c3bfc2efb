"""Garbage collection during training: at our moments, and as before afterwards."""

import gc
from typing import cast

from fabrictune.trainer_probe.spans.garbage import collected_together, watched_collections
from fabrictune.trainer_probe.training.hooks import Run

RUN = cast("Run", None)


def test_automatic_collection_is_off_and_on_again() -> None:
    assert gc.isenabled()
    num_frozen = gc.get_freeze_count()
    with collected_together(10) as hook:
        assert not gc.isenabled()
        assert hook.before_step is not None
        hook.before_step(RUN, 3)
        assert gc.get_freeze_count() > num_frozen
    assert gc.isenabled()


def test_python_is_left_alone_where_it_collects_itself() -> None:
    with collected_together(0) as hook:
        assert gc.isenabled()
        assert hook.before_step is None


def test_collections_are_seen_while_the_block_runs() -> None:
    seen: list[tuple[int, int]] = []
    with watched_collections(lambda began_ns, ended_ns: seen.append((began_ns, ended_ns))):
        gc.collect()
    gc.collect()
    assert seen
    assert all(began_ns <= ended_ns for began_ns, ended_ns in seen)
    num_seen = len(seen)
    gc.collect()
    assert len(seen) == num_seen

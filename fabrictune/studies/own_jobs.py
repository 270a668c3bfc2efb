"""Evidence of a job of our own, from the pages of its ranks on this machine, live or left behind.

The pages are looked at twice or more. A rank whose page changed between the last two looks goes on, and waits for
nobody; of the others the page says for which request they wait. /proc says which of their processes are stopped, gone,
or at work. Ranks of other machines are counted as not read.
"""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.foundation.traces import Operation
from fabrictune.observability.hangs.evidence import Evidence, Group, Progress, Request, Sign, SignKind, Who
from fabrictune.trainer_probe.operation.journal import FILE_NAME, open_journal
from fabrictune.trainer_probe.operation.node_folders import memory_of
from fabrictune.trainer_probe.operation.observations import message_ranks
from fabrictune.trainer_probe.operation.pages import PageReading, read_page
from fabrictune.trainer_probe.operation.process_table import GONE, read_process
from fabrictune.trainer_probe.operation.run_folder import RunFolder
from fabrictune.trainer_probe.operation.run_pages import LAYOUT, run_pages

SOURCE = "pages"
LOOK_S = 2.0  # between two looks
MAX_PAIRS = 3  # of looks
ENDED = ("done", "failed")  # sections of ranks that wait for nothing
STOPPED = ("T", "t")
LOADER = "loader"  # as pages call it


@dataclass(frozen=True, kw_only=True)
class OwnJob:
    """Where the pages of a job's ranks are."""

    layout: ParallelLayout
    pages: Mapping[int, Path]  # by rank, of this machine


def find_own_job(run: Path) -> OwnJob | None:
    """Return the job of `train operate --run DIR` or `train run --out DIR`, None where DIR is of neither."""
    if (run / FILE_NAME).is_file():
        return _operated(run)
    folder = run_pages(spans_beside(run))
    if not (folder / LAYOUT).is_file():
        return None
    layout = _layout(json.loads((folder / LAYOUT).read_text()), folder)
    return OwnJob(layout=layout, pages=_present({rank: folder / f"{rank}" for rank in range(layout.world_size)}))


def read_own_job(job: OwnJob, *, look_s: float = LOOK_S) -> Evidence:
    """Return what the pages say after two looks; raises InputError where none can be read."""
    first, now, moving = _settled(job, look_s)
    if not now:
        found, next_step = "no page of a rank on this machine", "run it where the ranks run, while the job is there"
        raise InputError(Mistake(where=SOURCE, found=found, next_step=next_step))
    groups = dict(enumerate(job.layout.axis_groups()))
    labels = [axis for axis in job.layout.axes for _ in job.layout.groups(axis).tolist()]
    used = {group for page, _ in now.values() for group in page.issued}
    num_ranks = job.layout.world_size
    members = {group: groups[group] if group >= 0 else message_ranks(group, num_ranks) for group in used}
    num_unread = num_ranks - len(now)
    return Evidence(
        source=SOURCE,
        groups=(
            Group(name="job", size=num_ranks, members={rank: Who(rank=rank) for rank in range(num_ranks)}, is_job=True),
            *(
                Group(
                    name=_name(group, num_ranks),
                    label=labels[group] if group >= 0 else "message",
                    size=len(ranks),
                    members={place: Who(rank=rank) for place, rank in enumerate(ranks)},
                )
                for group, ranks in members.items()
            ),
        ),
        progress=tuple(
            row for rank, (page, _) in now.items() for row in _progress(rank, page, rank in moving, num_ranks, job)
        ),
        signs=tuple(sign for rank in now for sign in _signs(rank, first.get(rank), now[rank], job.pages[rank])),
        knows_waits=True,
        tells_all=not num_unread,
        num_files=len(now),
        notes=(f"ranks whose pages are not on this machine, not read: {num_unread:,}",) if num_unread else (),
    )


def _operated(run: Path) -> OwnJob:
    """Return an operated job's newest generation; raises InputError where its journal has none."""
    with closing(open_journal(str(run), is_read_only=True)) as journal:
        events = list(journal.read())
    started = [event.values for event in events if event.kind == "job started"]
    generations = [event.values for event in events if event.kind == "generation started"]
    if not started or not generations:
        raise InputError(Mistake(where=str(run), found="a job whose ranks have not been started"))
    layout = _layout(started[0]["settings"]["recipe"].get("degrees", {}).get("layout", {}), run)
    name, last = RunFolder(path=run).job(), generations[-1]
    found = {}
    for node in last["nodes"]:
        for rank in range(layout.world_size):
            path = memory_of(name, node) / "pages" / f"{last['generation']}-{rank}"
            if path.is_file():
                found[rank] = path
    return OwnJob(layout=layout, pages=found)


def _layout(values: Mapping[str, Any], where: Path) -> ParallelLayout:
    try:
        return ParallelLayout(**{**values, **({"order": tuple(values["order"])} if "order" in values else {})})
    except (TypeError, KeyError) as error:
        raise InputError(Mistake(where=str(where), found=f"no layout of a job ({error})")) from None


def _present(pages: Mapping[int, Path]) -> Mapping[int, Path]:
    return {rank: path for rank, path in pages.items() if path.is_file()}


Look = tuple[PageReading, tuple[str, float]]  # a page, and its process's state and processor time


def _look(job: OwnJob) -> Mapping[int, Look]:
    """Return the pages that can be read now, with their processes."""
    found = {}
    for rank, path in job.pages.items():
        try:
            page = read_page(path)
        except FabrictuneError:
            continue
        process = read_process(page.pid)
        found[rank] = page, (process.state, process.cpu_s)
    return found


def _settled(job: OwnJob, look_s: float) -> tuple[Mapping[int, Look], Mapping[int, Look], set[int]]:
    """Return two looks and the ranks whose pages changed between them.

    Ranks go on for a moment after one that they need has stopped: where some pages change and some do not, the last
    look counts as the first of another two, at most MAX_PAIRS times.
    """
    now = _look(job)
    for _ in range(MAX_PAIRS):
        first = now
        time.sleep(look_s)
        now = _look(job)
        moving = {rank for rank in now if rank not in first or first[rank][0].num_changes != now[rank][0].num_changes}
        if not moving or len(moving) == len(now):
            break
    return first, now, moving


def _name(group: int, num_ranks: int) -> str:
    if group >= 0:
        return str(group)
    sender, receiver = message_ranks(group, num_ranks)
    return f"{sender} to {receiver}"


def _progress(rank: int, page: PageReading, moves: bool, num_ranks: int, job: OwnJob) -> Iterator[Progress]:
    waits_for = None if moves or page.section in ENDED else page.waits_for
    for group, issued in page.issued.items():
        operation, num_bytes = page.last.get(group, (0, 0))
        number = issued - 1
        is_waited = waits_for is not None and waits_for[0] == group
        tag = page.tag if is_waited else ""
        yield Progress(
            who=Who(rank=rank, host=socket.gethostname(), pid=page.pid),
            group=_name(group, num_ranks),
            where=f"{job.pages[rank]}, step {page.step}",
            issued=number,
            completed=page.completed.get(group, 0) - 1,
            waits_for=waits_for[1] if waits_for is not None and is_waited else None,
            requests=(
                {number: Request(kind=Operation(operation).name.lower(), size=num_bytes, tag=tag)}
                if not moves and group >= 0 and number >= page.completed.get(group, 0)
                else {}
            ),
        )


def _signs(rank: int, before: Look | None, now: Look, path: Path) -> Iterator[Sign]:
    """Yield what /proc and the page say of a rank's process."""
    page, (state, cpu_s) = now
    who = Who(rank=rank, host=socket.gethostname(), pid=page.pid)
    if page.error:
        yield Sign(who=who, kind=SignKind.FAILED, text=page.error, where=str(path))
    if state == GONE:
        if page.section != "done":
            text = f"its process has ended in section {page.section} of step {page.step}"
            yield Sign(who=who, kind=SignKind.GONE, text=text, where=f"/proc/{page.pid}")
    elif state in STOPPED and (before is None or before[1][0] in STOPPED):
        yield Sign(who=who, kind=SignKind.STOPPED, text="stopped by a signal", where=f"/proc/{page.pid}/stat")
    elif before is not None and page.num_changes == before[0].num_changes and page.tag == LOADER:
        text = f"waits for its loader in step {page.step}"
        yield Sign(who=who, kind=SignKind.LOADING, text=text, where=str(path))
    elif before is not None and page.num_changes == before[0].num_changes and cpu_s > before[1][1]:
        text = "uses its processor, and its page does not change: slow, or in a loop"
        yield Sign(who=who, kind=SignKind.BUSY, text=text, where=f"/proc/{page.pid}/stat")

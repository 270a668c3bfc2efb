"""All evidence of a job that paths lead to: pages and spans of our own, collections of hosts, files of other tools."""

from collections.abc import Sequence
from pathlib import Path

from fabrictune.foundation.errors import InputError
from fabrictune.observability.hangs.evidence import Evidence
from fabrictune.observability.hangs.reading import Found, read_evidence
from fabrictune.studies.collected_listings import is_collection, read_collected_listings
from fabrictune.studies.own_jobs import find_own_job, read_own_job
from fabrictune.studies.own_spans import find_own_spans, read_own_spans


def collect_evidence(paths: Sequence[Path]) -> Found:
    """Return what is at the paths; raises InputError where one has no evidence of a job."""
    parts: list[Found] = []
    foreign: list[Path] = []
    for path in paths:
        if is_collection(path):
            parts.append(read_collected_listings(path))
        elif own := _read_own(path):
            parts.append(Found(evidence=own, log=None, num_files=sum(one.num_files for one in own), notes=()))
        else:
            foreign.append(path)
    if foreign or not parts:
        parts.append(read_evidence(foreign))
    return Found(
        evidence=tuple(one for part in parts for one in part.evidence),
        log=next((part.log for part in parts if part.log is not None), None),
        queue_pairs=tuple(one for part in parts for one in part.queue_pairs),
        num_files=sum(part.num_files for part in parts),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _read_own(run: Path) -> tuple[Evidence, ...]:
    """Return what the ranks of a job of ours left; raises InputError where they left pages that cannot be read."""
    job, spans = find_own_job(run), find_own_spans(run)
    found: list[Evidence] = []
    if spans is not None:
        found.append(read_own_spans(spans))
    if job is not None:
        try:
            found.insert(0, read_own_job(job))
        except InputError:
            if not found:
                raise
    return tuple(found)

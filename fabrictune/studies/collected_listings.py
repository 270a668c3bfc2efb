"""Listings of queue pairs that `fleet collect` has read on all hosts: evidence of a job that hangs."""

from pathlib import Path

from fabrictune.fleet.collect.collection import LIST, read_collection
from fabrictune.foundation.documents import parse_json
from fabrictune.foundation.errors import InputError
from fabrictune.observability.hangs.evidence import Evidence
from fabrictune.observability.hangs.readers.listings import listing_evidence
from fabrictune.observability.hangs.reading import Found
from fabrictune.rdma_bench.resources import ListedQueuePair, parse_listing

LISTING = "resource show qp"  # in the command


def is_collection(path: Path) -> bool:
    """Return whether a folder is a collection of hosts."""
    return (path / LIST).is_file()


def read_collected_listings(folder: Path) -> Found:
    """Return the queue pairs of all hosts of a collection; raises InputError."""
    collection = read_collection(folder)
    evidence: list[Evidence] = []
    listed: list[ListedQueuePair] = []
    without, damaged = [], []
    for reading in collection.readings:
        section = next((one for one in reading.sections if one.kind == "command" and LISTING in one.name), None)
        if section is None or section.status or not section.text.strip():
            without.append(reading.name)
            continue
        try:
            document = parse_json(section.text, Path(f"{reading.name}: {section.name}"))
            queue_pairs = parse_listing(document, reading.name)
        except InputError as error:
            damaged.append(str(error.mistakes[0]))
            continue
        listed += queue_pairs
        evidence.append(listing_evidence(queue_pairs))
    notes = [
        f"{folder}: {what}: {len(names):,} ({'; '.join(names[:3])})"
        for what, names in (("nodes without a listing of queue pairs", without), ("listings not read", damaged))
        if names
    ]
    notes += [f"{folder}: nodes that did not answer: {len(collection.missing):,}"] if collection.missing else []
    return Found(
        evidence=tuple(evidence), log=None, queue_pairs=tuple(listed), num_files=len(evidence), notes=tuple(notes)
    )

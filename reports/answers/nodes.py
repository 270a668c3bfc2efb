"""Answers about nodes and clusters: what is wrong with which, and what was proposed or left unread."""

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.wording import some
from fabrictune.reports.answers.answer import Answer, Settings, nanoseconds
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

NODES = select("fleet_nodes", "node", "state")
CHANGES = select("fleet_changes", "node", "kind", "change")
STAGES = select("cluster_stages", "stage", "state")
MEASUREMENTS = select("cluster_measurements", "subject", "verdict")
DIAGNOSED = select("diagnosed_nodes", "host", "test", "fault", "skipped")
GROUPS = select("diagnosed_groups", "test", "ranks", "fault")
HUNG = select("hang_processes", "rank", "host", "is_blamed", "waits")
HUNG_PORTS = select("hang_ports", "link", "num_hung")
HEALTHY = select("hang_healthy", "gain_low_ns", "gain_expected_ns", "gain_high_ns")
PROBED = select("probed_flows", "target_ipv4", "source_port", "path", "ending")
TEST = "test"
MAX_PLACES = 12  # whose lines are shown
PLACES = {"nic": "To apply on", "switch": "To apply on switch", "env": "To apply for the job"}


def audit_answer(run: Run) -> Answer | None:
    """Return how many nodes were read, and the changes proposed, which nobody has applied."""
    nodes, changes = run.rows(NODES), run.rows(CHANGES)
    if nodes is None:
        return None
    unread = np.flatnonzero(nodes["state"] != "collected")
    named = f": {some(str(nodes['node'][row]) for row in unread.tolist())}" if len(unread) else ""
    count = 0 if changes is None else len(changes["change"])
    return Answer(
        sentence=f"{len(nodes['node']) - len(unread):,} of {plural(len(nodes['node']), 'node')} read{named and ', not'}"
        f"{named}. {plural(count, 'change')} proposed, none applied.",
        settings=() if changes is None else _settings(changes),
    )


def cluster_answer(run: Run) -> Answer | None:
    """Return how many stages are done, and what was measured below its limit."""
    stages, measured = run.rows(STAGES), run.rows(MEASUREMENTS)
    if stages is None:
        return None
    states, done = stages["state"].tolist(), int((stages["state"] == "done").sum())
    rest = [f"{name} {state}" for name, state in zip(stages["stage"].tolist(), states, strict=True) if state != "done"]
    sentence = f"{done} of {plural(len(states), 'stage')} done{f': not {some(rest)}' if rest else ''}."
    if measured is not None:
        is_bad = np.isin(measured["verdict"].astype(str), ("bad", "failed"))
        names = some(dict.fromkeys(measured["subject"][is_bad].tolist()))
        sentence += f" {int(is_bad.sum()):,} of {plural(len(is_bad), 'measurement')} below the limit or failed"
        sentence += f": {names}." if is_bad.any() else "."
    return Answer(sentence=sentence)


def diagnosed_answer(run: Run) -> Answer | None:
    """Return which hosts and groups of ranks failed a test."""
    nodes, groups = run.rows(DIAGNOSED), run.rows(GROUPS)
    if nodes is None:
        return None
    is_wrong, hosts = nodes["fault"] != "", len(set(nodes["host"].tolist()))
    wrong = dict.fromkeys(nodes["host"][is_wrong].tolist())
    sentence = f"{len(wrong):,} of {plural(hosts, 'host')} failed a test{f': {some(wrong)}' if wrong else ''}."
    if groups is not None:
        failed = groups["ranks"][groups["fault"] != ""].tolist()
        sentence += f" {len(failed):,} of {plural(len(groups['ranks']), 'group')} failed"
        sentence += f": ranks {some(failed)}." if failed else "."
    skipped = int((nodes["skipped"] != "").sum())
    return Answer(sentence=f"{sentence}{f' {plural(skipped, TEST)} skipped.' if skipped else ''}")


def hang_answer(run: Run) -> Answer | None:
    """Return which process or port the others wait for, and what a step gains once it is healthy."""
    processes, ports, healthy = run.rows(HUNG), run.rows(HUNG_PORTS), run.rows(HEALTHY)
    if processes is None:
        return None
    blamed, waiting = np.flatnonzero(processes["is_blamed"]), int(processes["waits"].sum())
    of = (
        plural(len(processes["rank"]), "process")
        if len(processes["rank"]) == 1
        else f"{len(processes['rank']):,} processes"
    )
    if not len(blamed):
        where = f" Most suspect port: {ports['link'][0]}." if ports is not None else ""
        return Answer(sentence=f"No process of {of} is found to hold up the others; {waiting:,} wait.{where}")
    names = some(f"rank {processes['rank'][row]} on {processes['host'][row]}" for row in blamed.tolist())
    gain = ""
    if healthy is not None and healthy["gain_expected_ns"][0] >= 0:
        low, expected, high = (
            nanoseconds(max(int(healthy[f"gain_{end}_ns"][0]), 0)) for end in ("low", "expected", "high")
        )
        gain = f" Once healthy, a step is shorter by {expected} (90 % interval {low} to {high})."
    return Answer(sentence=f"Held up by {names}; {waiting:,} of {of} wait.{gain}")


def probe_answer(run: Run) -> Answer | None:
    """Return how many paths lead to the targets, and how they end."""
    flows = run.rows(PROBED)
    if flows is None:
        return None
    targets = len(set(flows["target_ipv4"].tolist()))
    paths = len(set(zip(flows["target_ipv4"].tolist(), flows["path"].tolist(), strict=True)))
    endings = flows["ending"].tolist()
    counts = [f"{ending} {endings.count(ending):,}" for ending in dict.fromkeys(endings)]
    return Answer(
        sentence=f"{plural(len(endings), 'source port')} took {plural(paths, 'path')} to {plural(targets, 'target')}; "
        f"endings: {some(counts)}."
    )


def _settings(changes: Columns) -> tuple[Settings, ...]:
    """Return the proposed lines by place."""
    by_place: dict[str, list[str]] = {}
    for node, kind, change in zip(*(changes[name].tolist() for name in ("node", "kind", "change")), strict=True):
        by_place.setdefault(f"{PLACES.get(kind, 'To apply on')} {node}".strip(), []).append(change)
    shown = list(by_place.items())[:MAX_PLACES]
    rest = (
        []
        if len(by_place) <= MAX_PLACES
        else [f"# {plural(len(by_place) - MAX_PLACES, 'more node')} in table fleet_changes"]
    )
    return tuple(Settings.of(place, (*lines, *(rest if place == shown[-1][0] else ()))) for place, lines in shown)

"""Who is who among a run's processes: the driver, executors by node, ranks, loaders by node, the store."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.processes import Found, marked

LOADER = "fabrictune.trainer_probe.data.service"


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The live processes of a job at one moment."""

    driver: Found | None
    executors: Mapping[str, Found]  # by node
    ranks: Mapping[int, Found]
    loaders: Mapping[str, Found]  # by node
    store: Found | None
    node_of: Mapping[int, str]  # by pid


def crew(mark: str) -> Crew:
    """Return who is alive: ranks and the store by the names that they give themselves, others by what they execute."""
    found = {process.pid: process for process in marked(mark)}
    executors = {_option(p, "--node"): p for p in found.values() if p.is_command("train", "executor")}
    nodes = {executor.pid: node for node, executor in executors.items()}
    node_of = {pid: node for pid in found if (node := _node_of(pid, found, nodes))}
    return Crew(
        driver=next((p for p in found.values() if p.is_command("train", "operate") and _is_python(p)), None),
        executors=executors,
        ranks={int(p.name[5:]): p for p in found.values() if p.name.startswith("rank ")},
        loaders={node_of.get(p.pid, "?"): p for p in found.values() if p.is_command("-m", LOADER)},
        store=next((p for p in found.values() if p.name == "store"), None),
        node_of=node_of,
    )


def _node_of(pid: int, found: Mapping[int, Found], nodes: Mapping[int, str]) -> str | None:
    """Return the node whose executor is a process's ancestor, or the process."""
    at = found.get(pid)
    while at is not None and at.pid not in nodes:
        at = found.get(at.parent)
    return None if at is None else nodes[at.pid]


def _is_python(process: Found) -> bool:
    return "python" in process.words[0].rpartition("/")[2]


def _option(process: Found, name: str) -> str:
    words = process.words
    return words[words.index(name) + 1] if name in words else "?"

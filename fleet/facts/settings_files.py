"""Facts of a host's own files and of the environments of its jobs: NCCL's settings, modules, limits.

A process's environment goes before /etc/nccl.conf. Where processes of one node disagree, the value is all of theirs,
separated by ` | `.

Source: NCCL user guide, "Environment Variables"; proc(5).
"""

import re
from collections.abc import Iterator

from fabrictune.fleet.collect.node_reading import NodeReading
from fabrictune.fleet.facts.fact import Fact

_SETTING = re.compile(r"\s*([A-Z][A-Z0-9_]{2,80})\s*=\s*(.*?)\s*")
_LOCKED = re.compile(r"Max locked memory\s+(\S+)\s.*")
_MODULES = {"nvidia_peermem": "host.peermem", "nv_peer_mem": "host.peermem"}


def settings_facts(reading: NodeReading) -> Iterator[Fact]:
    """Yield the facts of settings."""
    environment: dict[str, tuple[dict[str, None], str]] = {}
    for section in sorted(reading.sections, key=lambda one: one.kind == "environment"):
        if section.name == "/etc/nccl.conf" or section.kind == "environment":
            is_fresh = set[str]()
            for number, line in enumerate(section.lines):
                if match := _SETTING.fullmatch(line.partition("#")[0]):
                    if match[1] not in is_fresh:
                        environment[match[1]] = {}, reading.where(section, number)
                        is_fresh.add(match[1])
                    environment[match[1]][0][match[2]] = None
        elif section.name == "/proc/modules":
            loaded = {line.split()[0] for line in section.lines if line.strip()}
            value = "loaded" if loaded & set(_MODULES) else "not loaded"
            yield Fact(node=reading.name, device="", name="host.peermem", value=value, where=reading.where(section))
        elif section.name == "/proc/self/limits":
            for number, line in enumerate(section.lines):
                if match := _LOCKED.fullmatch(line):
                    where = reading.where(section, number)
                    yield Fact(node=reading.name, device="", name="host.locked_memory", value=match[1], where=where)
    for name, (values, where) in environment.items():
        yield Fact(node=reading.name, device="", name=f"job.env.{name}", value=" | ".join(values), where=where)

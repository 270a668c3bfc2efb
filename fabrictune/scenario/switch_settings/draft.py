"""A drafted scenario of an imported fabric with the settings of its switches, each with its place as a comment."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fabrictune.foundation.documents import MAX_DIGITS
from fabrictune.scenario.switch_settings.keys import Marking, SwitchKeys
from fabrictune.scenario.switch_settings.settings import yaml_lines

LAW = "dcqcn_firmware"  # the one that NICs have built in
MESSAGE = "10 MB"
_HEAD = "# Drafted from the switches' own configuration; traffic and law are yours to say."


def fragment(keys: SwitchKeys) -> Iterator[str]:
    """Yield the keys of a scenario that switches decide, as YAML."""
    if keys.routing:
        yield from yaml_lines({"routing": keys.routing})
    yield from yaml_lines({"engine": keys.engine})


def scenario_text(keys: SwitchKeys, *, name: str, fabric: Path, files: Sequence[Path], marking: Marking) -> str:
    """Return a scenario of the fabric in a file, which lies beside the scenario's own."""
    switches = [f"  files: [{', '.join(_quoted(path) for path in files)}]"]
    switches += [] if marking.dscp is None else [f"  dscp: {marking.dscp}"]
    switches += [f"  cnp_dscp: {marking.cnp_dscp}"]
    lines = (
        _HEAD,
        f"name: {_scenario_name(name)}",
        f"fabric: {{file: {_quoted(fabric)}}}",
        "switches:  # against which `sim sweep` prints what changes",
        *switches,
        f"traffic: {{workload: permutation, message: {MESSAGE}, priority: {keys.priority.text}}}"
        f"  # {keys.priority.source}",
        f"law: {{name: {LAW}}}",
        *fragment(keys),
    )
    return "\n".join((*lines, ""))


def _quoted(path: Path) -> str:
    """Return a path as a YAML text, whatever characters it has."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in text) + '"'


def _scenario_name(name: str) -> str:
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in name)
    return f"{kept.strip('-_')[:MAX_DIGITS] or 'fabric'}-qos"

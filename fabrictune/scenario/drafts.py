"""Drafts of new scenarios: a fabric, a workload and a law by name, with every other setting as a comment.

A draft is text that runs as it is: `draft_text` builds its fabric to choose a layout, and checks what it wrote. Each
setting has its meaning beside it; those that are left at their defaults are comments, to be changed where they stand.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, require_one_of
from fabrictune.foundation.settings.keys import KeyLine, list_keys, sections
from fabrictune.scenario.compilation import assemble
from fabrictune.scenario.composition import Composed, compose
from fabrictune.scenario.fabrics import make_fabric
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.fabric import Fabric

SUGGESTED: Mapping[str, Mapping[str, Any]] = {  # by section: values of required keys, and of those that matter most
    "fabric.clos": {
        "num_hosts": 16,
        "hosts_per_tor_set": 8,
        "nics_per_host": 8,
        "tiers": 2,
        "nic_rate": "400 Gbps",
        "uplink_rate": "400 Gbps",
        "downlink_split": 1,
    },
    "fabric.fat_tree": {"radix": 8},
    "traffic.all_reduce": {"message": "64 MB"},
    "traffic.all_to_all": {"message": "64 KB"},
    "traffic.incast": {"senders": 8, "message": "1 MB"},
    "traffic.permutation": {"message": "1 MB"},
    "traffic.poisson": {"load": 0.5, "duration": "100 us"},
    "traffic.storage": {"servers": 2, "message": "1 MB"},
}
WORKLOADS = tuple(section.partition(".")[2] for section in SUGGESTED if section.startswith("traffic."))
SECTIONS = sections(Scenario, "scenario")
BUILDERS = tuple(name.partition(".")[2] for name in SECTIONS if name.startswith("fabric.") and name != "fabric.file")
LAYOUT = "traffic.layout"  # follows from the fabric
HEAD = """# {file}: drafted by `fabrictune init`. Lines that begin with # are settings at their defaults.
#
#   fabrictune scenario check {file}    # reads it and builds what it names
#   fabrictune ecmp analyze {file}      # the links on which flows collide, without a simulation
#   fabrictune sim run {file}           # packet by packet
#
# `fabrictune scenario keys SECTION` lists the keys of a section, `fabrictune law show {law}` the parameters
# of the law.
"""
TAIL = """
# expect:                     # a bound that is broken is a finding, and gives exit code 1
#   - {metric: makespan, at_most: 10 ms}
# Also: routing (the switches' hash), engine (MTU, ECN, PFC, timers), faults, probe, capture, whatif.
"""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A setting of a draft that its user may want to decide."""

    key: str  # "fabric.num_hosts"
    meaning: str
    suggested: Any


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a draft is made of."""

    file: str  # the scenario's own name, for its commands
    fabric: str  # a builder, or a topology file
    traffic: str
    law: str
    settings: Mapping[str, Any]  # by key: "fabric.num_hosts"

    @property
    def is_built(self) -> bool:
        """Whether the fabric is a builder's."""
        return self.fabric in BUILDERS

    @property
    def fabric_section(self) -> str:
        """The section of its fabric's keys."""
        return f"fabric.{self.fabric if self.is_built else 'file'}"


def questions(choices: Choices) -> list[Question]:
    """Return the settings that a user of these choices decides first; raises InputError for what is not known."""
    _check(choices)
    asked = []
    for section in (choices.fabric_section, f"traffic.{choices.traffic}"):
        meanings = {line.key: line.meaning for line in _lines(section)}
        for key, value in SUGGESTED.get(section, {}).items():
            name = f"{section.partition('.')[0]}.{key}"
            asked.append(Question(key=name, meaning=meanings[key], suggested=choices.settings.get(name, value)))
    return asked


def draft(choices: Choices, folder: Path) -> tuple[str, Composed]:
    """Return a scenario's text, for a file in `folder`, and what it composes; raises InputError."""
    suggested = {question.key: question.suggested for question in questions(choices)}
    choices = replace(choices, settings={**suggested, **choices.settings})
    if LAYOUT not in choices.settings and any(line.key == "layout" for line in _lines(f"traffic.{choices.traffic}")):
        fabric = _fabric(choices, folder)
        choices = replace(choices, settings={**choices.settings, LAYOUT: _layout(fabric)})
    text = _text(choices)
    return text, assemble(compose(parse_scenario(text, folder / choices.file)), law=None)


def _check(choices: Choices) -> None:
    if not choices.is_built and not re.search(r"[./]", choices.fabric):
        allowed = f"{', '.join(BUILDERS)}, or a topology file"
        raise InputError(
            Mistake(
                where="--fabric",
                found=f"no builder {choices.fabric!r}",
                allowed=allowed,
                nearest=nearest_name(choices.fabric, BUILDERS),
            )
        )
    require_one_of(choices.traffic, WORKLOADS, where="--traffic", what="workload", error=InputError)
    known = {
        f"{section.partition('.')[0]}.{line.key}"
        for section in (choices.fabric_section, f"traffic.{choices.traffic}")
        for line in _lines(section)
    }
    for key in choices.settings:
        if key not in known:
            nearest = nearest_name(key, known)
            allowed = f"keys of {choices.fabric_section} as fabric.KEY, and of traffic.{choices.traffic} as traffic.KEY"
            step = "" if nearest else "write other keys into the file that init makes"
            raise InputError(
                Mistake(where="--set", found=f"no key {key!r}", allowed=allowed, nearest=nearest, next_step=step)
            )


def _fabric(choices: Choices, folder: Path) -> Fabric:
    """Return the fabric, by a scenario with traffic that needs no layout."""
    settings = {key: value for key, value in choices.settings.items() if key.startswith("fabric.")}
    alone = replace(choices, traffic="permutation", settings={**settings, "traffic.message": "1 MB"})
    return make_fabric(parse_scenario(_text(alone), folder / choices.file).fabric)


def _layout(fabric: Fabric) -> Mapping[str, int]:
    """Return tensor parallelism within hosts and data parallelism between them, over all hosts with NICs."""
    nics = Counter(fabric.nic_host_C.tolist())
    return {"tp": min(nics.values(), default=1), "dp": len(nics)}


def _text(choices: Choices) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(choices.file).stem).strip("-._") or "scenario"
    head = HEAD.format(file=choices.file, law=choices.law)
    question = f"How long does {choices.traffic} take on this fabric, and which links are in its way?"
    fabric = {"builder": choices.fabric} if choices.is_built else {"file": choices.fabric}
    return "\n".join(
        (
            head,
            *_rows([("name", name, ""), ("question", question, ""), ("seed", "0", "of all random draws")]),
            "",
            "fabric:",
            *_section(choices, choices.fabric_section, fabric),
            "",
            "traffic:",
            *_section(choices, f"traffic.{choices.traffic}", {"workload": choices.traffic}),
            "",
            f"law: {choices.law}",
            TAIL,
        )
    )


def _section(choices: Choices, section: str, head: Mapping[str, str]) -> list[str]:
    """Return the lines of a section: what is set, then every other key with its default as a comment."""
    prefix = f"{section.partition('.')[0]}."
    own = {key.removeprefix(prefix): value for key, value in choices.settings.items() if key.startswith(prefix)}
    lines = [line for line in _lines(section) if line.key not in head]
    known = [(line.key, own[line.key], line.meaning) for line in lines if line.key in own]
    others = [
        (f"# {line.key}", line.default, line.meaning)
        for line in lines
        if line.key not in own and "." not in line.key and line.default != "required"
    ]
    chosen = [(key, _yaml(value), meaning) for key, value, meaning in _nested(known)]
    return _rows([*((key, _yaml(value), "") for key, value in head.items()), *chosen, *others], indent="  ")


def _nested(entries: Sequence[tuple[str, Any, str]]) -> Iterator[tuple[str, Any, str]]:
    """Yield entries with those of one nested mapping, `layout.tp` and `layout.dp`, as one."""
    inner: dict[str, dict[str, Any]] = {}
    for key, value, _ in entries:
        outer, dot, name = key.partition(".")
        if dot:
            inner.setdefault(outer, {})[name] = value
    for key, value, meaning in entries:
        if "." not in key:
            yield key, {**value, **inner.pop(key, {})} if isinstance(value, Mapping) else value, meaning
    for outer, values in inner.items():
        yield outer, values, ""


def _rows(entries: Sequence[tuple[str, str, str]], indent: str = "") -> list[str]:
    """Return lines of keys and values, their comments below one another."""
    lines = [f"{indent}{key}: {value}".rstrip() for key, value, _ in entries]
    width = max((len(line) for line, (*_, meaning) in zip(lines, entries, strict=True) if meaning), default=0)
    return [
        f"{line:{width}}  # {meaning}" if meaning else line for line, (*_, meaning) in zip(lines, entries, strict=True)
    ]


def _yaml(value: Any) -> str:
    """Return a value on one line of YAML."""
    plain = dict(value) if isinstance(value, Mapping) else value
    text: str = yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _lines(section: str) -> list[KeyLine]:
    return list_keys(SECTIONS, section)

"""Damaged text never ends in a traceback: every reader of facts, and readings whole, over many mutations."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.fleet.collect.node_reading import CONFIG_DB, NodeReading, Section, encode_reading, parse_reading
from fabrictune.fleet.facts.commands import READERS
from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.foundation.errors import InputError
from tests.fleet.site import clean_site

SEED = 7
PIECES = ("", "\x00", "9" * 30, "-1", "NaN", "[[[", "{}", "null", "é", "\t", ":", "=", "|", "/", "1e999", "true", '"')


def mutated(text: str, draw: random.Random) -> str:
    """Return a text with one to three places changed, cut, repeated or moved."""
    for _ in range(draw.randint(1, 3)):
        first, last = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        match draw.randrange(5):
            case 0:
                text = text[:first] + draw.choice(PIECES) + text[first:]
            case 1:
                text = text[:first] + text[min(last, first + 40) :]
            case 2:
                text = text[:first] + draw.choice(PIECES) + text[first + 1 :]
            case 3:
                text = text[:first] + text[first:last][:200] * 2 + text[last:]
            case 4:
                text = text[:first]
    return text


def damaged(reading: NodeReading, draw: random.Random, only: str = "") -> NodeReading:
    """Return a reading one of whose sections is damaged."""
    rows = [row for row, section in enumerate(reading.sections) if not only or section.name.startswith(only)]
    row = draw.choice(rows)
    section = reading.sections[row]
    lines = tuple(mutated(section.text, draw).split("\n"))
    sections = (*reading.sections[:row], replace(section, lines=lines), *reading.sections[row + 1 :])
    return replace(reading, sections=sections)


def try_readers(number: int) -> None:
    """Damage the output of each command that has a reader so often, and the configuration of a switch."""
    draw = random.Random(SEED)
    readings = clean_site().readings()
    host, leaf, spine = readings[0], readings[4], readings[6]
    prefixes = [prefix for prefix, _ in READERS if any(one.name.startswith(prefix) for one in host.sections)]
    for prefix in (*prefixes, "/sys", "/proc", "/etc"):
        alone = replace(host, sections=tuple(one for one in host.sections if one.name.startswith(prefix)))
        for _ in range(number):
            fleet_facts([damaged(alone, draw, prefix)])
    for _ in range(number // 10):
        fleet_facts([damaged(leaf, draw, CONFIG_DB), spine])


def test_no_reader_ends_in_a_traceback() -> None:
    """A hundred mutations of each here, ten thousand in the sweep."""
    try_readers(100)


@pytest.mark.sweep
def test_no_reader_ends_in_a_traceback_over_ten_thousand() -> None:
    """As above."""
    try_readers(10_000)


def test_a_damaged_reading_is_a_reading_or_a_mistake() -> None:
    """A thousand mutations of the file of a node."""
    draw = random.Random(SEED)
    text = encode_reading(clean_site().readings()[0]).decode()
    for _ in range(300):
        try:
            fleet_facts([parse_reading(mutated(text, draw).encode(), Path("node"))])
        except InputError:
            continue


def test_outputs_of_other_forms_are_left_out() -> None:
    """JSON of other shapes where a tool's object is expected, and text where JSON is."""
    for value in (
        None,
        [],
        {},
        3,
        "x",
        [[1]],
        {"prio-pfc": 3},
        {"dscp-prio": [[1, "x"], 2]},
        {"lldp": 3},
        {"lldp": [3]},
    ):
        lines = (json.dumps(value),)
        names = ("dcb -j pfc show dev e", "dcb -j app show dev e", "lldpctl -f json0", "vtysh -c show bgp summary json")
        sections = tuple(Section(kind="command", name=name, lines=lines) for name in names)
        reading = NodeReading(name="n", how="sh", sections=sections)
        assert fleet_facts([reading]).links == ()

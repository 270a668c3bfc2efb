"""Damaged inventories, host keys and LLDP tables never end in a traceback."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.fleet.facts.links import LLDP
from fabrictune.fleet.hosts.inventory import read_hosts
from fabrictune.fleet.hosts.ssh_config import read_ssh_settings
from fabrictune.fleet.transport.known_hosts import KnownHosts
from fabrictune.foundation.errors import InputError
from tests.fleet.facts.test_mutations import SEED, mutated
from tests.fleet.site import clean_site

GOLDEN = Path(__file__).parents[2] / "golden" / "fleet" / "inventories"
INVENTORIES = sorted(GOLDEN.iterdir())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB0TlMRbBbkRMLQqmRrKVFGZ8rZWpYvZb0y8pZ6vJQ2a"
KNOWN = f"gpu1,10.0.0.1 {KEY}\n[gpu2]:2222 {KEY}\n|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= {KEY}\n"


def try_inventories(folder: Path, number: int) -> None:
    """Damage each inventory so often."""
    draw = random.Random(SEED)
    for golden in INVENTORIES:
        text, place = golden.read_text(), folder / golden.name
        for _ in range(number):
            place.write_text(mutated(text, draw), errors="surrogateescape")
            expect_input_errors(partial(read_hosts, [str(place)]))


def try_keys_and_settings(folder: Path, number: int) -> None:
    """Damage a known_hosts file and an ssh_config so often."""
    draw, config = random.Random(SEED), folder / "config"
    text = next(path for path in INVENTORIES if "ssh" in path.name).read_text()
    for _ in range(number):
        known = KnownHosts(mutated(KNOWN, draw))
        for name in ("gpu1", "[gpu2]:2222", "gpu3"):
            list(known.keys_of(name))
        config.write_text(mutated(text, draw), errors="surrogateescape")
        expect_input_errors(partial(read_ssh_settings, config))


def try_lldp(number: int) -> None:
    """Damage what a host hears so often."""
    draw = random.Random(SEED)
    host, leaf = clean_site().readings()[0], clean_site().readings()[4]
    section = next(one for one in host.sections if one.name == LLDP)
    for _ in range(number):
        damaged = replace(section, lines=tuple(mutated(section.text, draw).split("\n")))
        fleet_facts([replace(host, sections=(damaged,)), leaf])


def expect_input_errors(read: Callable[[], object]) -> None:
    """Let a reader succeed, or say what is wrong."""
    with suppress(InputError):
        read()


def test_none_ends_in_a_traceback(tmp_path: Path) -> None:
    """Forty of each here, ten thousand in the sweep."""
    try_inventories(tmp_path, 40)
    try_keys_and_settings(tmp_path, 40)
    try_lldp(40)


@pytest.mark.sweep
def test_none_ends_in_a_traceback_over_ten_thousand(tmp_path: Path) -> None:
    """As above."""
    try_inventories(tmp_path, 10_000)
    try_keys_and_settings(tmp_path, 10_000)
    try_lldp(10_000)

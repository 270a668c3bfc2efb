"""Options that override rates, cables and delays of imported links: `--rate 400G`, `--cable 0-1=3m`."""

import functools
import re
from collections.abc import Callable
from typing import Any

import click

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import parse_duration_ps, parse_length_mm, parse_link_rate_bps

_TIERS = re.compile(r"\s*(\d)\s*-\s*(\d)\s*")
_PARSERS: dict[str, tuple[str, Callable[..., int]]] = {
    "rate": ("rate_bps", parse_link_rate_bps),
    "cable": ("cable_mm", parse_length_mm),
    "delay": ("delay_ps", parse_duration_ps),
}


def override_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, repeatable; the command gets them as the list `overrides`, those of all links first."""

    @functools.wraps(command)
    def with_overrides(*args: Any, **values: Any) -> Any:
        texts = [(name, text) for name in _PARSERS for text in values.pop(name)]
        return command(*args, overrides=_overrides(texts), **values)

    rows = (
        (
            "rate",
            "[TIERS=]RATE",
            "Rate of all links, or of those between two tiers (0-1=200G), in place of the files'.",
        ),
        ("cable", "[TIERS=]LENGTH", "Length of the cables, in place of the files'."),
        ("delay", "[TIERS=]DURATION", "Delay of the links, in place of the files' cables."),
    )
    for name, metavar, meaning in reversed(rows):
        with_overrides = click.option(f"--{name}", name, multiple=True, metavar=metavar, help=meaning)(with_overrides)
    return with_overrides


def _overrides(texts: list[tuple[str, str]]) -> list[Any]:
    """Return an override for each text, those without tiers first; raises InputError."""
    from fabrictune.topology.link_overrides import LinkOverride

    overrides = []
    for name, text in texts:
        tiers_text, is_by_tier, value = text.rpartition("=")
        tiers = _TIERS.fullmatch(tiers_text)
        where = f"--{name}"
        if is_by_tier and not tiers:
            allowed = "two tiers and a value, 0 for hosts: 0-1=200G"
            raise InputError(Mistake(where=where, found=repr(text[:60]), allowed=allowed))
        key, parse = _PARSERS[name]
        between = (int(tiers[1]), int(tiers[2])) if tiers else ()
        overrides.append(LinkOverride(tiers=between, **{key: parse(value, where=where)}))
    return sorted(overrides, key=lambda override: bool(override.tiers))

"""Sources of a profile's values, and the uncertainty that each kind of source implies.

A source is text that starts with its kind: `data sheet: NVIDIA A100, 2021`. It stands at a key, `gpu.peak`, or at a
section, `gpu.gemm`, for all keys below it. Values with one and the same source are uncertain together. The
uncertainty of a value is relative, half of a 90 % interval; a profile may set that of a key, and else the kind of its
source implies it:

| kind         | value                                                          | uncertainty |
|--------------|----------------------------------------------------------------|-------------|
| `data sheet` | the maker's nominal figure                                     | 0 %         |
| `measured`   | a published measurement on this hardware                       | 5 %         |
| `fitted`     | found by fitting a model to measurements, which the text names | 5 %         |
| `derived`    | calculated from other figures                                  | 10 %        |
| `assumed`    | no figure of this hardware is public; the text says what it is | 25 %        |
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fabrictune.foundation.errors import Mistake, nearest_name
from fabrictune.foundation.settings.quantities import key_of

UNCERTAINTY_BY_KIND: Mapping[str, float] = {
    "data sheet": 0.0,
    "measured": 0.05,
    "fitted": 0.05,
    "derived": 0.10,
    "assumed": 0.25,
}


def kind_of(source: str) -> str:
    """Return the kind that a source starts with, "" for a text without one."""
    kind, colon, _ = source.partition(":")
    return kind if colon and kind in UNCERTAINTY_BY_KIND else ""


def covering_key(key: str, known: Iterable[str]) -> str | None:
    """Return the longest of the known keys that is `key` or a section of it."""
    return max((other for other in known if key == other or key.startswith(f"{other}.")), key=len, default=None)


def values_by_key(spec: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield dotted key, name of the field, and value of every setting of a spec, except names and what is not set."""
    for field in fields(spec):
        value, key = getattr(spec, field.name), prefix + key_of(field.name)
        if is_dataclass(value):
            yield from values_by_key(value, f"{key}.")
        elif value is not None and not isinstance(value, str) and not _is_names(value):
            yield key, field.name, value


def _is_names(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(entry, str) for entry in value)


def sections_and_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys and every section that leads to one."""
    found: dict[str, None] = {}
    for key in keys:
        parts = key.split(".")
        found.update(dict.fromkeys(".".join(parts[: depth + 1]) for depth in range(len(parts))))
    return list(found)


def mistakes_in_sources(keys: Iterable[str], sources: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield sources of no kind or for no key, and keys without a source."""
    keys = list(keys)
    known = sections_and_keys(keys)
    for key, text in sources.items():
        yield from _unknown_key("sources", key, known)
        if not kind_of(text):
            allowed = f"a kind, a colon and a text; kinds: {', '.join(UNCERTAINTY_BY_KIND)}"
            yield Mistake(where="sources", found=f"{key} has {text[:60]!r}", allowed=allowed)
    for key in keys:
        if covering_key(key, sources) is None:
            next_step = f"add its source, or one of its section: `{key}: 'measured: by whom, where'`"
            yield Mistake(where="sources", found=f"no source for {key}", next_step=next_step)


def mistakes_in_uncertainties(keys: Iterable[str], uncertainties: Mapping[str, float]) -> Iterator[Mistake]:
    """Yield uncertainties of what is no key."""
    known = sections_and_keys(keys)
    for key in uncertainties:
        yield from _unknown_key("uncertainties", key, known)


def _unknown_key(section: str, key: str, known: list[str]) -> Iterator[Mistake]:
    if key not in known:
        yield Mistake(
            where=section,
            found=f"{key!r} is no key that is set",
            nearest=nearest_name(key, known),
            allowed="keys and sections of this profile: gpu.peak, gpu.gemm, network",
        )

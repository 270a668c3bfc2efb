"""Scenario keys derived from spec dataclasses."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.binding import Choice, Chosen, bind
from fabrictune.foundation.settings.quantities import format_setting, key_of


@dataclass(frozen=True, kw_only=True)
class Marking:
    kmin_bytes: int = 100
    kmax_bytes: int = 200

    def __post_init__(self) -> None:
        if self.kmin_bytes > self.kmax_bytes:
            raise InputError(Mistake(where="marking.kmin", found="above kmax"))


@dataclass(frozen=True, kw_only=True)
class Imported:
    file: Path


@dataclass(frozen=True, kw_only=True)
class Port:
    link_rate_bps: int
    delay_ns: int = 0
    flight_ps: int | None = None
    cable_mm: int = 0
    gain_bps: float = 0.0
    mark_fraction: float = 0.0
    window_packets: int = 1
    label: str = ""
    is_up: bool = True
    mode: Literal["fast", "slow"] = "fast"
    order: tuple[Literal["tp", "dp"], ...] = ()
    sizes_bytes: tuple[int, ...] = ()
    marking: Marking = field(default_factory=Marking)
    several: tuple[Marking, ...] = ()
    fabric: Annotated[
        Chosen | None, Choice("builder", {"red": Marking, "file": Imported}, lambda text: {"file": text})
    ] = None


def port(**values: object) -> Port:
    return bind(Port, {"link_rate": "1 bps", **values}, folder=Path("/lab"))


def mistakes(**values: object) -> list[tuple[tuple[int | str, ...], str]]:
    with pytest.raises(ValidationError) as raised:
        port(**values)
    return [(error["loc"], error["type"]) for error in raised.value.errors()]


@pytest.mark.parametrize(
    ("key", "written", "field_name", "value"),
    [
        ("link_rate", "400 Gbps", "link_rate_bps", 400_000_000_000),
        ("delay", "5 us", "delay_ns", 5_000),
        ("flight", "5 us", "flight_ps", 5_000_000),
        ("flight", None, "flight_ps", None),
        ("cable", "40 m", "cable_mm", 40_000),
        ("gain", "40 Mbps", "gain_bps", 40e6),
        ("mark", "20 %", "mark_fraction", 0.2),
        ("mark", 0.25, "mark_fraction", 0.25),
        ("window", 16, "window_packets", 16),
        ("order", ["dp", "tp"], "order", ("dp", "tp")),
        ("sizes", ["1 KB", "1 KiB"], "sizes_bytes", (1000, 1024)),
        ("marking", {"kmin": "7 B"}, "marking", Marking(kmin_bytes=7)),
        ("several", [{"kmin": "7 B"}, {}], "several", (Marking(kmin_bytes=7), Marking())),
        ("fabric", {"builder": "red", "kmax": "1 KB"}, "fabric", Chosen(name="red", spec=Marking(kmax_bytes=1000))),
        ("fabric", {"file": "a.yml"}, "fabric", Chosen(name="file", spec=Imported(file=Path("/lab/a.yml")))),
        ("fabric", "a.yml", "fabric", Chosen(name="file", spec=Imported(file=Path("/lab/a.yml")))),
    ],
)
def test_the_unit_of_a_field_is_the_unit_of_its_value(
    key: str, written: object, field_name: str, value: object
) -> None:
    """The suffix leaves the key and enters the text: `delay_ns` is `delay: 5 us`, 5,000 ns."""
    assert getattr(port(**{key: written}), field_name) == value


@pytest.mark.parametrize(
    ("values", "place", "kind"),
    [
        ({"link_rate_bps": 1}, ("link_rate_bps",), "unknown_key"),
        ({"delay": "5 Gbps"}, ("delay",), "mistake"),
        ({"delay": "1 ps"}, ("delay",), "mistake"),
        ({"delay": True}, ("delay",), "quantity_type"),
        ({"delay": ["5 us"]}, ("delay",), "quantity_type"),
        ({"window": "16"}, ("window",), "int_type"),
        ({"window": True}, ("window",), "int_type"),
        ({"is_up": 1}, ("is_up",), "bool_type"),
        ({"label": 5}, ("label",), "string_type"),
        ({"mode": "medium"}, ("mode",), "literal_error"),
        ({"order": "tp"}, ("order",), "list"),
        ({"order": ["tp", "xp"]}, ("order", 1), "literal_error"),
        ({"sizes": ["1 KB", "1"]}, ("sizes", 1), "mistake"),
        ({"marking": 5}, ("marking",), "model_type"),
        ({"marking": {"kmin": "300 B"}}, ("marking", "kmin"), "mistake"),
        ({"several": [{}, {"kmim": "1 B"}]}, ("several", 1, "kmim"), "unknown_key"),
        ({"fabric": {}}, ("fabric",), "no_choice"),
        ({"fabric": 5}, ("fabric",), "mapping"),
        ({"fabric": {"builder": "blue"}}, ("fabric", "builder"), "unknown_choice"),
        ({"fabric": {"builder": ["red"]}}, ("fabric", "builder"), "unknown_choice"),
        ({"fabric": {"file": 5}}, ("fabric", "file"), "path"),
        ({"fabric": {"file": "a\0b"}}, ("fabric", "file"), "path"),
    ],
)
def test_a_mistake_names_its_key(values: dict[str, Any], place: tuple[int | str, ...], kind: str) -> None:
    """Whatever is wrong is reported at the key where it stands, inside nested mappings and lists as well."""
    assert mistakes(**values) == [(place, kind)]


def test_every_mistake_is_reported_at_once() -> None:
    """Four keys are wrong on two levels, so four mistakes are reported."""
    found = mistakes(delay="5", window=1.5, marking={"kmin": "1 Gbps"}, unknown=1)
    assert {place for place, _ in found} == {("delay",), ("window",), ("marking", "kmin"), ("unknown",)}


def test_what_is_missing_is_named() -> None:
    """`link_rate_bps` has no default, so its key must stand in the file."""
    with pytest.raises(ValidationError) as raised:
        bind(Port, {}, folder=Path())
    assert [(error["loc"], error["type"]) for error in raised.value.errors()] == [(("link_rate",), "missing")]


def test_a_law_parameter_is_shown_as_a_file_writes_it() -> None:
    """55,000,000 ps are 55 us; a number without unit stays one."""
    assert format_setting("rate_timer_ps", 55_000_000) == "55 us"
    assert format_setting("alpha_gain", 1 / 256) == "0.00390625"
    assert key_of("rate_timer_ps") == "rate_timer"

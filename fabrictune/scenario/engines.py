"""Adaptation of a scenario to its engine: without settings it ignores, and with its adapter's timers."""

from dataclasses import MISSING, Field, replace
from typing import Any

from fabrictune.foundation.settings.binding import settings_of
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.netsim.engines import ENGINES, Engine
from fabrictune.scenario.adapters import profile_of
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario


def engine_of(scenario: Scenario) -> Engine:
    """Return the engine that the scenario chooses."""
    return ENGINES[scenario.engine.name]


def without_ignored(scenario: Scenario) -> Scenario:
    """Return the scenario without the settings that its engine ignores; `notes` has each that was set."""
    engine = engine_of(scenario)
    ignores = engine.ignores
    defaults = {field.name: _default(field) for field, _ in settings_of(Scenario) if key_of(field.name) in ignores}
    notes = tuple(
        f"{scenario.where(key_of(name))} has no effect in the engine {scenario.engine.name!r}"
        + (f": {engine.reasons[key_of(name)]}" if key_of(name) in engine.reasons else "")
        for name, default in defaults.items()
        if getattr(scenario, name) != default
    )
    return replace(scenario, **defaults, notes=(*scenario.notes, *notes))


def engine_config(scenario: Scenario) -> Any:
    """Return the engine's settings with the adapter's timers, unless it ignores adapters; raises InputError."""
    config = scenario.engine.spec
    if "adapter" in engine_of(scenario).ignores:
        return config
    with placed(scenario, "engine", config):
        return config.with_timers(profile_of(scenario.adapter).timers)


def _default(field: Field[Any]) -> Any:
    assert field.default is not MISSING or field.default_factory is not MISSING, f"{field.name} cannot be ignored"
    return field.default if field.default_factory is MISSING else field.default_factory()

"""Places of mistakes: from the setting that a room names to file, line and key path of the scenario.

A room knows its own settings, not the scenario around them: it says `kmin`, `ecn.kmin` or `faults.2.link`. Mistakes in
another file name that file, and keep their place.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fabrictune.foundation.documents import Key
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.binding import keys_named, settings_of
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.scenario.schema import Scenario

TOP_KEYS = frozenset(key_of(field.name) for field, _ in settings_of(Scenario))


@contextmanager
def placed(scenario: Scenario, key: str = "", spec: object = None) -> Iterator[None]:
    """Give mistakes about the scenario's settings their place in its file.

    With `key` they are about `spec`, the settings under that key; without it they name keys from the scenario's top.
    """
    try:
        yield
    except InputError as error:
        raise type(error)(*(_placed(scenario, mistake, key, spec) for mistake in error.mistakes)) from error


def _placed(scenario: Scenario, mistake: Mistake, key: str, spec: object) -> Mistake:
    keys = _keys_below(mistake, key, spec) if key else _keys_from_top(mistake)
    return replace(mistake, where=scenario.where(*keys)) if keys else mistake


def _keys_below(mistake: Mistake, key: str, spec: object) -> tuple[Key, ...]:
    """Return the keys to what a mistake names of the settings under `key`, () for what is elsewhere."""
    keys = tuple(int(part) if part.isdecimal() else part for part in keys_named(type(spec), mistake))
    return (key, *keys) if keys or mistake.where in ("", key) else ()


def _keys_from_top(mistake: Mistake) -> tuple[Key, ...]:
    """Return the keys of a path such as `faults.2.link`, () for what is no path from the scenario's top."""
    parts = mistake.where.split(".")
    is_path = parts[0] in TOP_KEYS and all(part.isidentifier() or part.isdecimal() for part in parts)
    return tuple(int(part) if part.isdecimal() else part for part in parts) if is_path else ()

"""Bundled scenarios, which come with the package: their names and questions, and copies of them.

A scenario that reads other files (`file:` keys) would not run from another folder; none of these does.
"""

from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.output_files import write_new_file
from fabrictune.scenario.files import load_scenario

FOLDER = Path(__file__).parents[1] / "scenarios"


@dataclass(frozen=True, kw_only=True)
class BundledScenario:
    """A scenario of the package."""

    name: str
    question: str


def bundled_names() -> tuple[str, ...]:
    """Return the names of all bundled scenarios."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def bundled_scenarios() -> tuple[BundledScenario, ...]:
    """Return all bundled scenarios by name."""
    loaded = ((name, load_scenario(bundled_path(name))) for name in bundled_names())
    return tuple(BundledScenario(name=name, question=scenario.question) for name, scenario in loaded)


def bundled_path(name: str) -> Path:
    """Return the file of a bundled scenario; raises InputError."""
    names = bundled_names()
    if name not in names:
        raise InputError(
            Mistake(
                where="scenario",
                found=f"no bundled scenario {quote(name)}",
                nearest=nearest_name(name, names),
                next_step="fabrictune scenario list",
            )
        )
    return FOLDER / f"{name}.yaml"


def copy_bundled(name: str, out: Path) -> None:
    """Copy a bundled scenario to a file that is not there yet; raises InputError."""
    write_new_file(out, bundled_path(name).read_bytes())

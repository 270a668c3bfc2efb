"""The options that commands share, each defined once."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabrictune.cli.framework.findings_files import findings_file_option
from fabrictune.cli.framework.rules import rules_option
from fabrictune.foundation.units import parse_bytes, parse_duration_ps, parse_rate_bps

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile

INTERRUPTED = 130  # exit code after Ctrl-C
COULD_NOT_COLLECT = 3  # and where something is missing, or this machine lacks it
COMPLETION = "_FABRICTUNE_COMPLETE"  # in the environment while a shell asks for completions
ALL_FINDINGS = "fabrictune.all_findings"  # in the context's meta: whether --all-findings was given
TRUST_CODE = "fabrictune.trust_code"  # and --trust-code
MAX_SEEDS = 100_000
FAIL_ON = ("info", "warning", "error", "critical", "never")

Command = TypeVar("Command", bound=Callable[..., Any])

_scenario_argument = click.argument("scenario", metavar="SCENARIO", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value to stdout and nothing else.")
quiet_option = click.option("--quiet", is_flag=True, help="Print only findings and paths of results, no progress bar.")
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Output directory of the record.  [default: runs/NAME]",
)
_fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="error",
    show_default=True,
    help="Lowest severity of a finding that sets exit code 1.",
)
all_findings_option = click.option(
    "--all-findings",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, is_given: context.meta.__setitem__(ALL_FINDINGS, is_given),
    help="Print every finding with its evidence, not the first of each rule.",
)
trust_code_option = click.option(
    "--trust-code",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, is_given: context.meta.__setitem__(TRUST_CODE, is_given),
    help="Run the Python files that are named as extensions; their code runs with your permissions.",
)
seeds_option = click.option(
    "--seeds",
    type=click.IntRange(2, MAX_SEEDS),
    default=100,
    show_default=True,
    help="Number of hash seeds to evaluate.",
)


settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Key of the scenario and its value, several separated by `;`; repeatable.",
)


def scenario_argument(command: Command) -> Command:
    """Add the argument SCENARIO, and `--trust-code` for the Python files that it names."""
    return _scenario_argument(trust_code_option(command))


def is_code_trusted() -> bool:
    """Return whether the running command was given `--trust-code`."""
    return bool(click.get_current_context().meta.get(TRUST_CODE))


def fail_on_option(command: Command) -> Command:
    """Add the options of a command that makes findings: `--fail-on`, `--rules`, `--all-findings`, `--findings-file`."""
    return _fail_on_option(rules_option(all_findings_option(findings_file_option(command))))


def time_limit_option(default_s: float, meaning: str) -> Callable[[Command], Command]:
    """Return the option `--timeout` of a command that limits its own duration, in seconds."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=1),
        default=default_s,
        show_default=True,
        help=meaning,
    )


def hardware_option(*aliases: str, default: str | None = "a100") -> Callable[[Command], Command]:
    """Return the option `--hardware` of a command that takes a hardware profile; `aliases` are other names of it.

    Without a default the command's argument may be None.
    """
    return click.option(
        "--hardware",
        *aliases,
        "hardware",
        metavar="NAME|FILE",
        default=default,
        show_default=default is not None,
        callback=_read_hardware,
        help="Hardware profile; `fabrictune hardware list` has the names.",
    )


def _read_hardware(context: click.Context, option: click.Parameter, text: str | None) -> "HardwareProfile | None":
    if text is None:
        return None
    from fabrictune.hardware.files import find_profile

    return find_profile(text, where=f"{context.command_path}: {option.opts[0]}")


def read_bytes(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return the bytes of an option's text, None where it was not given; raises UnitError."""
    return None if text is None else parse_bytes(text, where=f"{context.command_path}: {option.opts[0]}")


def read_rate(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return a rate in bits a second; the callback of an option."""
    return None if text is None else parse_rate_bps(text, where=f"{context.command_path}: {option.opts[0]}")


def read_durations(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return the picoseconds of each text of an option that may be repeated; raises UnitError."""
    return tuple(parse_duration_ps(text, where=f"{context.command_path}: {option.opts[0]}") for text in texts)


def read_duration(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return the picoseconds of an option's text, None where it was not given; raises UnitError."""
    return None if text is None else parse_duration_ps(text, where=f"{context.command_path}: {option.opts[0]}")

"""Error output of commands: one message, as text on stderr or as JSON on stdout."""

import dataclasses
import json
import sys

import click

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake, UnavailableError, nearest_name
from fabrictune.foundation.visible_text import printable


def describe_failure(error: Exception) -> FabrictuneError | None:
    """Return `error` as a mistake of the user's or the machine's, or None if it can only be one of ours."""
    match error:
        case FabrictuneError():
            return error
        case click.UsageError():
            return InputError(_usage_mistake(error))
        case OSError():
            return InputError(Mistake(where=str(error.filename or ""), found=error.strerror or str(error)))
        case MemoryError():
            found, next_step = "this machine has not enough memory", "ask for a smaller fabric or run"
            return UnavailableError(Mistake(where="", found=found, next_step=next_step))
        case ImportError() if "_engine" in str(error):
            found, next_step = "the compiled engine is missing, or built for another Python", "fabrictune doctor"
            return UnavailableError(Mistake(where="netsim", found=found, next_step=next_step))
    return None


def print_failure(error: FabrictuneError, *, as_json: bool) -> None:
    """Print the mistakes of an error."""
    if as_json:
        mistakes = [dataclasses.asdict(mistake) for mistake in error.mistakes]
        content = {"kind": type(error).__name__, "exit_code": error.exit_code, "mistakes": mistakes}
        print(json.dumps({"error": content}, indent=2))
        return
    print(printable(str(error)), file=sys.stderr)


def _usage_mistake(error: click.UsageError) -> Mistake:
    where = error.ctx.command_path if error.ctx else "fabrictune"
    next_step = f"{where} --help"
    match error:
        case click.NoSuchOption():
            names = [name for one in error.ctx.command.params for name in one.opts] if error.ctx else []
            found = f"unknown option {error.option_name!r}"
            nearest = nearest_name(error.option_name, names)
            return Mistake(where=where, found=found, allowed=", ".join(names), nearest=nearest, next_step=next_step)
        case click.MissingParameter() if error.param:
            is_option = isinstance(error.param, click.Option)
            found = f"{error.param.opts[0] if is_option else error.param.human_readable_name} is missing"
            return Mistake(where=where, found=found, next_step=next_step)
        case click.BadParameter() if error.param:
            place = f"{where}: {error.param.opts[0]}"
            choices = error.param.type.choices if isinstance(error.param.type, click.Choice) else ()
            found, _, _ = error.message.rstrip(".").partition(" is not one of ")
            nearest = nearest_name(found.strip("'"), choices)
            allowed = ", ".join(choices)
            return Mistake(where=place, found=found, allowed=allowed, nearest=nearest, next_step=next_step)
    message = error.format_message().rstrip(".")
    return Mistake(where=where, found=message[:1].lower() + message[1:], next_step=next_step)

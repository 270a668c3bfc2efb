"""`fabrictune train status`: an operated job, from its journal."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.train.operate import describe

if TYPE_CHECKING:
    from fabrictune.trainer_probe.operation.events import Event

NUM_LAST = 12  # events that are shown, steps and saves apart
FOLLOW_S = 0.5  # between two looks at the journal


@click.command()
@click.argument("journal", metavar="DIR")
@click.option("--follow", is_flag=True, help="Go on with new events until the job ends or Ctrl-C.")
@json_option
def status(journal: str, follow: bool, as_json: bool) -> int:
    """Show how far the job in DIR has come, and what has happened to it.

    DIR is the folder of `train operate --run`, or the journal's URL. The driver need not run.

    \b
    Example:
      fabrictune train status job
      fabrictune train status job --follow
    """
    from contextlib import closing

    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.trainer_probe.operation.journal import open_journal

    if "://" not in journal and not Path(journal).exists():
        raise InputError(Mistake(where=journal, found="no such folder", next_step="give the --run of train operate"))
    with closing(open_journal(journal, is_read_only=True)) as opened:
        events = list(opened.read())
        if as_json:
            print_json(_summary(events))
            return 0
        print_lines(_lines(events))
        while follow and not (events and events[-1].kind == "job ended"):
            time.sleep(FOLLOW_S)
            for event in opened.read(events[-1].number if events else 0):
                events.append(event)
                print_lines([describe(event)])
    return 0


def _summary(events: "list[Event]") -> dict[str, Any]:
    """Return the state of a job as JSON values."""
    steps = [event.values for event in events if event.kind == "step"]
    saves = [event.values["step"] for event in events if event.kind == "saved"]
    faults = [{"elapsed_s": event.elapsed_s, **event.values} for event in events if event.kind == "fault detected"]
    starts = [event.values for event in events if event.kind == "generation started"]
    ended = [event.values for event in events if event.kind == "job ended"]
    is_over = bool(ended) and events[-1].kind == "job ended"
    return {
        "outcome": ended[-1]["outcome"] if is_over else "running",
        "cause": ended[-1]["cause"] if is_over else "",
        "elapsed_s": events[-1].elapsed_s if events else 0.0,
        "generation": starts[-1]["generation"] if starts else 0,
        "nodes": starts[-1]["nodes"] if starts else [],
        "next_step": steps[-1]["step"] + 1 if steps else None,
        "loss": steps[-1]["loss"] if steps else None,
        "last_saved_step": saves[-1] if saves else None,
        "num_events": len(events),
        "faults": faults,
    }


def _lines(events: "list[Event]") -> list[str]:
    summary = _summary(events)
    head = [
        f"{summary['outcome']} after {summary['elapsed_s']:.1f} s"
        + (f": {summary['cause']}" if summary["cause"] else ""),
        f"generation {summary['generation']} on {', '.join(summary['nodes']) or 'no node'}; "
        f"next step {summary['next_step']}, last checkpoint {summary['last_saved_step']}; "
        f"{len(summary['faults'])} faults",
    ]
    last = [event for event in events if event.kind not in ("step", "saved")][-NUM_LAST:]
    return [*head, *map(describe, last)]

"""`fabrictune validate testbed train`: a training on a testbed with its twin: each step predicted beside measured."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.train.recipes import read_recipe, recipe_argument, set_option
from fabrictune.cli.validate.testbed.sources import name_option

if TYPE_CHECKING:
    from fabrictune.topology.fabric import Fabric
    from fabrictune.validate.step_twin import ComparedStep, StepTwin
    from fabrictune.validate.testbed_training import StepEvent, TestbedTraining

LEAST_SHARE = 0.02  # of the busiest link's bytes, for links that are shown


@click.command()
@recipe_argument
@set_option
@name_option
@out_option
@fail_on_option
@quiet_option
@json_option
def train(
    recipe_name: str,
    settings: tuple[str, ...],
    name: str,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train RECIPE on a testbed that is up, a rank a host over its first NIC, each step beside its prediction.

    Needs torch. After two steps of warm-up, six calibrate what a step takes beside its network. Then each step's time
    is predicted, and an alarm is raised where the median of five steps is above the predicted interval. Links that are
    busy longer than their planned bytes take are named. Every link's bytes are beside those that the requests plan on
    the kernel's own paths, headers counted. `train stragglers` and `trace timeline` read the spans of its record.

    \b
    Example:
      sudo fabrictune validate testbed up --hosts 8 --rate "40 Mbps"
      sudo fabrictune validate testbed train tiny --set num_steps=30
    """
    from fabrictune.foundation.checks import join_reports
    from fabrictune.foundation.span_writer import spans_beside
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.testbed.links import check_totals, link_use
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.trainer_probe.recipes.files import find_recipe
    from fabrictune.validate.step_twin import StepTwin
    from fabrictune.validate.testbed_training import train_on
    from fabrictune.validate.twin_findings import check_twin, step_lines
    from fabrictune.validate.twin_record import twin_record

    started, recipe, made = time.perf_counter(), read_recipe(recipe_name, settings), find_testbed(name)
    place = output_folder(out or Path("runs") / f"{recipe.name}-testbed")
    twin = StepTwin(made.fabric, rules=site_rules())

    def on_step(event: "StepEvent") -> None:
        twin.compare(event)
        if not (quiet or as_json):
            print_lines(step_lines(twin))

    trained = train_on(
        made,
        recipe,
        find_recipe(recipe_name),
        dict(map(parse_setting, settings)),
        on_step=on_step,
        spans=spans_beside(place),
    )
    report = join_reports(check_twin(twin), check_totals(link_use(made.fabric, trained.readings)))
    record = with_command(twin_record(recipe, twin, report, place=f"testbed {name}", started=started))
    rows = _rows(trained, made.fabric)
    return print_record(
        record,
        record.write(place),
        lambda: _values(twin, trained, rows),
        lambda: _print(trained, rows),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _values(twin: "StepTwin", trained: "TestbedTraining", rows: list[dict[str, Any]]) -> dict[str, Any]:
    from fabrictune.validate.twin_findings import alarm_rule

    calibration = twin.calibration
    return {
        "step_s": trained.step_s,
        "network_s": twin.network_s(trained.plan),
        "calibration": None if calibration is None else vars(calibration),
        "alarm_rule": alarm_rule(twin),
        "steps": [_step_values(compared, twin.fabric) for compared in twin.steps if twin.fabric],
        "links": rows,
    }


def _step_values(compared: "ComparedStep", fabric: "Fabric") -> dict[str, Any]:
    event = compared.event
    return {
        "step": event.step,
        "seconds": event.seconds,
        "state": compared.state.value,
        "predicted_s": compared.predicted_s if compared.is_predicted else None,
        "half_width_s": compared.half_width_s if compared.is_predicted else None,
        "is_alarm": compared.is_alarm,
        "waited_s": event.waited_s,
        "links": _link_values(event, fabric),
        "busy_links": [fabric.link_label(link.port) for link in compared.links],
    }


def _link_values(event: "StepEvent", fabric: "Fabric") -> list[dict[str, Any]]:
    if event.plan is None or event.use is None:
        return []
    planned_P = event.plan.wire_bytes_P
    return [
        {
            "link": fabric.link_label(port),
            "sent_bytes": round(float(event.use.sent_bytes_P[port])),
            "planned_bytes": round(float(planned_P[port])),
            "busy_s": float(event.use.busy_s_P[port]),
        }
        for port in range(fabric.num_ports)
        if planned_P[port] > LEAST_SHARE * planned_P.max()
    ]


def _rows(trained: "TestbedTraining", fabric: "Fabric") -> list[dict[str, Any]]:
    planned_P, sent_P = trained.planned_bytes_P, trained.sent_bytes_P
    return [
        {
            "link": fabric.link_label(port),
            "sent_bytes": int(sent_P[port]),
            "planned_bytes": round(float(planned_P[port])),
        }
        for port in range(fabric.num_ports)
        if sent_P[port] > LEAST_SHARE * sent_P.max()
    ]


def _print(trained: "TestbedTraining", rows: list[dict[str, Any]]) -> None:
    from statistics import median

    from fabrictune.foundation.units import format_bytes
    from fabrictune.validate.twin_record import NOTE

    cells = [
        (
            row["link"],
            format_bytes(row["sent_bytes"]),
            format_bytes(row["planned_bytes"]),
            f"{row['sent_bytes'] / row['planned_bytes'] - 1:+.1%}" if row["planned_bytes"] else "not planned",
        )
        for row in rows
    ]
    print_table(("link", "sent", "planned", "difference"), cells)
    print_lines([f"median step {median(trained.step_s):.3f} s", f"note: {NOTE}"])

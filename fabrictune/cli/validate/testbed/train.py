"""`fabrictune validate testbed train`: a training on a testbed with its twin: each step predicted beside measured."""

import math
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
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
@fail_on_option
@quiet_option
@json_option
def train(recipe_name: str, settings: tuple[str, ...], name: str, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Train RECIPE on a testbed that is up, a rank a host over its first NIC, each step beside its prediction.

    Needs torch. After two steps of warm-up, six calibrate what a step takes beside its network. Then each step's time
    is predicted, and an alarm is raised where the median of five steps is above the predicted interval. Links that are
    busy longer than their planned bytes take are named. Every link's bytes are beside those that the requests plan on
    the kernel's own paths, headers counted.

    \b
    Example:
      sudo fabrictune validate testbed up --hosts 8 --rate "40 Mbps"
      sudo fabrictune validate testbed train tiny --set num_steps=30
    """
    from fabrictune.foundation.checks import join_reports
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.testbed.links import check_totals, link_use
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.trainer_probe.recipes.files import find_recipe
    from fabrictune.validate.step_twin import StepTwin
    from fabrictune.validate.testbed_training import train_on
    from fabrictune.validate.twin_findings import check_twin

    recipe, made = read_recipe(recipe_name, settings), find_testbed(name)
    twin = StepTwin(made.fabric, rules=site_rules())

    def on_step(event: "StepEvent") -> None:
        compared = twin.compare(event)
        if not (quiet or as_json):
            _print_step(twin, compared)

    trained = train_on(made, recipe, find_recipe(recipe_name), dict(map(parse_setting, settings)), on_step=on_step)
    report = join_reports(check_twin(twin), check_totals(link_use(made.fabric, trained.readings)))
    if as_json:
        print_json({**_as_json(twin, trained), **judged_json(report)})
    else:
        _print(trained, _rows(trained, made.fabric))
        print_findings(report)
    return conclude(fail_on, report)


def _print_step(twin: "StepTwin", compared: "ComparedStep") -> None:
    from fabrictune.foundation.units import format_fraction
    from fabrictune.validate.twin_findings import alarm_rule, link_evidence, show_s

    line = f"step {compared.event.step}: {show_s(compared.event.seconds)}, {compared.state.value}"
    if compared.is_predicted:
        line += f", predicted {show_s(compared.predicted_s)} within {show_s(compared.half_width_s)}"
    if math.isfinite(compared.sent_fraction):
        line += f"; bytes {format_fraction(compared.sent_fraction)} of planned"
    print_lines([line])
    before = twin.steps[-2:-1]
    was_alarm = any(step.is_alarm for step in before)
    if compared.is_alarm != was_alarm:
        print_lines([f"alarm: {alarm_rule(twin)}" if compared.is_alarm else "the alarm has ended"])
    known = {link.port for step in before for link in step.links}
    print_lines(f"alarm: {link_evidence(twin.fabric, link)}" for link in compared.links if link.port not in known)


def _as_json(twin: "StepTwin", trained: "TestbedTraining") -> dict[str, Any]:
    from fabrictune.validate.twin_findings import alarm_rule

    calibration = twin.calibration
    return {
        "step_s": trained.step_s,
        "network_s": twin.network_s(trained.plan),
        "calibration": None if calibration is None else vars(calibration),
        "alarm_rule": alarm_rule(twin),
        "steps": [_step_json(compared, twin.fabric) for compared in twin.steps],
        "links": _rows(trained, twin.fabric),
    }


def _step_json(compared: "ComparedStep", fabric: "Fabric") -> dict[str, Any]:
    event, plan = compared.event, compared.event.plan
    links = []
    if plan is not None:
        planned_P = plan.wire_bytes_P
        links = [
            {
                "link": fabric.link_label(port),
                "sent_bytes": round(float(event.use.sent_bytes_P[port])),
                "planned_bytes": round(float(planned_P[port])),
                "busy_s": float(event.use.busy_s_P[port]),
            }
            for port in range(fabric.num_ports)
            if planned_P[port] > LEAST_SHARE * planned_P.max()
        ]
    return {
        "step": event.step,
        "seconds": event.seconds,
        "state": compared.state.value,
        "predicted_s": compared.predicted_s if compared.is_predicted else None,
        "half_width_s": compared.half_width_s if compared.is_predicted else None,
        "is_alarm": compared.is_alarm,
        "waited_s": event.waited_s,
        "links": links,
        "busy_links": [fabric.link_label(link.port) for link in compared.links],
    }


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
    print_lines(
        [
            f"median step {median(trained.step_s):.3f} s",
            "note: connections made and closed, retransmissions and gloo's own headers are not planned",
        ]
    )

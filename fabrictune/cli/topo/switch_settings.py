"""`fabrictune topo import --with-qos`: the settings of a fabric's switches as the keys of a scenario."""

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.topo.fabrics import describe_fabric, print_fabric

if TYPE_CHECKING:
    from fabrictune.scenario.switch_settings import Marking, SwitchKeys
    from fabrictune.topology.fabric import Fabric

SCENARIO_SUFFIX = ".yaml"


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Settings that were read, and where they go."""

    keys: "SwitchKeys"
    files: tuple[Path, ...]
    marking: "Marking"
    out: Path | None  # of the fabric

    @property
    def scenario(self) -> Path | None:
        """The drafted scenario, beside the fabric's file."""
        return self.out.with_suffix(SCENARIO_SUFFIX) if self.out else None


def qos_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as `marking`, None without --with-qos."""

    @functools.wraps(command)
    def with_marking(*args: Any, with_qos: bool, dscp: int | None, cnp_dscp: int | None, **values: Any) -> Any:
        for option, value in (("--dscp", dscp), ("--cnp-dscp", cnp_dscp)):
            if value is not None and not with_qos:
                raise click.UsageError(f"{option} is for --with-qos")
        return command(*args, marking=_marking(dscp, cnp_dscp) if with_qos else None, **values)

    dscp_range = click.IntRange(0, 63)
    for option in (
        click.option("--cnp-dscp", type=dscp_range, help="DSCP of congestion notifications.  [default: 48]"),
        click.option(
            "--dscp", type=dscp_range, help="DSCP that NICs mark data with.  [default: the lowest lossless queue's]"
        ),
        click.option("--with-qos", is_flag=True, help="Read the QoS tables of SONiC switches as well."),
    ):
        with_marking = option(with_marking)
    return with_marking


def read_settings(paths: Sequence[Path], marking: "Marking | None", out: Path | None) -> ReadSettings | None:
    """Return the settings of the switches, None where none are asked for; raises InputError."""
    if marking is None:
        return None
    from fabrictune.scenario.switch_settings import switch_keys
    from fabrictune.topology.importers import files_of
    from fabrictune.topology.switch_qos import read_fabric_qos

    files = tuple(files_of(paths))
    if out:
        _check_scenario(out.with_suffix(SCENARIO_SUFFIX))
    return ReadSettings(keys=switch_keys(read_fabric_qos(files), marking), files=files, marking=marking, out=out)


def cabling_files(paths: tuple[Path, ...], settings: ReadSettings | None) -> tuple[Path, ...]:
    """Return the files that the fabric is in: configurations without the dumps beside them, where settings are read."""
    if settings is None:
        return paths
    from fabrictune.topology.importers.sonic_dump import is_sonic_dump
    from fabrictune.topology.switch_qos.fabric import split_running

    is_dumped = all(is_sonic_dump(path) for path in settings.files)  # both databases of a switch, as one importer reads
    return paths if is_dumped else tuple(split_running(settings.files)[0])


def show_with_settings(fabric: "Fabric", settings: ReadSettings, *, as_json: bool) -> None:
    """Write the drafted scenario where the fabric has a file, and print the fabric and what was read."""
    if settings.scenario:
        _write_scenario(settings.scenario, fabric, settings)
    if as_json:
        print_json(_described(fabric, settings))
    else:
        _print(fabric, settings)


def _check_scenario(path: Path) -> None:
    """Raise InputError where the scenario cannot be written, or one is there, in which somebody may have worked."""
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.foundation.output_files import check_output_file

    check_output_file(path)
    if path.exists():
        step = "move it, or name another file with --out"
        raise InputError(Mistake(where=str(path), found="a file that is there already", next_step=step))


def _marking(dscp: int | None, cnp_dscp: int | None) -> "Marking":
    from fabrictune.scenario.switch_settings import Marking
    from fabrictune.scenario.switch_settings.keys import DEFAULT_CNP_DSCP

    return Marking(dscp=dscp, cnp_dscp=DEFAULT_CNP_DSCP if cnp_dscp is None else cnp_dscp)


def _write_scenario(path: Path, fabric: "Fabric", settings: ReadSettings) -> None:
    from fabrictune.foundation.output_files import replaced_file
    from fabrictune.scenario.switch_settings.draft import scenario_text

    assert settings.out, "a scenario is beside the fabric's file"
    text = scenario_text(
        settings.keys,
        name=fabric.name,
        fabric=Path(settings.out.name),
        files=[Path(os.path.relpath(file, path.parent)) for file in settings.files],
        marking=settings.marking,
    )
    with replaced_file(path) as half:
        half.write_text(text)


def _described(fabric: "Fabric", settings: ReadSettings) -> dict[str, Any]:
    from fabrictune.scenario.switch_settings.settings import plain

    keys = settings.keys
    return {
        **describe_fabric(fabric, has_links=False),
        "scenario": str(settings.scenario) if settings.scenario else None,
        "engine": plain(keys.engine),
        "routing": plain(keys.routing),
        "priority": keys.priority.value,
        "remarks": list(keys.remarks),
        "unused": list(keys.unused),
    }


def _print(fabric: "Fabric", settings: ReadSettings) -> None:
    from fabrictune.scenario.switch_settings.draft import fragment

    print_fabric(fabric, has_links=False)
    if settings.scenario:
        print_lines([f"scenario: {settings.scenario}"])
    else:
        print_lines(["", *fragment(settings.keys), ""])
    print_lines(f"note: {remark}" for remark in settings.keys.remarks)
    print_lines(["not used, by table:", *(f"  {line}" for line in settings.keys.unused)])

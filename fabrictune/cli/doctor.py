"""`fabrictune doctor`: what this machine can do, and which extensions are installed."""

from dataclasses import asdict

import click

from fabrictune.cli.framework.options import COULD_NOT_COLLECT, json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check what this machine supports, what is missing for the rest, and how to install it.

    Topologies, importers, hash functions, collective algorithms and laws that installed packages bring are listed with
    package and version. They are imported: code that is installed counts as trusted.

    The exit code is 3 if something that the core needs is missing, whatever else there is.

    \b
    Example:
      fabrictune doctor
    """
    from fabrictune.doctor import CHECKS, examine, is_fit
    from fabrictune.installed_extensions import list_installed

    with progress_bar("looking", is_quiet=as_json) as progress:
        diagnoses = examine(CHECKS, progress)
    fit = is_fit(diagnoses)
    extensions = list_installed()
    if as_json:
        checks = [asdict(diagnosis) for diagnosis in diagnoses]
        print_json({"fit": fit, "checks": checks, "extensions": [asdict(one) for one in extensions]})
        return 0 if fit else COULD_NOT_COLLECT
    print_table(
        ("component", "state", "detected", "required by"),
        [(one.name, one.state, one.detail, one.opens) for one in diagnoses],
    )
    for one in diagnoses:
        if one.next_step:
            print_lines([f"{one.name}: {one.next_step}" + (" (the core needs it)" if one.is_needed else "")])
    if not extensions:
        print_lines(["extensions of installed packages: none"])
        return 0 if fit else COULD_NOT_COLLECT
    print_table(
        ("extension", "name", "state", "package", "version", "entry point"),
        [(one.kind, one.name, one.state, one.package, one.version, one.target) for one in extensions],
    )
    print_lines(f"{one.kind} {one.name}: {one.detail}" for one in extensions if one.detail)
    return 0 if fit else COULD_NOT_COLLECT

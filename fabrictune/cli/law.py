"""`fabrictune law`: the congestion-control laws there are, and what can be set on them."""

import click

from fabrictune.cli.groups import Group
from fabrictune.cli.options import json_option, trust_code_option
from fabrictune.cli.output import print_json, print_lines, print_table

law = Group(name="law", help="List congestion-control laws and show their parameters.")


@law.command("list")
@json_option
def list_laws(as_json: bool) -> None:
    """List the laws that a scenario can name.

    \b
    Example:
      fabrictune law list
    """
    from cc.loading import LAWS

    summaries = {name: (module.__doc__ or "").strip().splitlines()[0] for name, module in LAWS.items()}
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in summaries.items()])
    else:
        print_table(("law", "what it is"), list(summaries.items()))


@law.command()
@click.argument("name")
@trust_code_option
@json_option
def show(name: str, trust_code: bool, as_json: bool) -> None:
    """Show what a law does, its source, and the keys of its parameters; NAME may be a file with --trust-code.

    \b
    Example:
      fabrictune law show dcqcn
    """
    from cc.loading import load_law
    from fabrictune.scenario.laws import describe_parameters

    module = load_law(name, trust_code=trust_code)
    text = (module.__doc__ or "").strip()
    parameters = describe_parameters(module)
    if as_json:
        print_json({"name": name, "description": text, "parameters": parameters})
        return
    print_lines([text, ""])
    print_table(
        ("parameter", "default", "range", "meaning"),
        [(one["key"], one["default"], f"{one['low']} to {one['high']}", one["meaning"]) for one in parameters],
    )

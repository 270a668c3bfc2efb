"""`fabrictune train checkpoint`: list, verify and export the checkpoints of a training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.train.recipes import read_recipe, recipe_argument, set_option

if TYPE_CHECKING:
    from fabrictune.trainer_probe.checkpoint.names import CheckpointId
    from fabrictune.trainer_probe.checkpoint.storage import Storage

checkpoint = CommandGroup(name="checkpoint", help="List, verify and export the checkpoints of a training.")

urls_argument = click.argument("urls", metavar="URL...", nargs=-1, required=True)
step_option = click.option("--step", type=click.IntRange(min=0), help="Of this step; by default the newest.")


@checkpoint.command(name="list")
@urls_argument
@json_option
def list_checkpoints(urls: tuple[str, ...], as_json: bool) -> int:
    """List the checkpoints in URL, a folder or an object store; the memories of nodes may be several.

    \b
    Example:
      fabrictune train checkpoint list s3://bucket/my-run
      fabrictune train checkpoint list /mnt/a/memory /mnt/b/memory
    """
    from fabrictune.trainer_probe.checkpoint.verification import describe_all

    rows = describe_all(_open(urls))
    if as_json:
        print_json({"checkpoints": rows})
        return 0
    lines = [_line(row) for row in rows] or ["no checkpoints"]
    print_lines(lines)
    return 0


@checkpoint.command()
@urls_argument
@step_option
@quiet_option
@json_option
def verify(urls: tuple[str, ...], step: int | None, quiet: bool, as_json: bool) -> int:
    """Read a checkpoint whole, and compare every piece with its checksum; with `--step` that one, otherwise all.

    Exit code 1 where one is damaged or incomplete.

    \b
    Example:
      fabrictune train checkpoint verify s3://bucket/my-run --step 1200
    """
    from fabrictune.trainer_probe.checkpoint.verification import verify as verify_one

    storages = _open(urls)
    results: list[dict[str, Any]] = []
    for own in _candidates(storages, step):
        found = verify_one(storages, own)
        results.append({"checkpoint": str(own), "read_bytes": found.read_bytes, "damaged": list(found.mistakes)})
        if not quiet and not as_json:
            verdict = "good" if not found.mistakes else f"{len(found.mistakes)} mistakes"
            print_lines(
                [f"{own}  {found.read_bytes:,} bytes read  {verdict}", *(f"  {text}" for text in found.mistakes)]
            )
    if as_json:
        print_json({"checkpoints": results})
    return int(any(result["damaged"] for result in results))


@checkpoint.command()
@urls_argument
@recipe_argument
@set_option
@step_option
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for the weights (Hugging Face, safetensors)."
)
@json_option
def export(
    urls: tuple[str, ...], recipe_name: str, settings: tuple[str, ...], step: int | None, out: Path, as_json: bool
) -> int:
    """Write the weights of a checkpoint in URL as a Hugging Face checkpoint; RECIPE is the one that was trained.

    \b
    Example:
      fabrictune train checkpoint export s3://bucket/my-run my.yaml --out weights
    """
    from fabrictune.trainer_probe.checkpoint.exporting import export as export_weights

    recipe = read_recipe(recipe_name, settings)
    storages = _open(urls)
    own = export_weights(recipe, storages, out, step=step)
    if as_json:
        print_json({"checkpoint": str(own), "weights": str(out)})
    else:
        print_lines([f"weights of {own}: {out}"])
    return 0


def _open(urls: tuple[str, ...]) -> "list[Storage]":
    from fabrictune.trainer_probe.checkpoint.storages import open_storage

    return [open_storage(url, where="URL") for url in urls]


def _candidates(storages: "list[Storage]", step: int | None) -> "list[CheckpointId]":
    """Return all checkpoints, or those of a step; raises CheckpointError where there is none."""
    from fabrictune.trainer_probe.checkpoint.verification import of_step

    return of_step(storages, step)


def _line(row: dict[str, Any]) -> str:
    if row["problem"]:
        return f"{row['checkpoint']:<22} {row['problem']}"
    return f"{row['checkpoint']:<22} {row['num_bytes']:>16,} bytes  {row['num_files']:>5} files  {row['layout']}"

"""`python -m benchmarks.law_comparison`: run what is missing, and print the tables of what there is."""

import os
from pathlib import Path

import click

from benchmarks.law_comparison.contenders import BASELINE, CONTENDERS
from benchmarks.law_comparison.points import all_points, kept, question_names, run_missing
from benchmarks.law_comparison.table import tables


@click.command()
@click.option("--question", "questions", multiple=True, type=click.Choice(question_names()), help="Some of them.")
@click.option("--law", "laws", multiple=True, type=click.Choice(list(CONTENDERS)), help=f"Some, beside {BASELINE}.")
@click.option("--seeds", default=5, show_default=True, help="How many of each.")
@click.option("--workers", default=len(os.sched_getaffinity(0)), show_default="one a core", help="Runs at a time.")
@click.option("--folder", type=Path, default=Path("runs/law-comparison"), show_default=True, help="Where points are.")
def main(questions: tuple[str, ...], laws: tuple[str, ...], seeds: int, workers: int, folder: Path) -> None:
    """Compare congestion-control laws, and go on where an earlier run was stopped."""
    contenders = list(dict.fromkeys((BASELINE, *laws))) if laws else list(CONTENDERS)
    points = all_points(questions or question_names(), contenders, seeds)
    run_missing(points, folder, click.echo, num_workers=workers)
    for table in tables(dict(kept(points, folder))):
        click.echo(f"\n{table}")


main()

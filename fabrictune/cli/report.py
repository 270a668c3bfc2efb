"""`fabrictune report`: one HTML page from run records, and their figures for papers."""

from pathlib import Path

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines

report = CommandGroup(name="report", help="Make HTML pages and figures from run records and jobs.")


@report.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="[default: report.html in the first RECORD]"
)
@json_option
def build(records: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Show one RECORD, or several side by side, as one page that needs no network to be read.

    Folders of spans, which training runs write beside their records, are named and left out: `train stragglers`,
    `trace timeline` and `report block` draw them.

    \b
    Example:
      fabrictune report build runs/incast
      fabrictune report build runs/*
      fabrictune report build runs/before runs/after --out comparison.html
    """
    from fabrictune.foundation.record_folders import HEAD
    from fabrictune.foundation.span_reader import is_span_folder
    from fabrictune.foundation.wording import some
    from fabrictune.reports.page import write_page

    spans = [folder for folder in records if not (folder / HEAD).exists() and is_span_folder(folder)]
    drawn = [folder for folder in records if folder not in spans]
    page = write_page(drawn or records, out)
    names = some(map(str, spans))
    drawers = "`train stragglers`, `trace timeline` and `report block` draw them"
    notes = [f"folders of spans, left out: {len(spans):,} ({names}); {drawers}"] if spans else []
    if as_json:
        print_json({"page": str(page), "records": [str(record) for record in drawn], "notes": notes})
    else:
        print_lines([*(f"note: {note}" for note in notes), f"page: {page}"])


@report.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", required=True, help="HTML file to write.")
@json_option
def block(run: Path, out: Path, as_json: bool) -> None:
    """Draw the ranks of a job as a block by data, pipeline and tensor rank, coloured by state.

    RUN is the folder of a training or of an operated job, with its spans; a journal there adds what died, hung or is
    spare. The file turns, zooms and shows slices, needs no network, and is a table where scripts do not run.

    \b
    Example:
      fabrictune report block runs/job --out block.html
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.reports.block import write_block
    from fabrictune.studies.job_block import job_block

    check_output_file(out)
    drawn = job_block(run)
    page = write_block(drawn, out)
    if as_json:
        num_ranks_in_state = [{"state": state, "num_ranks": count} for state, count in drawn.counts.items()]
        print_json({"page": str(page), "states": num_ranks_in_state, "notes": list(drawn.notes)})
        return
    print_lines(f"{count:,} {state}" for state, count in drawn.counts.items())
    print_lines([*(f"note: {note}" for note in drawn.notes), f"page: {page}"])


@report.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", required=True, help="Folder for the files.")
@click.option(
    "--format",
    "ending",
    type=click.Choice(("svg", "pdf", "png", "csv")),
    default="svg",
    show_default=True,
    help="csv: the records' tables, with names and units.",
)
@json_option
def figures(records: tuple[Path, ...], out: Path, ending: str, as_json: bool) -> None:
    """Draw every figure that one RECORD, or several together, have the numbers for: one file each, for papers.

    Figures have the width of a column of two. Curves of several records share a figure where it shows one curve a
    record. The same records give the same bytes.

    \b
    Example:
      fabrictune report figures runs/incast --out figures
      fabrictune report figures runs/before runs/after --out figures --format pdf
    """
    from fabrictune.foundation.records import RunRecord
    from fabrictune.plot.files import write_csv, write_figures

    read = [RunRecord.read(folder) for folder in records]
    labels = [folder.resolve().name for folder in records]
    files = write_csv(read, labels, out) if ending == "csv" else write_figures(read, labels, out, ending)
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        print_lines(f"figure: {file}" if ending != "csv" else f"table: {file}" for file in files)

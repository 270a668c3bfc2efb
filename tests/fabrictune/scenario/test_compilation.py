"""Compiled scenarios: everything that a run needs, read and drawn beforehand."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.faults.timeline import Effect
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import judge, run_engine, simulate

LAB = Path(__file__).parents[2] / "golden" / "topology" / "lab.cabling.csv"
NOTE = "cables that carry no traffic, skipped: 1"
INCAST = "traffic: {workload: incast, senders: 3, message: 100 KB}\n"


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """Return a scenario on a fabric that an importer reads with a note."""
    path = tmp_path / "imported.yaml"
    path.write_text(f"name: imported\nfabric: {{file: {LAB}}}\n{INCAST}")
    return path


def test_the_notes_of_an_importer_reach_the_record(imported: Path) -> None:
    """One cable of the file carries no traffic: said as a warning, and kept for the record's reader."""
    with pytest.warns(FabrictuneWarning, match=NOTE):
        compiled = compile_scenario(load_scenario(imported))
    assert compiled.notes == (NOTE,)
    record = judge(compiled, run_engine(compiled))
    assert record.run["notes"] == [NOTE]


@pytest.mark.parametrize("command", ["sim run", "ecmp analyze"])
def test_commands_print_the_notes_and_record_them(
    command: str, imported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As warnings on stderr, so that `--json` stays one JSON value."""
    run([*command.split(), str(imported), "--out", str(tmp_path / "record"), "--json", "--fail-on", "never"])
    assert capsys.readouterr().err == f"warning: {NOTE}\n"
    assert RunRecord.read(tmp_path / "record").run["notes"] == [NOTE]


def test_a_scenario_whose_fabric_is_built_has_no_notes(tmp_path: Path) -> None:
    """Neither a warning nor an empty entry in the record."""
    path = tmp_path / "built.yaml"
    path.write_text("name: built\nfabric: {builder: fat_tree, radix: 4}\n" + INCAST)
    assert "notes" not in simulate(load_scenario(path)).run


def test_faults_have_their_ports_and_times(tmp_path: Path) -> None:
    """A flap of 4 us at 5 us holds both ports of its link from 5 to 9 us, and routing follows 1 us later."""
    path = tmp_path / "flap.yaml"
    path.write_text(
        "name: flap\nfabric: {builder: fat_tree, radix: 4}\nconvergence_delay: 1 us\n"
        + INCAST
        + 'faults: [{fault: flap, at: 5 us, link: "tor0:up1", down: 4 us}]\n'
    )
    compiled = compile_scenario(load_scenario(path))
    (interval,) = compiled.faults.intervals
    assert (interval.effect, interval.begin_ps, interval.end_ps, len(interval.ports)) == (Effect.DOWN, 5e6, 9e6, 2)
    assert [epoch.start_ps for epoch in compiled.network.epochs] == [0, 6_000_000, 10_000_000]


def test_the_ecmp_analysis_is_beside_a_run_unless_it_is_left_out(tmp_path: Path) -> None:
    """Its tables are the only difference."""
    path = tmp_path / "built.yaml"
    path.write_text("name: built\nfabric: {builder: fat_tree, radix: 4}\n" + INCAST)
    with_them = simulate(load_scenario(path)).tables
    without = simulate(load_scenario(path), with_collisions=False).tables
    assert set(with_them) - set(without) == {"loads", "collisions", "throughput"}

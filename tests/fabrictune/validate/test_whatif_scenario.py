"""Variants of a scenario's network, with the real engine."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.scenario.files import load_scenario
from fabrictune.sweeps.executors import Threads
from fabrictune.sweeps.store import open_folder
from fabrictune.validate.whatif_scenario import families_named, families_of, whatif_scenario

SCENARIO = """\
name: small
fabric:
  {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 2, tiers: 2, nic_rate: 100 Gbps,
   uplink_rate: 200 Gbps, switch_radix: 16}
traffic: {workload: all_reduce, layout: {tp: 2, dp: 8}, message: 4 MB}
"""


def run(folder: Path, texts: tuple[str, ...] = (), content: str = SCENARIO) -> RunRecord:
    path = folder / "small.yaml"
    path.write_text(content, encoding="utf-8")
    scenario = load_scenario(path)
    families = families_named(texts) if texts else families_of(scenario)
    with open_folder(folder / "out") as runs:
        return whatif_scenario(scenario, families, runs, Threads(num_workers=1), num_seeds=2, is_asked=bool(texts))


def variants(record: RunRecord) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["family"], row["value"]): row for row in to_rows(record.tables["network_variants"])}


def test_each_thing_of_the_network_is_changed_alone(tmp_path: Path) -> None:
    """Five rates, four oversubscriptions, one or two ToRs, placements and laws; a slower NIC is slower."""
    record = run(tmp_path)
    rows = variants(record)
    families = [family for family, _ in rows] + record.tables["network_refusals"]["family"].tolist()
    assert sorted(set(families)) == ["NIC rate", "ToRs a set", "as it is", "law", "oversubscription", "placement"]
    assert families.count("NIC rate") == 5
    assert families.count("oversubscription") == 4
    rates = [rows["NIC rate", rate] for rate in ("25 Gbps", "50 Gbps", "100 Gbps", "200 Gbps", "400 Gbps")]
    steps = [row["step_ps"] for row in rates]
    assert steps == sorted(steps, reverse=True)  # type: ignore[type-var]
    assert [row["is_base"] for row in rates] == [0, 0, 1, 0, 0]
    assert rates[1]["change_fraction"] == pytest.approx(1.0, abs=0.1), (
        "an all-reduce at half the rate takes twice as long"
    )
    assert record.run["notes"][0] == "measured is makespan in the engine 'packet'; runs a variant: 2"


def test_runs_are_kept_and_not_done_again(tmp_path: Path) -> None:
    """A second call finds all runs, and each of the same content once: the base is a value of four families."""
    text = ("fabric.nic_rate=50 Gbps;100 Gbps",)
    first = run(tmp_path, text)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "points").iterdir()}
    assert len(kept) == 4, "two rates, of which one is the scenario's own, with two seeds"
    second = run(tmp_path, text)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "points").iterdir()} == kept
    assert to_rows(second.tables["network_variants"]) == to_rows(first.tables["network_variants"])


def test_a_variant_that_the_fabric_refuses_says_why(tmp_path: Path) -> None:
    """Three NICs of four cannot share an uplink."""
    record = run(tmp_path, ("fabric.oversubscription=1;3",))
    (refused,) = to_rows(record.tables["network_refusals"])
    assert (refused["value"], refused["is_unfinished"]) == ("3", 0)
    assert str(refused["reason"]).startswith("fabric.oversubscription: ")


def test_where_a_key_stops_to_matter_is_told(tmp_path: Path) -> None:
    """Marking that nobody reacts to changes nothing: from the least that was tried on it is enough."""
    record = run(tmp_path, ("engine.ecn.kmin=50 KB;100 KB;200 KB",))
    (knee,) = to_rows(record.tables["network_knees"])
    assert (knee["family"], knee["amount"], knee["is_tried_value"]) == ("engine.ecn.kmin", 50_000, 1)
    assert "no variant depends on the seed" in str(record.run["notes"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed=1;2", r"--vary seed=1;2: 'seed'\n  next: say how many with --seeds"),
        ("fabric.nic_rat=1 Gbps;2 Gbps", "--vary fabric.nic_rat: .*nic_rat"),
        ("law", "--vary law: no values"),
        ("law=none", "--vary law=none: 'none'\n  allowed: two different values or more"),
    ],
)
def test_what_cannot_be_varied_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Before anything runs."""
    with pytest.raises(InputError, match=message):
        run(tmp_path, (text,))


def test_a_job_larger_than_its_fabric_is_refused(tmp_path: Path) -> None:
    """Sixteen NICs have no room for 32 ranks: the scenario's own mistake, before its variants."""
    with pytest.raises(InputError, match="32 ranks"):
        run(tmp_path, content=SCENARIO.replace("dp: 8", "dp: 16"))

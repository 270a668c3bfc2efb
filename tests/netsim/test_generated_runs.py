"""A run whose transfers are generated as they are read has the record of one whose transfers are written out."""

from pathlib import Path

import pytest

from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.foundation import row_ranges
from fabrictune.foundation.generated_tables import GeneratedTable
from fabrictune.foundation.generated_traces import GeneratedTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.metrics import transfers
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim import memory, results
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.packet import run
from fabrictune.studies.run_summary import summarize
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network
from tests.collectives.test_expansion import star
from tests.netsim.conftest import compiled

LAYOUT = ParallelLayout(tp=2, dp=8)


def ring(*, is_generated: bool) -> RunRecord:
    """Return the record of two all-reduces of eight GPUs on four hosts, with an incast at the start of each step."""
    fabric = star(4, 4)
    placement = place(LAYOUT, fabric, "contiguous", gpus_per_host=4)
    more = {"written_out_rows": 0} if is_generated else {}
    queue_pairs, traffic = expand(collective_step(LAYOUT, 100_000), placement, fabric, ExpansionSpec(), **more)
    assert isinstance(traffic, GeneratedTrace) == is_generated
    return run(build_network(fabric, queue_pairs, HashSpec()), traffic, compiled("dcqcn"), PacketConfig())


def test_a_generated_run_has_the_same_tables_metrics_and_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of 50 rows, and flows sorted 40 at a time."""
    whole = ring(is_generated=False)
    monkeypatch.setattr(row_ranges.ranges, "__defaults__", (50,))
    monkeypatch.setattr(results, "CHUNK_ROWS", 50)
    monkeypatch.setattr(transfers, "MOST_SORTED", 40)
    generated = ring(is_generated=True)
    assert isinstance(generated.tables["transfers"], GeneratedTable)
    assert repr(summarize(generated)) == repr(summarize(whole))  # nan is equal to nothing
    assert generated.checks == whole.checks
    assert generated.findings == whole.findings
    for record, name in ((whole, "whole"), (generated, "generated")):
        record.write(tmp_path / name)
    for file in sorted((tmp_path / "whole").glob("*.parquet")):
        assert file.read_bytes() == (tmp_path / "generated" / file.name).read_bytes(), file.name


def test_the_estimate_counts_what_is_generated_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's 310 B a transfer are those of one range at a time."""
    monkeypatch.setattr(memory, "CHUNK_ROWS", 1)
    estimates = []
    monkeypatch.setattr("fabrictune.netsim.memory.require_memory", lambda inputs, **_: estimates.append(inputs))
    ring(is_generated=False), ring(is_generated=True)
    whole, generated = (memory.estimated_bytes(inputs) for inputs in estimates)
    num_transfers = len(estimates[0].traffic)
    saved = memory.PYTHON_BYTES_PER_TRANSFER * (num_transfers - 1)
    assert whole - generated == saved - memory.GENERATED_BYTES_PER_TRANSFER * num_transfers

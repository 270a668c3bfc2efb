"""The table that all readers of real flows share."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.flows import (
    UNKNOWN,
    Endpoint,
    Flow,
    ObservedFlows,
    collect_flows,
    concatenate_flows,
    ipv4_text,
    parse_ipv4,
)
from fabrictune.foundation.tables import write_table

QPNS = st.integers(UNKNOWN, 2**24 - 1)
NAMES = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=8)
ENDPOINTS = st.builds(Endpoint, ipv4=st.integers(UNKNOWN, 2**32 - 1), host=NAMES, device=NAMES)
ROWS = st.builds(Flow, source=ENDPOINTS, destination=ENDPOINTS, source_qpn=QPNS, destination_qpn=QPNS, origin=NAMES)


def test_a_source_port_that_was_not_seen_follows_from_the_queue_pair_numbers() -> None:
    """0x45 x 0x48 = 0x1368, so 0xD368; a port that was seen stands, and half a pair says nothing."""
    a, b = Endpoint(host="a"), Endpoint(host="b")
    flows = collect_flows(
        [
            Flow(source=a, destination=b, source_qpn=0x45, destination_qpn=0x48),
            Flow(source=a, destination=b, source_qpn=0x45, destination_qpn=0x48, source_port=50000),
            Flow(source=a, destination=b, destination_qpn=0x48),
        ]
    )
    assert flows.source_port_F.tolist() == [0xD368, 50000, UNKNOWN]


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        (Endpoint(ipv4=0xC0A84604), "192.168.70.4"),
        (Endpoint(host="node1", device="mlx5_0"), "node1/mlx5_0"),
        (Endpoint(host="node1", ipv4=1), "node1 (0.0.0.1)"),
        (Endpoint(), "unknown"),
    ],
)
def test_an_endpoint_shows_what_is_known_of_it(endpoint: Endpoint, shown: str) -> None:
    """Readers know addresses or names, seldom both."""
    assert str(endpoint) == shown


@given(st.lists(ROWS, max_size=5))
def test_a_table_survives_its_file(rows: list[Flow]) -> None:
    """Every column and the notes come back."""
    flows = collect_flows(rows, notes=["cut short"])
    with tempfile.TemporaryDirectory() as folder:
        flows.write(Path(folder, "flows.parquet"))
        again = ObservedFlows.read(Path(folder, "flows.parquet"))
    for name, column in vars(flows).items():
        assert np.array_equal(getattr(again, name), column), name


def test_tables_join_row_by_row_and_can_be_taken_apart() -> None:
    """Two captures of one job are one table; `take` keeps the order it is given."""
    parts = [
        collect_flows([Flow(source=Endpoint(ipv4=number), destination=Endpoint())], [f"note {number}"])
        for number in (1, 2)
    ]
    joined = concatenate_flows(parts)
    assert joined.source_ipv4_F.tolist() == [1, 2]
    assert joined.notes == ("note 1", "note 2")
    assert joined.take(np.array([1])).label(0) == "0.0.0.2 to unknown"
    assert len(concatenate_flows([])) == 0


def test_a_value_out_of_range_is_named() -> None:
    """A queue-pair number has 24 bits."""
    with pytest.raises(TraceError) as caught:
        collect_flows([Flow(source=Endpoint(), destination=Endpoint(), source_qpn=2**24)])
    assert str(caught.value) == (
        "observed flows: source_qpn 16777216 in row 0\n  allowed: 0 to 16777215, or -1 where it is not known"
    )


def test_a_foreign_table_is_refused(tmp_path: Path) -> None:
    """A Parquet file of something else, one without a column, and what is no Parquet at all."""
    foreign, without, junk = tmp_path / "foreign.parquet", tmp_path / "without.parquet", tmp_path / "junk.parquet"
    write_table(foreign, {"a": np.arange(3)})
    write_table(without, {"a": np.arange(3)}, {"table": "ObservedFlows"})
    junk.write_bytes(b"PAR1")
    for path, found in (
        (foreign, "a table of something else"),
        (without, "no column 'source_ipv4'"),
        (junk, "not a readable"),
    ):
        with pytest.raises(TraceError, match=found):
            ObservedFlows.read(path)


@given(st.integers(0, 2**32 - 1))
def test_addresses_are_written_and_read(address: int) -> None:
    """Dotted quads, both ways; anything else is no address."""
    assert parse_ipv4(ipv4_text(address)) == address
    assert parse_ipv4("mlx5_0") == UNKNOWN

"""Files of flows: what no format reads says why."""

import gzip
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.scenario.flow_files import FlowQuestion, read_flows


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (gzip.compress(bytes.fromhex("d4c3b2a1")), "a packed file\n  next: unpack it"),
        (b"", "an empty file\n  next: check that it was copied whole"),
    ],
)
def test_a_packed_capture_is_to_be_unpacked(content: bytes, found: str, tmp_path: Path) -> None:
    """It was not one of the formats that are read, next: name the format."""
    path = tmp_path / "monday.pcap.gz"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_flows([path], FlowQuestion(qps_per_connection=None, hosts=()))
    assert str(caught.value) == f"{path}: {found}"

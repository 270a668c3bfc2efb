"""Files that people give as a trace and no format reads: each is named, with what to give instead."""

from pathlib import Path

import pytest

from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.errors import TraceError


@pytest.mark.parametrize(
    ("name", "text", "found", "next_step"),
    [
        (
            "chakra.0.json",
            '{"workload_graph": [{"Id": 216}]}',
            "a Chakra trace written as JSON",
            "give the *.et file that it was made from",
        ),
        (
            "events.json",
            '[\n{"name": "Group API", "cat": "GROUP_API", "ph": "b"}',
            "a list of events without the head of a PyTorch profile",
            "export the profile with torch.profiler's export_chrome_trace",
        ),
        (
            "run.txt",
            "# nThread 1 nGpus 1 minBytes 8\n",
            "the output of nccl-tests",
            "read it with `fabrictune coll import`",
        ),
        (
            "job.log",
            "node1:17:17 [0] NCCL INFO Bootstrap\n",
            "a log of NCCL, which has no sizes",
            "name it in a scenario (workload: observed), or profile the job with torch.profiler",
        ),
        (
            "spec.csv",
            "id\tName\tParameter_size\tHidden_size\n",
            "an input of AICB's workload generator",
            "generate a workload with AICB, and give that",
        ),
        (
            "incast.cm",
            "Nodes 16\nConnections 1\n0->15 start 0 size 2000000\n",
            "a connection matrix of htsim, which has messages and no collectives",
            "write its messages as sends of a Chakra trace",
        ),
        (
            "report.sqlite",
            "SQLite format 3\0",
            "a report of Nsight Systems",
            "profile with torch.profiler, whose trace has the ranks and sizes of collectives",
        ),
        ("nothing.txt", "\n", "an empty file", "check that it was copied whole"),
    ],
)
def test_what_is_known_and_not_read_says_what_to_give(
    name: str, text: str, found: str, next_step: str, tmp_path: Path
) -> None:
    """The message listed the formats that are read."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_trace([path])
    assert str(caught.value) == f"{path}: {found}\n  next: {next_step}"


def test_a_packed_file_of_which_nothing_is_left_is_called_cut_off(tmp_path: Path) -> None:
    """Ten bytes are the head of a packed file."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(bytes.fromhex("1f8b0800000000000003"))
    with pytest.raises(TraceError, match="a packed file that is cut off or damaged at its beginning"):
        read_trace([path])

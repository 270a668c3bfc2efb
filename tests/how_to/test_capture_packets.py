"""The page on captures says what is true: its scenario runs as it stands there, and its capture is traffic again."""

import re
from pathlib import Path

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.captures.reader import read_capture

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "capture-packets.md"
AGAIN = """
name: again
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: observed, files: [sniffed/capture.pcap]}
"""


def test_its_scenario_is_captured_and_its_capture_simulated(tmp_path: Path) -> None:
    """Host 1 sends 100 KB to host 0: one flow each way, and the same flow and bytes when the capture is the traffic."""
    (scenario,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "sniffed.yaml").write_text(scenario)
    (tmp_path / "again.yaml").write_text(AGAIN)
    assert (
        run(["sim", "run", str(tmp_path / "sniffed.yaml"), "--out", str(tmp_path / "sniffed"), "--fail-on", "never"])
        == 0
    )
    flows = read_capture(tmp_path / "sniffed" / "capture.pcap").flows
    assert len(flows) == 2
    assert run(["sim", "run", str(tmp_path / "again.yaml"), "--out", str(tmp_path / "again")]) == 0
    transfers = RunRecord.read(tmp_path / "again").tables["transfers"]
    assert transfers["bytes"].tolist() == [flows.row_F["payload_bytes"].max()]
    assert transfers["bytes"][0] >= 100_000

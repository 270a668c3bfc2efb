"""Failure tables: published ones, posteriors of their rates, and files of one's own."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.survival.failure_files import find_failures, read_failures
from fabrictune.trainer_probe.survival.published import PUBLISHED

CSV = """\
# counted by the operators
cause,count,node_days,job_days,loses,detect,diagnose,planned
GPU,31,12000,,node,30 s,5 min,
switch,2,12000,,nodes,,,
known,,4000,,process,,,
code,12,,90,,,,yes
"""
YAML = """\
name: ours
source: our own count
node_days: 12000
causes:
  - {cause: GPU, count: 31, detect: 30 s}
  - {cause: code, count: 12, job_days: 90, planned: true}
"""


def test_published_tables_are_what_was_published() -> None:
    """Llama 3: 419 in 54 days of 2,048 nodes; Meta: 6.50 and 2.34 in 1000 node-days; no count is lost."""
    llama3 = PUBLISHED["llama3"]
    assert sum(cause.count or 0 for cause in llama3.causes if not cause.is_planned) == 419
    assert llama3.per_1000_node_days == pytest.approx(1000 * 419.5 / (54 * 2048), rel=2e-3)
    assert PUBLISHED["meta"].per_1000_node_days == pytest.approx(6.50, rel=1e-3)
    assert PUBLISHED["meta-rsc2"].per_1000_node_days == pytest.approx(2.34, rel=1e-3)
    assert sum(cause.count or 0 for cause in PUBLISHED["byterobust"].causes) == 55366 - 1


def test_rates_have_the_gamma_posterior_of_their_counts() -> None:
    """419 and the half of Jeffreys' prior: the mean and the deviation of the sum of all causes."""
    table = PUBLISHED["llama3"]
    drawn = table.draw_rates_per_s(2048, 20_000, spread=1.0, seed=1)
    failures = drawn[:-1].sum(axis=0) * 54 * 86400  # without planned stops
    assert failures.mean() == pytest.approx(419.5, rel=0.01)
    assert failures.std() == pytest.approx(419.5**0.5, rel=0.03)
    assert table.rates_per_s(2048)[:-1].sum() * 54 * 86400 == pytest.approx(419.5, rel=2e-3)


def test_a_spread_widens_all_causes_alike() -> None:
    """At the ends of 90 % the factor; counts by node grow with the nodes, those by job do not."""
    table = PUBLISHED["meta"]
    drawn = table.draw_rates_per_s(100, 20_000, spread=3.0, seed=1)[0]
    low, high = np.sort(drawn)[[1000, 19_000]] / np.median(drawn)
    assert (low, high) == (pytest.approx(1 / 3, rel=0.06), pytest.approx(3, rel=0.06))
    llama3 = PUBLISHED["llama3"]
    ratio = llama3.rates_per_s(4096) / llama3.rates_per_s(2048)
    assert ratio.tolist() == [2.0] * 18 + [1.0]


def test_tables_of_ones_own_in_csv_and_yaml(tmp_path: Path) -> None:
    """The same keys; an exposure of the file is that of each cause without its own."""
    (tmp_path / "ours.csv").write_text(CSV)
    table = find_failures(str(tmp_path / "ours.csv"), where="--failures")
    gpu, switch, known, code = table.causes
    assert (gpu.count, gpu.exposure_days, gpu.loses, gpu.detect_s, gpu.diagnose_s) == (31, 12000, "node", 30, 300)
    assert (switch.loses, switch.detect_s, known.count) == ("nodes", None, None)
    assert (code.per, code.is_planned, code.exposure_days) == ("job", True, 90)
    assert table.notes == ("1 rates have no count and are taken as exact",)
    assert table.draw_rates_per_s(10, 3, spread=1.0, seed=0)[2].tolist() == [10 / 4000 / 86400] * 3
    (tmp_path / "ours.yaml").write_text(YAML)
    other = read_failures(tmp_path / "ours.yaml")
    assert (other.name, other.source) == ("ours", "our own count")
    assert [(cause.exposure_days, cause.per) for cause in other.causes] == [(12000, "node"), (90, "job")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "cause,count,node_days\nGPU,many,10\nGPU,1,0\n", "a.csv:2: count: 'many'"),
        ("a.csv", "cause,count,node_days\nGPU,many,10\nGPU,1,0\n", "a.csv:3: node_days: '0'"),
        ("a.csv", "cause,count,node_days\nGPU,1,5\nGPU,2,5\n", "cause 'GPU' twice"),
        ("a.csv", "cause,count,node_days,lose\nGPU,1,5,x\n", "unknown"),
        ("a.csv", "cause,count\nGPU,1\n", "0 exposures"),
        ("a.csv", "cause,count,node_days\n", "0 causes"),
        ("a.csv", 'cause,count\n"GPU,1\n', "not CSV"),
        ("a.csv", "cause,count,node_days,detect\nGPU,1,5,soon\n", "detect"),
        ("a.csv", "cause,count,node_days,planned\nGPU,1,5,yes\n", "no cause that is not planned"),
        ("a.yaml", "causes: 3\n", "no list of causes"),
        ("a.yaml", "nodes: 3\ncauses: [{cause: x, count: 1}]\n", "'nodes'"),
        ("a.yaml", "node_days: 3\ncauses: [{cause: x, count: 1, loses: rack}]\n", "'rack'"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, name: str, text: str, message: str) -> None:
    """All mistakes of a file at once, each with its line and what is allowed."""
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_failures(tmp_path / name)
    assert (message if message != "unknown" else "lose: 'lose'") in str(error.value)


def test_an_unknown_name_says_which_there_are() -> None:
    """With the nearest."""
    with pytest.raises(InputError, match="did you mean 'llama3'"):
        find_failures("lama3", where="--failures")

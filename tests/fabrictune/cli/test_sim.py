"""Runs that cannot be, refused by `sim run` before they start: one named mistake, exit code 2, no record."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace

Cli = Callable[..., "CompletedProcess[str]"]

BIG = """
name: big
fabric: {builder: fat_tree, radix: 8}
traffic: {workload: permutation, message: 10 GB}
engine: {pfc: {buffer: 1 GB}}
"""
CIRCLE = """
name: circle
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: traffic_trace, file: circle.parquet}
"""
ISLANDS = """
name: islands
fabric: {file: islands.csv}
traffic: {workload: incast, receiver: 0, senders: 1, message: 1 MB}
"""


SMALL = """
name: small
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2}
traffic: {workload: incast, senders: 1, message: 1 MB}
"""


def test_settings_on_the_command_line_run_and_are_recorded(cli: Cli, tmp_path: Path) -> None:
    """As `ecmp whatif` has them: the record's scenario has the changed values, so that it can be run again."""
    (tmp_path / "small.yaml").write_text(SMALL)
    ran = cli("sim", "run", "small.yaml", "--set", "law=swift; traffic.message=2 MB", "--set", "seed=7", "--quiet")
    assert (ran.returncode, ran.stderr) == (0, "")
    head = json.loads((tmp_path / "runs" / "small" / "run.json").read_text())
    changed = json.loads(head["scenario"])
    assert (head["seed"], changed["law"], changed["traffic"]["message"]) == (7, "swift", "2 MB")
    mistaken = cli("sim", "run", "small.yaml", "--set", "lw=swift")
    assert (mistaken.returncode, mistaken.stdout) == (2, "")
    assert mistaken.stderr.startswith("--set: lw: unknown key 'lw'\n  did you mean 'law'?\n")


def test_a_run_larger_than_the_memory_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Buffers of 1 GB at 768 ports hold 184 million packets, while the process may have 4 GiB.

    Each counts twice, for the answer beside it, with 32 B and an event of 16 B, in tables that double as they grow.
    """
    (tmp_path / "big.yaml").write_text(BIG)
    ran = cli("sim", "run", "big.yaml", max_memory_bytes=4 * 2**30)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("big.yaml:4: traffic: a run that may need 3")
    stderr = re.sub(r"(or allowed: )\S+ [MG]B\n", r"\g<1>4.295 GB\n", ran.stderr)  # less where others use memory
    assert stderr.endswith(
        " GB of memory\n  allowed: what is free on this machine, or allowed: 4.295 GB\n"
        "  next: simulate fewer transfers, a smaller fabric or buffers, take fewer threads, or probe rarely\n"
    )
    assert not (tmp_path / "runs").exists()


def test_transfers_that_wait_for_one_another_in_a_circle_are_refused(cli: Cli, tmp_path: Path) -> None:
    """0 waits for 1 and 1 for 0: no trace of ours can be made so, but a file can."""
    zeros = np.zeros(2, np.int64)
    trace = TrafficTrace(
        source_N=zeros,
        destination_N=zeros + 1,
        medium_N=zeros + Medium.NONE,
        qp_N=zeros + UNKNOWN,
        bytes_N=zeros,
        start_ps_N=zeros,
        delay_ps_N=zeros,
        operation_N=zeros + UNKNOWN,
        dependencies=Dependencies.from_lists([[], [0]]),
    )
    trace.write(path := tmp_path / "circle.parquet")
    table = pq.read_table(path)
    circle = pa.array([[1], [0]], pa.large_list(pa.int64()))
    pq.write_table(table.set_column(table.column_names.index("dependencies"), "dependencies", circle), path)
    (tmp_path / "circle.yaml").write_text(CIRCLE)
    ran = cli("sim", "run", "circle.yaml")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith(
        "circle.parquet: traffic trace: rows that wait for one another in a circle; row 0 is in or behind it\n"
        "  next: remove one dependency of the circle\n"
    )


def test_a_queue_pair_without_a_route_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Two switches with a host each, and no cable between them."""
    (tmp_path / "islands.csv").write_text(
        "a_device,a_port,b_device,b_port,rate\nhost-a,eth0,leaf1,1,100G\nhost-b,eth0,leaf2,1,100G\n"
    )
    (tmp_path / "islands.yaml").write_text(ISLANDS)
    ran = cli("sim", "run", "islands.yaml")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "queue pair 0: no path from host-b:eth0 to host-a:eth0\n  allowed: two NICs joined by switches" in ran.stderr


def test_a_record_names_the_command_that_made_it(cli: Cli, tmp_path: Path) -> None:
    """As a shell would take it again, quotes where they are needed."""
    scenario = "name: small\nfabric: {builder: fat_tree, radix: 2}\ntraffic: {workload: permutation, message: 1 KB}\n"
    (tmp_path / "my file.yaml").write_text(scenario)
    assert cli("sim", "run", "my file.yaml", "--out", "record").returncode == 0
    head = json.loads((tmp_path / "record" / "run.json").read_text())
    assert head["command"] == "fabrictune sim run 'my file.yaml' --out record"


def test_a_place_that_is_not_there_is_named_with_its_line(cli: Cli, tmp_path: Path) -> None:
    """What a capture or a probe names is only found missing when the network stands; the line is known all the same."""
    scenario = (
        "name: small\nfabric: {builder: fat_tree, radix: 2}\ntraffic: {workload: permutation, message: 1 KB}\n"
        "capture:\n  at: edge0-0:up7\n"
    )
    (tmp_path / "small.yaml").write_text(scenario)
    ran = cli("sim", "run", "small.yaml")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("small.yaml:5: capture.at: unknown ")

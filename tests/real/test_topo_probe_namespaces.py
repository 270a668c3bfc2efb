"""`topo probe` against a real fabric: namespaces, veth links, and the Linux kernel's own ECMP and counters.

Everything is sent inside the namespaces, to addresses that exist nowhere else.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from fabrictune.foundation.flows import ipv4_text
from fabrictune.foundation.records import RunRecord
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.hash_learning.observations import read_choices
from fabrictune.topology.hash_learning.report import learn_hashes
from tests.real import udp_endpoint
from tests.real.namespaces import NamespaceFabric, Settings, fabric_of_namespaces, require_namespaces

pytestmark = pytest.mark.real

LEAF_SPINE = build_clos(
    ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=4, downlink_split=1)
)
DOUBLED = build_clos(
    ClosSpec(
        num_hosts=4,
        hosts_per_tor_set=2,
        nics_per_host=1,
        tiers=2,
        uplinks_per_tor=4,
        aggregations_per_pod=2,
        downlink_split=1,
    )
)
THREE_TIERS = build_clos(
    ClosSpec(
        num_hosts=4,
        hosts_per_tor_set=1,
        nics_per_host=1,
        tiers=3,
        switch_radix=4,
        uplinks_per_tor=2,
        tor_sets_per_pod=2,
        downlink_split=1,
        nic_rate_bps=400_000_000_000,
    )
)
SENDER, RECEIVER, FAR_NIC = "host0", "host2", 2
SEED = "net/ipv4/fib_multipath_hash_seed"
BURST = 20
SCENARIO = """
name: lab
fabric: {file: fabric.json}
traffic: {workload: incast, senders: 2, message: 1 MB}
"""


@contextmanager
def lab(fabric: Fabric, folder: Path, settings: Mapping[str, Settings] | None = None) -> Iterator[NamespaceFabric]:
    """Give the fabric up and running, with its names and a scenario in `folder`."""
    with fabric_of_namespaces(fabric, settings) as built:
        (folder / "hosts").write_text(built.hosts_file())
        (folder / "lab.yaml").write_text(SCENARIO)
        write_fabric(fabric, folder / "fabric.json")
        yield built


def probe(built: NamespaceFabric, folder: Path, *options: str, code: int = 0) -> dict[str, Any]:
    """Run the command inside the sending host and return its JSON."""
    target = ipv4_text(int(built.fabric.nic_ipv4_C[FAR_NIC]))
    ran = built.run_cli(SENDER, "topo", "probe", "--target", target, "--names", "hosts", *options, "--json", cwd=folder)
    assert ran.returncode == code, ran.stdout + ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def paths_of(result: dict[str, Any]) -> dict[tuple[str, ...], list[int]]:
    """Return the source ports of every path of the only target, hops by name."""
    (target,) = result["targets"]
    return {tuple(" ".join(hop["names"]) for hop in path["hops"]): path["source_ports"] for path in target["paths"]}


@contextmanager
def running(built: NamespaceFabric, node: str, *arguments: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run the endpoint script inside a node; give its input and output."""
    command = built.command(node, sys.executable, udp_endpoint.__file__, *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdin, process.stdout
        process.stdin.close()


def test_the_paths_found_are_the_paths_built(tmp_path: Path) -> None:
    """Two leaves and four spines are four paths; 256 source ports find them all and each takes one."""
    with lab(LEAF_SPINE, tmp_path) as built:
        result = probe(built, tmp_path, "--rate", "500", "--source-ports", "256", "--out", "record")
    paths = paths_of(result)
    assert set(paths) == built.shortest_paths(0, FAR_NIC) == four_paths()
    assert sorted(port for ports in paths.values() for port in ports) == list(range(49152, 49152 + 256))
    assert (result["num_probes"], result["num_replies"], result["findings"]) == (4 * 256, 4 * 256, [])
    assert (result["num_probes"] - 1) / result["duration_s"] <= 500, "n probes are n - 1 intervals"
    outcome = learned_from(tmp_path / "record")
    assert outcome == (False, 256), "the kernel's hash is not linear, which 31 choices would show if it were"
    flows = RunRecord.read(tmp_path / "record").tables["probed_flows"]
    assert np.bincount(flows["path"]).tolist() == [len(ports) for ports in paths.values()]


def learned_from(record: Path) -> tuple[bool, int]:
    """Return whether the first leaf's hash is linear, and from how many choices that is known."""
    (learned,) = learn_hashes(read_choices(record)[0])
    assert learned.group.next_hops == tuple(f"agg0-{spine}:down0" for spine in range(4))
    return learned.linear_choice is not None, len(learned.group)


def four_paths() -> set[tuple[str, ...]]:
    """Return the paths of the leaf-spine, written out: up link S leads to spine S, and down again on its own link."""
    return {("tor0:down0", f"agg0-{spine}:down0", f"tor1:up{spine}", "host2:nic0") for spine in range(4)}


def test_each_source_port_takes_the_link_that_the_kernel_counts(tmp_path: Path) -> None:
    """A burst of 20 packets from one port adds 20 to one uplink of the first leaf and 0 to the others."""
    with lab(LEAF_SPINE, tmp_path) as built:
        paths = paths_of(probe(built, tmp_path, "--rate", "500", "--source-ports", "64"))
        uplink = {port: hops[1].split(":")[0].replace("agg0-", "up") for hops, ports in paths.items() for port in ports}
        addresses = [ipv4_text(int(built.fabric.nic_ipv4_C[nic])) for nic in (0, FAR_NIC)]
        with running(built, SENDER, "send", *addresses, str(BURST)) as (ask, told):
            for port in sorted(uplink):
                before = built.sent_packets("tor0")
                ask.write(f"{port}\n")
                ask.flush()
                assert told.readline() == f"{port}\n"
                counted = packets_sent_up(built, before)
                assert counted == {**dict.fromkeys(counted, 0), uplink[port]: BURST}, port


def packets_sent_up(built: NamespaceFabric, before: dict[str, int]) -> dict[str, int]:
    """Return what each uplink of the first leaf has sent since, once a whole burst has been."""
    for _ in range(1000):
        now = built.sent_packets("tor0")
        counted = {name: count - before[name] for name, count in now.items() if name.startswith("up")}
        if sum(counted.values()) >= BURST:
            return counted
    raise AssertionError(f"the burst never left: {counted}")


def test_parallel_links_to_one_spine_are_told_apart(tmp_path: Path) -> None:
    """Four uplinks to two spines: two choices up, and two again down, each a link of its own."""
    with lab(DOUBLED, tmp_path, {"agg0-0": seeded(1), "agg0-1": seeded(2)}) as built:
        paths = paths_of(probe(built, tmp_path, "--rate", "500", "--source-ports", "128"))
        assert set(paths) == built.shortest_paths(0, FAR_NIC)
    assert len(paths) == 4 * 2
    assert len({hops[1] for hops in paths}) == 4


def seeded(seed: int) -> Settings:
    """Return the setting of a switch's hash seed; skips where the kernel has none."""
    require_namespaces()
    if not Path("/proc/sys", SEED).exists():
        pytest.skip("this kernel cannot seed its multipath hash (Linux 6.11 can)")
    return {SEED: seed}


@pytest.mark.parametrize(("is_seeded", "num_paths"), [(False, 2), (True, 8)], ids=["one seed", "own seeds"])
def test_polarization_shows_as_paths_that_nobody_takes(is_seeded: bool, num_paths: int, tmp_path: Path) -> None:
    """ToR, aggregation and core choose between two each: with one seed all choose alike, and 6 of 8 paths are idle."""
    switches = [name for name in THREE_TIERS.node_name_N if not name.startswith("host")]
    settings = {name: seeded(number + 1 if is_seeded else 1) for number, name in enumerate(switches)}
    with lab(THREE_TIERS, tmp_path, settings) as built:
        options = ("--rate", "500", "--source-ports", "128", "--against", "lab.yaml")
        result = probe(built, tmp_path, *options, code=0 if is_seeded else 1)
    assert len(paths_of(result)) == num_paths
    model = result["targets"][0]["model"]
    assert (len(model["predicted"]), len(model["missing"]), model["unpredicted"]) == (8, 8 - num_paths, [])


def test_a_spine_that_is_cut_off_is_a_path_of_the_model_that_is_missing(tmp_path: Path) -> None:
    """Both its links go down, the kernels hash over three, and the scenario's fabric still has four paths."""
    with lab(LEAF_SPINE, tmp_path) as built:
        for leaf in ("tor0", "tor1"):  # both, or replies to this host would be lost where the other leaf sends them
            subprocess.run(built.command(leaf, "ip", "link", "set", "up2", "down"), check=True)
        result = probe(built, tmp_path, "--rate", "500", "--against", "lab.yaml", code=1)
    assert set(paths_of(result)) == {path for path in four_paths() if path[1] != "agg0-2:down0"}
    assert result["targets"][0]["model"]["missing"] == [["tor0:down0", "agg0-2:down0", "tor1:up2"]]
    assert [finding["id"] for finding in result["findings"]] == ["probe.missing", "probe.choice-differs"]


def test_a_target_that_says_nothing_still_shows_its_switches(tmp_path: Path) -> None:
    """A process that owns port 4791, as an RDMA adapter does: the switches are known, the end is silent."""
    with lab(LEAF_SPINE, tmp_path) as built:
        address = ipv4_text(int(built.fabric.nic_ipv4_C[FAR_NIC]))
        with running(built, RECEIVER, "listen", address) as (_, told):
            assert told.readline() == "listening\n"
            options = ("--rate", "500", "--attempts", "1", "--timeout", "200 ms", "--against", "lab.yaml")
            result = probe(built, tmp_path, *options)
    assert set(paths_of(result)) == {path[:3] for path in four_paths()}
    assert {path["ending"] for path in result["targets"][0]["paths"]} == {"silent"}
    assert result["targets"][0]["model"]["num_source_ports"] == 64
    assert [finding["id"] for finding in result["findings"]] == ["probe.silent", "probe.choice-differs"]


def test_a_kernel_that_limits_its_icmp_is_asked_again_more_slowly(tmp_path: Path) -> None:
    """Ten replies a second and six at once: repeats at half the pace hear all 16 ports, one attempt does not."""
    limit = {name: {"net/ipv4/icmp_ratelimit": 100} for name in LEAF_SPINE.node_name_N}
    with lab(LEAF_SPINE, tmp_path, limit) as built:
        options = ("--rate", "100", "--source-ports", "16", "--timeout", "300 ms")
        patient = probe(built, tmp_path, *options, "--attempts", "6")
        hasty = probe(built, tmp_path, *options, "--attempts", "1", "--fail-on", "never")
    assert set(paths_of(patient)) <= four_paths()
    assert patient["findings"] == []
    assert patient["num_probes"] > patient["num_replies"] == 4 * 16
    known = [set(hops) for hops in zip(*four_paths(), strict=True)]
    assert all(hop == "" or hop in known[place] for path in paths_of(hasty) for place, hop in enumerate(path))
    assert "probe.hop-unknown" in {finding["id"] for finding in hasty["findings"]}


def test_without_the_right_to_raw_sockets_it_refuses(tmp_path: Path) -> None:
    """Root without CAP_NET_RAW: exit code 3, what is missing, what to do; and nothing is sent."""
    with lab(LEAF_SPINE, tmp_path) as built:
        target = ipv4_text(int(built.fabric.nic_ipv4_C[FAR_NIC]))
        command = ["setpriv", "--bounding-set", "-net_raw", sys.executable, "-m", "fabrictune", "topo", "probe"]
        ran = subprocess.run(
            built.command(SENDER, *command, "--target", target, "--rate", "10"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert set(built.sent_packets(SENDER).values()) == {0}
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == (
        "raw sockets: not allowed: this process has no CAP_NET_RAW\n"
        "  next: run as root, or in a container or network namespace that grants CAP_NET_RAW\n"
    )


def test_a_target_without_a_route_is_named(tmp_path: Path) -> None:
    """The spine has no route to an address outside the fabric: exit code 3, and no traceback."""
    with lab(LEAF_SPINE, tmp_path) as built:
        ran = built.run_cli("agg0-0", "topo", "probe", "--target", "10.7.7.7", "--rate", "10", cwd=tmp_path)
    assert ran.returncode == 3
    assert ran.stderr.endswith(
        "10.7.7.7: this machine cannot send there (Network is unreachable)\n"
        "  next: see what `ip route get 10.7.7.7` says\n"
    )


def test_people_are_told_what_is_sent_and_what_was_found(tmp_path: Path) -> None:
    """The count comes before the probes, on stderr; the paths are a table."""
    with lab(LEAF_SPINE, tmp_path) as built:
        ran = built.run_cli(
            SENDER, "topo", "probe", "--target", "10.0.0.3", "--rate", "500", "--names", "hosts", cwd=tmp_path
        )
    assert ran.stderr == (
        "sending at most 1,536 UDP packets of 52 bytes to port 4791 of 10.0.0.3, "
        "at most 500 a second, for at most 21 s\n"
    )
    assert ran.stdout.startswith("256 probes and 256 replies in ")
    assert "10.0.0.1 to 10.0.0.3: 4 paths of 64 source ports\n" in ran.stdout
    assert "  a path not seen carries at most 4.6% of all source ports (95 % sure)\n" in ran.stdout
    assert all(" > ".join(path) in ran.stdout for path in four_paths())

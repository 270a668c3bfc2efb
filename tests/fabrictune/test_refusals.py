"""Settings that cannot mean what was written are refused, with the next step, and what does nothing is said."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.network_namespaces import WITHOUT_RIGHTS
from fabrictune.foundation.settings.keys import list_keys, sections
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.rdma_bench.flaps import network
from fabrictune.scenario.schema import Scenario
from fabrictune.sweeps.schema import Sweep, load_sweep

CLOS = "fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}\n"
INCAST = "traffic: {workload: incast, senders: 2, message: 64 KB}\n"
JOB = "traffic: {workload: all_reduce, layout: {dp: 8}, message: 64 KB}\n"
FREE_TEXT = {  # names that only the user's own files give
    "at", "device", "endpoints.nic", "endpoints.observed", "devices.device", "devices.port", "fail",
    "first_host", "hosts", "key", "link", "name", "nic.slow_hosts", "part", "parts.job", "parts.name", "port",
    "question", "switch",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """Return what a refused command said."""
    capsys.readouterr()
    assert run(list(command)) == 2
    return capsys.readouterr().err


def checked(capsys: pytest.CaptureFixture[str], text: str) -> str:
    """Return why a scenario is refused."""
    Path("x.yaml").write_text(text)
    return refusal(capsys, "scenario", "check", "x.yaml")


def four_ranks() -> CommTrace:
    """Return one all-reduce of four ranks."""
    four = np.zeros(4, np.int64)
    return CommTrace(
        groups=((0, 1, 2, 3),),
        rank_N=np.arange(4),
        operation_N=four + Operation.ALL_REDUCE,
        group_N=four,
        peer_N=four + UNKNOWN,
        bytes_N=four + 4096,
        compute_before_ps_N=four,
        step_N=four,
        axis_N=("dp",) * 4,
        policy_N=("none",) * 4,
        tag_N=("",) * 4,
        dependencies=Dependencies.none(4),
    )


@pytest.mark.parametrize("command", ["scenario check", "ecmp analyze", "sim run"])
@pytest.mark.parametrize(("layout", "num_ranks"), [("{tp: 2, dp: 16}", 32), ("{dp: 2}", 2)])
def test_a_layout_of_other_ranks_than_its_trace_is_refused_with_both_numbers(
    command: str, layout: str, num_ranks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A larger one ran as if it had the trace's ranks."""
    four_ranks().write(Path("four.parquet"))
    traffic = f"traffic: {{workload: comm_trace, file: four.parquet, layout: {layout}, gpus_per_host: 8}}\n"
    Path("x.yaml").write_text(f"name: x\n{CLOS}{traffic}")
    said = refusal(capsys, *command.split(), "x.yaml")
    assert said.startswith(f"x.yaml:3: traffic.layout: {num_ranks} ranks (tp ")
    assert "and four.parquet has 4\n" in said
    assert "next: set degrees whose product is 4" in said


def test_a_scenario_given_as_a_topology_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that shows its fabric."""
    Path("x.yaml").write_text(f"name: x\n{CLOS}{INCAST}")
    assert refusal(capsys, "topo", "show", "x.yaml") == (
        "x.yaml: a scenario of fabrictune, not a topology\n  allowed: a topology file\n"
        "  next: see its fabric: fabrictune topo build clos num_hosts=8 hosts_per_tor_set=4 nics_per_host=1 tiers=2\n"
    )
    Path("x.yaml").write_text("fabric: {file: lab.csv}\ntraffic: {}\n")
    assert "next: see its fabric: fabrictune topo show lab.csv\n" in refusal(capsys, "topo", "show", "x.yaml")


def test_a_misspelt_builder_hides_no_other_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """Four mistakes are four, and the key is guessed."""
    said = checked(capsys, f"name: x\nfabric: {{bilder: clos, num_host: 9, nic_rate: 400, tiers: two}}\n{INCAST}")
    assert "x.yaml:2: fabric.bilder: unknown key 'bilder'\n  did you mean 'builder'?" in said
    assert "fabric.num_host: unknown key 'num_host'\n  did you mean 'num_hosts'?" in said
    assert "fabric.nic_rate" in said
    assert "fabric.tiers" in said
    said = checked(capsys, f"name: x\nfabric: {{num_hosts: 9}}\n{INCAST}")
    assert "no key 'builder' to say which is meant" in said


@pytest.mark.parametrize(
    ("lines", "guess"),
    [
        ("engine: {transport: {NCCL_IB_TIMEOUT: 20}}\n", "timeout_exponent"),
        ("engine: {transport: {NCCL_IB_RETRY_CNT: 7}}\n", "retries"),
        ("faults: [{fault: slow_link, at: 1 us}]\n", "slow_port"),
        ("faults: [{fault: link_flap, at: 1 us}]\n", "flap"),
    ],
)
def test_a_name_that_others_use_leads_to_ours(lines: str, guess: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Not to another key that happens to be spelt alike."""
    assert f"did you mean '{guess}'?" in checked(capsys, f"name: x\n{CLOS}{INCAST}{lines}")


def test_a_name_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """No regular expression."""
    said = checked(capsys, f"name: a/b\n{CLOS}{INCAST}")
    assert said.splitlines()[1] == (
        "  allowed: 1 to 100 of the characters A-Z, a-z, 0-9, '_', '.' and '-', the first no '.' or '-'"
    )


@pytest.mark.parametrize("key", ["law", "adapter", "engine.mtu", "probe.every", "convergence_delay", "expect"])
def test_a_variant_of_a_key_that_no_collision_depends_on_is_refused(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its row was the same as the scenario's, without a word."""
    Path("x.yaml").write_text(f"name: x\n{CLOS}{JOB}")
    said = refusal(capsys, "ecmp", "whatif", "x.yaml", "--set", f"{key}=swift", "--seeds", "2")
    if "no effect" not in said:  # a value that the key cannot have is refused before
        said = refusal(capsys, "ecmp", "whatif", "x.yaml", "--set", f"{key}=1 us", "--seeds", "2")
    assert "has no effect on collisions" in said
    assert f"{key}: " in said


def test_a_variant_that_changes_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The size of a message decides no path, and contiguous is what the placement is already."""
    Path("x.yaml").write_text(f"name: x\n{CLOS}{JOB}")
    for setting in ("traffic.message=1 MB", "traffic.placement=contiguous"):
        said = refusal(capsys, "ecmp", "whatif", "x.yaml", "--set", setting, "--seeds", "2")
        assert "the same fabric, flows and paths as the scenario has as it is" in said
        assert f"what if '{setting}'" in said
    assert run(["ecmp", "whatif", "x.yaml", "--set", "traffic.placement=interleaved", "--seeds", "2"]) == 0


def test_a_factor_of_a_key_without_effect_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As a variant's."""
    factors = "factors: [{name: law, low: {law: swift}, high: {law: dcqcn}}]\n"
    Path("x.yaml").write_text(f"name: x\n{CLOS}{JOB}{factors}")
    assert "has no effect on collisions" in refusal(capsys, "ecmp", "factorial", "x.yaml", "--seeds", "2")


def test_an_objective_may_be_a_metrics_name_alone() -> None:
    """As the option --objective has it."""
    Path("s.yaml").write_text(
        "name: s\nscenario: x.yaml\nvary: [{key: law, values: [swift, dcqcn]}]\nobjectives: [makespan, drops]\n"
    )
    assert load_sweep(Path("s.yaml")).measures == ["makespan", "drops"]


def test_values_of_a_key_without_effect_are_written_as_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """`true`, not Python's True."""
    Path("x.yaml").write_text(f"name: x\n{CLOS}{INCAST}")
    Path("s.yaml").write_text(
        "name: s\nscenario: x.yaml\nseeds: 1\nobjectives: [makespan]\n"
        "vary: [{key: engine.pfc.enabled, values: [true, false]}, {key: traffic.message, values: [64 KB, 65 KB]}]\n"
    )
    said = refusal(capsys, "sim", "sweep", "s.yaml")
    assert "engine.pfc.enabled: true and false give the same run, to the last packet" in said


def test_the_keys_of_a_choice_are_listed_by_its_sections(capsys: pytest.CaptureFixture[str]) -> None:
    """`scenario keys traffic` asked for `traffic.mix`."""
    assert run(["scenario", "keys", "traffic", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["key"] for row in rows] == [name for name in sections(Scenario, "scenario") if "traffic." in name]
    assert all(row["meaning"] for row in rows)


def test_a_key_with_a_list_of_values_says_which() -> None:
    """Every key that takes text is a name of the user's own."""
    for root, name in ((Scenario, "scenario"), (Sweep, "sweep")):
        known = sections(root, name)
        lines = [line for section in known for line in list_keys(known, section)]
        assert {line.key for line in lines if line.takes in ("text", "list of text")} <= FREE_TEXT
    lines = list_keys(sections(Scenario, "scenario"), "traffic.all_reduce")
    assert "ring | " in next(line.takes for line in lines if line.key == "expansion.algorithm")


def test_the_next_step_without_rights_is_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root without CAP_SYS_ADMIN, as in a container, was told to take another kernel."""
    script = Path("ip")
    script.write_text("#!/bin/sh\necho 'mount --make-shared /run/netns failed: Operation not permitted' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path.cwd()}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UnavailableError) as caught, network.flapping_network():
        pass
    assert caught.value.mistakes[0].next_step == WITHOUT_RIGHTS


def test_a_record_of_another_scenario_is_not_replaced_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    """The same text gives the same record again, and needs none."""
    Path("x.yaml").write_text(f"name: x\n{CLOS}{INCAST}")
    for _ in range(2):
        run(["ecmp", "analyze", "x.yaml"])
        assert capsys.readouterr().err == ""
    Path("y.yaml").write_text(f"name: x\n{CLOS}{JOB}")
    run(["ecmp", "analyze", "y.yaml"])
    assert capsys.readouterr().err == (
        "warning: runs/x-ecmp: the record of another scenario or of other settings there is replaced; "
        "--out DIR keeps both\n"
    )


def test_a_link_rate_has_an_upper_bound_in_scenarios_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixty times the fastest Ethernet: beyond it a clock of picoseconds tells packets no longer apart."""
    fabric = CLOS.replace("tiers: 2", "tiers: 2, nic_rate: 2147483648 Gbps")
    said = checked(capsys, f"name: x\n{fabric}{INCAST}")
    assert "x.yaml:2: fabric.nic_rate: " in said
    assert "allowed: above 0, up to 100 Tbps" in said
    said = refusal(capsys, "topo", "build", "clos", "num_hosts=8", "hosts_per_tor_set=4", "nic_rate=200 Tbps")
    assert "allowed: above 0, up to 100 Tbps" in said
    assert run(["topo", "build", "fat_tree", "radix=4", "--out", "k.json"]) == 0
    Path("k.json").write_text(Path("k.json").read_text().replace("100000000000,", "214748364800000000,"))
    assert "allowed: a rate is above 0, up to 100 Tbps" in refusal(capsys, "topo", "show", "k.json")

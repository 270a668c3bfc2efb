"""What network is enough for a recipe, in closed form."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.hardware.files import find_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.prediction.dry_run import write_program
from fabrictune.trainer_probe.prediction.predictor import predict
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.whatif_recipe import networks_of, whatif_recipe

RATES_GBPS = [25, 50, 100, 200, 400, 800, 1600]


@pytest.fixture(scope="module")
def profile() -> HardwareProfile:
    return find_profile("a100", where="test")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    """Sixteen replicas of the smallest job, so that gradients and the pipeline cross hosts."""
    return load_recipe(find_recipe("tiny"), {"degrees.layout.dp": 16}, origin="test")


@pytest.fixture(scope="module")
def record(recipe: Recipe, profile: HardwareProfile) -> RunRecord:
    return whatif_recipe(recipe, profile)


def test_networks_are_rates_and_rails(profile: HardwareProfile) -> None:
    """An eighth of 200 Gbps to eight times as much; one of eight GPUs with a NIC to all of them."""
    networks = networks_of(profile)
    assert [network.amount / 1e9 for network in networks if network.family == "NIC rate"] == RATES_GBPS
    rails = [(network.value, network.factor) for network in networks if network.family == "NICs a host"]
    assert rails == [("1 of 8 GPUs", 1 / 8), ("2 of 8 GPUs", 1 / 4), ("4 of 8 GPUs", 1 / 2), ("8 of 8 GPUs", 1)]


def test_the_job_as_it_is_has_the_predicted_step(record: RunRecord, recipe: Recipe, profile: HardwareProfile) -> None:
    """And so have 200 Gbps and eight rails, which are what the profile has."""
    step_ps = predict(recipe, write_program(recipe), profile).step_s * 1e12
    rows = to_rows(record.tables["network_variants"])
    assert rows[0]["step_ps"] == pytest.approx(step_ps)
    own = [row for row in rows[1:] if row["is_base"]]
    assert [(row["family"], row["value"]) for row in own] == [("NIC rate", "200 Gbps"), ("NICs a host", "8 of 8 GPUs")]
    assert [row["change_fraction"] for row in own] == [0, 0]


def test_a_rate_is_priced_as_a_profile_of_that_rate(
    record: RunRecord, recipe: Recipe, profile: HardwareProfile
) -> None:
    """50 Gbps of a variant and of a profile that has them give one step, and so do two NICs for eight GPUs."""
    slower = replace(profile, network=replace(profile.network, nic_rate_bps=50e9))
    step_ps = predict(recipe, write_program(recipe), slower).step_s * 1e12
    rows = {(row["family"], row["value"]): row for row in to_rows(record.tables["network_variants"])}
    assert rows["NIC rate", "50 Gbps"]["step_ps"] == pytest.approx(step_ps)
    assert rows["NICs a host", "2 of 8 GPUs"]["step_ps"] == pytest.approx(step_ps)


def test_more_network_never_makes_a_step_longer(record: RunRecord) -> None:
    """Steps fall with the rate, and every interval has its value inside."""
    rows = to_rows(record.tables["network_variants"])
    steps = [row["step_ps"] for row in rows if row["family"] == "NIC rate"]
    assert steps == sorted(steps, reverse=True)
    for row in rows:
        assert row["step_low_ps"] < row["step_ps"] < row["step_high_ps"]
        assert row["change_low_fraction"] <= row["change_fraction"] <= row["change_high_fraction"]


def test_each_axis_has_a_share_and_each_order_a_knee(record: RunRecord) -> None:
    """tp stays inside a host; what a slow NIC adds belongs to the gradients and the pipeline."""
    shares = to_rows(record.tables["network_shares"])
    of_slowest = {row["axis"]: row["share_fraction"] for row in shares if row["point"] == 1}
    of_fastest = {row["axis"]: row["share_fraction"] for row in shares if row["point"] == len(RATES_GBPS)}
    assert set(of_slowest) == {"tp", "dp", "pp"}
    assert of_slowest["dp"] > of_fastest["dp"]
    knees = {row["family"]: row for row in to_rows(record.tables["network_knees"])}
    assert set(knees) == {"NIC rate", "NICs a host"}
    assert [knees[family]["most"] for family in ("NIC rate", "NICs a host")] == [1.6e12, 8]


def test_what_it_leaves_out_is_said(record: RunRecord) -> None:
    """Where it runs, and that no link is shared."""
    first, second = record.run["notes"][:2]
    assert first == "tiny on a100: 64 GPUs, tp 2, dp 16, pp 2; overlap all"
    assert second == "no request shares a link: oversubscription, placement and laws need a scenario"
    assert {check.rule for check in record.checks or ()} == {"train.memory-exceeded"}

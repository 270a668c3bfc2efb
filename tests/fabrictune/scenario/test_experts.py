"""Traffic of experts in a scenario: keys, draws, notes and mistakes."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneWarning, InputError
from fabrictune.foundation.traces import Medium, TrafficTrace
from fabrictune.scenario.composition import compose
from fabrictune.scenario.expert_loads import read_loads
from fabrictune.scenario.files import parse_scenario
from fabrictune.studies.simulation import simulate

TEXT = """name: experts
seed: {seed}
fabric: {{builder: clos, num_hosts: 4, hosts_per_tor_set: 4, nics_per_host: 4, tiers: 2}}
traffic:
  workload: moe
  layout: {{{layout}}}
  num_tokens: 100
  width: 256
  experts: {{num_experts: 32, num_choices: 4, num_groups: 4, chosen_groups: 2}}
  {more}
law: none
"""


def text(more: str = "deduplication: node", *, layout: str = "dp: 16, ep: 16", seed: int = 0) -> str:
    """Return a scenario of 16 GPUs on four hosts."""
    return TEXT.format(more=more, layout=layout, seed=seed)


def composed(scenario: str) -> tuple[TrafficTrace, tuple[str, ...]]:
    """Return the traffic and its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)
        result = compose(parse_scenario(scenario, Path("x.yaml")))
    return result.traffic, result.notes


def refused(scenario: str) -> str:
    """Return the message of the mistake."""
    with pytest.raises(InputError) as error:
        composed(scenario)
    return str(error.value)


def test_the_same_seed_gives_the_same_bytes() -> None:
    """And another seed others."""
    first, again, other = (composed(text(seed=seed))[0] for seed in (1, 1, 2))
    assert np.array_equal(first.bytes_N, again.bytes_N)
    assert np.array_equal(first.dependencies.row_D, again.dependencies.row_D)
    assert first.bytes_N.tolist() != other.bytes_N.tolist()


def test_every_group_draws_its_own_tokens() -> None:
    """Two groups of eight along dp: the same fabric bytes of neither."""
    traffic, _ = composed(text("deduplication: rank\n  phase: dispatch", layout="dp: 16, ep: 8"))
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    of_first = on_fabric_N & (traffic.source_N < 8)
    assert traffic.bytes_N[of_first].sum() != traffic.bytes_N[on_fabric_N & ~of_first].sum()
    assert (traffic.destination_N[of_first] < 8).all()


def test_expected_traffic_is_the_same_for_every_pair() -> None:
    """A rank of 2 experts in a group of 8, of which a token takes 4 in 2 groups: the reach to the nearest byte."""
    traffic, _ = composed(text("routing: expected\n  deduplication: rank\n  phase: dispatch"))
    (size,) = set(traffic.bytes_N.tolist())
    drawn, _ = composed(text("deduplication: rank\n  phase: dispatch"))
    assert abs(drawn.bytes_N.mean() / size - 1) < 0.02


def test_a_note_says_what_tokens_reach_and_which_way_they_go() -> None:
    """Two of four hosts at most; what changes rails is said, and what never does is not."""
    _, (moe,) = composed(text())
    assert moe == (
        "moe: dispatch 512 B a token (bf16), combine 512 B a token (bf16); a token reaches 1.99 hosts and 3.66 ranks, "
        "the busiest rank has 1.08 times its share; fabric 2.465 MB, NVLink 4.473 MB, deduplication: node"
    )
    _, (_, rails) = composed(text("deduplication: rank"))
    assert rails == (
        "expansion.pxn: true, as NCCL does: 144 of 192 connections cross NVLink to the NIC on the receiver's rail"
    )
    _, (_, rails) = composed(text("expansion: {pxn: false}"))
    assert rails == "expansion.pxn: false: 144 of 192 connections leave through their own NIC and cross rails"


def test_a_popular_expert_makes_its_rank_busy() -> None:
    """By Zipf's law, and by a file of loads."""
    shares = []
    for more in ("skew: 0", "skew: 1.2"):
        _, notes = composed(text(more))
        shares.append(float(notes[0].split("busiest rank has ")[1].split()[0]))
    assert shares[1] > 2 * shares[0]


def test_a_file_of_loads_is_followed(tmp_path: Path) -> None:
    """The first rank's two experts have half of all the load: its share is limited by a token's choices being many."""
    file = tmp_path / "loads.csv"
    rows = [f"{expert},{15 if expert < 2 else 1}" for expert in range(32)]
    file.write_text("\n".join(["expert,load", *rows]) + "\n")
    assert read_loads(file, 32).tolist() == [15.0] * 2 + [1.0] * 30
    traffic, _ = composed(text(f"loads: {file}\n  deduplication: none\n  phase: dispatch"))
    to_first = traffic.bytes_N[(traffic.destination_N == 0)].sum()
    assert to_first > 3 * traffic.bytes_N.sum() / 16


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "1: an empty first line\n  allowed: the columns expert, load"),
        ("rank,load\n", "1: rank,load\n  allowed: the columns expert, load"),
        ("expert,load\n0,1\n2,1\n", "3: 2,1\n  allowed: an expert from 0 to 1 and a load from 1e-09 to 1e+18"),
        ("expert,load\n0,1\n0,1\n", "3: expert 0 again\n  allowed: each expert once"),
        ("expert,load\n0,nan\n", "2: 0,nan\n  allowed: an expert from 0 to 1 and a load from 1e-09 to 1e+18"),
        ("expert,load\n0,x\n", "2: 0,x\n  allowed: an expert from 0 to 1 and a load from 1e-09 to 1e+18"),
        ("expert,load\n0\n", "2: 0\n  allowed: an expert from 0 to 1 and a load from 1e-09 to 1e+18"),
        ("expert,load\n0,1,2\n", "2: 0,1,2\n  allowed: an expert from 0 to 1 and a load from 1e-09 to 1e+18"),
        ("expert,load\n0,1\n", " no load of expert 1\n  allowed: a row for each of 2 experts"),
    ],
)
def test_a_wrong_file_of_loads_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """With its line."""
    file = tmp_path / "loads.csv"
    file.write_text(content)
    with pytest.raises(InputError) as error:
        read_loads(file, 2)
    assert str(error.value).replace(f"{file}:", "") == message


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """As are fields that never end."""
    file = tmp_path / "loads.csv"
    for content in (b"\xff\xfe", b'"' + b"x" * 200_000):
        file.write_bytes(content)
        with pytest.raises(InputError, match="no CSV text"):
            read_loads(file, 2)


def test_mistakes_name_their_keys() -> None:
    """All of one scenario at once, each with what is allowed."""
    message = refused(text("skew: 2\n  loads: x.csv", layout="dp: 16"))
    assert "traffic.layout.ep: degree 1" in message
    assert "next: set layout.ep to the ranks that share the experts" in message
    assert "traffic.skew: 2 beside loads" in message
    assert "traffic.experts.num_experts: 32\n  allowed: a multiple of ep 3" in refused(text(layout="dp: 3, ep: 3"))
    assert "traffic.routing: expected, of experts that are not alike" in refused(text("routing: expected\n  skew: 1"))
    assert "did you mean 'width'" in refused(text("hidden: 7168"))
    assert "did you mean 'num_choices'" in refused(text().replace("num_choices", "top_k"))


def test_what_would_take_all_memory_or_hours_is_refused() -> None:
    """2,048 ranks that all exchange with one another both ways, and 16 million tokens on each of 16 ranks."""
    message = refused(text(layout="dp: 2048, ep: 2048").replace("num_experts: 32", "num_experts: 2048"))
    assert "traffic.layout: 8,388,608 messages between ranks\n  allowed: 4,000,000" in message
    many = text().replace("num_tokens: 100", "num_tokens: 16000000").replace("num_experts: 32", "num_experts: 128")
    message = refused(many)
    assert "traffic.num_tokens: 256,000,000 tokens of 128 experts to draw\n  allowed: 134,217,728\n" in message
    assert "set routing: expected" in message


def test_nodes_need_equal_hosts() -> None:
    """Eight ranks on hosts of three GPUs."""
    message = refused(text("deduplication: node\n  gpus_per_host: 3", layout="dp: 8, ep: 8"))
    assert "traffic.deduplication: node, where the expert group of rank 0 has unequal numbers of ranks" in message
    assert "set deduplication: rank" in message


def test_expected_traffic_needs_groups_that_fit() -> None:
    """Groups of 8 experts, of which a host of three ranks with four each has one and a half."""
    scenario = text("routing: expected\n  gpus_per_host: 1", layout="dp: 4, ep: 4").replace("32", "48")
    scenario = scenario.replace("num_groups: 4, chosen_groups: 2", "num_groups: 6")
    assert "traffic.routing: expected, of groups of 8 experts where a rank or a host has 12" in refused(scenario)


def test_the_engine_takes_it_to_the_end() -> None:
    """Both phases with the experts' work between them, which adds to the makespan what it does not spread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)
        ends = [
            simulate(parse_scenario(text(more), Path("x.yaml")), with_collisions=False)
            for more in ("expert_compute: 0 us", "expert_compute: 50 us")
        ]
    finish_ps = [record.tables["transfers"]["finish_ps"].max() for record in ends]
    assert 49_500_000 < finish_ps[1] - finish_ps[0] <= 50_000_000

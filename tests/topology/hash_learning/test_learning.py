"""Learned hashes against modelled switches behind a wall: the learner sees headers and next hops, and nothing else."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fabrictune.topology.hash_learning.choices import Choice, ChoiceGroup, group_choices
from fabrictune.topology.hash_learning.fields import field_uses
from fabrictune.topology.hash_learning.headers import FlowHeader
from fabrictune.topology.hash_learning.known_functions import find_known_functions
from fabrictune.topology.hash_learning.linear_choice import LinearChoice, NoLinearChoice, learn_linear_choice
from fabrictune.topology.hash_learning.polynomials import find_polynomial
from fabrictune.topology.hash_learning.source_ports import plan_ports
from fabrictune.topology.hashing.crc import Crc
from fabrictune.topology.hashing.five_tuples import FIVE_TUPLE, FiveTuples, HeaderField
from fabrictune.topology.hashing.spec import HashSpec

SEED = np.uint64(0x9E3779B97F4A7C15)
LINEAR = (
    "crc16",
    "crc16_ccitt_false",
    "crc16_xmodem",
    "crc_ccitt",
    "crc32",
    "crc32_low",
    "crc32_high",
    "xor16",
    "crc_xor",
)


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A switch that hashes as a spec says, and whose next hops are in an order of its own."""

    spec: HashSpec
    num_next_hops: int

    def choices(self, num_flows: int, *, seed: int, wrong: float = 0.0) -> list[Choice]:
        """Return choices for random flows of 16 senders and 64 receivers, some of them wrong."""
        draw = np.random.default_rng(seed)
        headers = [
            FlowHeader(source_ipv4=0x0A000000 + source, destination_ipv4=0x0A010005 + 256 * target, source_port=port)
            for source, target, port in zip(
                *(draw.integers(low, high, num_flows).tolist() for low, high in ((0, 16), (0, 64), (49152, 65536))),
                strict=True,
            )
        ]
        flows = five_tuples(headers)
        index = self.spec.choose_among(flows, np.full(num_flows, SEED), np.full(num_flows, self.num_next_hops))
        is_wrong = draw.random(num_flows) < wrong
        index = np.where(is_wrong, draw.integers(0, self.num_next_hops, num_flows), index)
        names = np.random.default_rng(7).permutation(self.num_next_hops)
        return [
            Choice(switch="tor", header=header, next_hop=f"spine{names[row]}")
            for header, row in zip(headers, index.tolist(), strict=True)
        ]


def five_tuples(headers: list[FlowHeader]) -> FiveTuples:
    return FiveTuples(
        source_ipv4_F=np.array([header.source_ipv4 for header in headers]),
        destination_ipv4_F=np.array([header.destination_ipv4 for header in headers]),
        source_port_F=np.array([header.source_port for header in headers]),
        destination_qpn_F=np.array([header.destination_qpn for header in headers]),
    )


def learned(switch: Switch, *, num_flows: int = 300, wrong: float = 0.0) -> LinearChoice:
    (group,) = group_choices(switch.choices(num_flows, seed=1, wrong=wrong))
    choice = learn_linear_choice(group)
    assert isinstance(choice, LinearChoice)
    return choice


def num_right(choice: LinearChoice, unseen: list[Choice]) -> int:
    return sum(choice.next_hops_of(one.header) == (one.next_hop,) for one in unseen)


@pytest.mark.parametrize("num_next_hops", [2, 4, 8, 16])
@pytest.mark.parametrize("function", [*LINEAR, "toeplitz"])
def test_a_linear_hash_is_known_from_300_flows(function: str, num_next_hops: int) -> None:
    """All of 500 unseen flows get the next hop that was predicted, and the function is among those named."""
    switch = Switch(spec=HashSpec(function=function, rotation=3), num_next_hops=num_next_hops)
    choice = learned(switch)
    assert choice.is_whole
    assert num_right(choice, switch.choices(500, seed=2)) == 500
    named = [(known.name, known.rotation) for known in find_known_functions(choice)]
    assert (function, 3) in named or function == "toeplitz"


@pytest.mark.parametrize("function", ["crc16", "crc32"])
def test_wrong_observations_are_outvoted(function: str) -> None:
    """Of 400 observations 2 % are of paths that changed: still every unseen flow is predicted."""
    switch = Switch(spec=HashSpec(function=function), num_next_hops=8)
    choice = learned(switch, num_flows=400, wrong=0.02)
    assert choice.num_confirmed < 400
    assert num_right(choice, switch.choices(500, seed=2)) == 500


@pytest.mark.parametrize("fields", [("source_port",), ("destination_ip", "source_port"), FIVE_TUPLE])
def test_fields_are_found(fields: tuple[HeaderField, ...]) -> None:
    uses = field_uses(learned(Switch(spec=HashSpec(function="crc16_xmodem", fields=fields), num_next_hops=8)))
    for field in ("source_ip", "destination_ip", "source_port"):
        assert uses[field] == ("hashed" if field in fields else "no effect")
    assert uses["destination_qp"] == "unknown"  # no flow differs in it


@pytest.mark.parametrize("terms", [0x8BB7, 0x3D65, 0xA097])
@pytest.mark.parametrize("is_reflected", [False, True])
def test_a_polynomial_that_no_table_has_is_found(
    terms: int, is_reflected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T10-DIF's, DNP's and TELEDISK's: of 2^16 polynomials, 2 orders and 16 places few others fit."""
    crc = Crc(name="own", width=16, polynomial=terms, initial=0x1D0F, is_reflected=is_reflected, final_xor=0, check=0)
    monkeypatch.setattr("fabrictune.topology.hashing.crc16.ARC", crc)
    choice = learned(Switch(spec=HashSpec(function="crc16"), num_next_hops=16))
    monkeypatch.undo()
    found = [(one.terms, one.is_reflected) for one in find_polynomial(choice).polynomials]
    assert (terms, is_reflected) in found
    assert len(found) <= 4
    assert not find_known_functions(choice)


def test_a_toeplitz_hash_has_no_polynomial() -> None:
    search = find_polynomial(learned(Switch(spec=HashSpec(function="toeplitz"), num_next_hops=8)))
    assert not search.polynomials
    assert search.degrees == (8, 16, 32)


def test_a_hash_that_mixes_is_refused() -> None:
    (group,) = group_choices(Switch(spec=HashSpec(), num_next_hops=8).choices(300, seed=1))
    choice = learn_linear_choice(group)
    assert isinstance(choice, NoLinearChoice)
    assert choice.is_refuted


def test_six_next_hops_show_the_power_of_two_in_six() -> None:
    """The index modulo 6 is even where the hash is: one relation, and two sets of three next hops."""
    choice = learned(Switch(spec=HashSpec(function="crc16_xmodem"), num_next_hops=6), num_flows=400)
    assert len(choice.functionals) == 1
    assert sorted(choice.codes) == [0, 0, 0, 1, 1, 1]
    assert not choice.is_whole


def test_few_observations_are_not_enough() -> None:
    """7 next hops beside the first and 24 header bits are 31 unknowns, and 20 equations beyond them are asked for."""
    (group,) = group_choices(Switch(spec=HashSpec(function="crc16"), num_next_hops=8).choices(300, seed=1))
    few = replace(group, headers=group.headers[:45], chosen=group.chosen[:45])
    choice = learn_linear_choice(few)
    assert isinstance(choice, NoLinearChoice)
    assert not choice.is_refuted
    assert choice.num_missing == 6


def test_the_seed_is_known_where_next_hops_are_in_order() -> None:
    """A seed of 5 adds 5 to the index of a fold; next hops named by their index show it."""
    spec = HashSpec(function="xor16")
    headers = [one.header for one in Switch(spec=spec, num_next_hops=8).choices(300, seed=1)]
    index = spec.choose_among(five_tuples(headers), np.full(300, np.uint64(5)), np.full(300, 8))
    (group,) = group_choices(
        Choice(switch="tor", header=header, next_hop=f"Ethernet{4 * row}")
        for header, row in zip(headers, index.tolist(), strict=True)
    )
    choice = learn_linear_choice(group)
    assert isinstance(choice, LinearChoice)
    assert ("xor16", 5) in {
        (known.name, known.index_shift) for known in find_known_functions(choice) if "destination_ip" in known.fields
    }


def test_planned_ports_spread_evenly() -> None:
    """64 flows over 8 next hops: 8 on each, by the switch itself."""
    switch = Switch(spec=HashSpec(function="crc16"), num_next_hops=8)
    flows = [
        FlowHeader(source_ipv4=0x0A000000 + n % 16, destination_ipv4=0x0A010005 + 256 * n, source_port=49152)
        for n in range(64)
    ]
    planned = plan_ports(learned(switch), flows)
    index = switch.spec.choose_among(five_tuples([port.header for port in planned]), np.full(64, SEED), np.full(64, 8))
    assert np.bincount(index, minlength=8).tolist() == [8] * 8


def test_an_address_unlike_the_observed_ones_keeps_its_port() -> None:
    choice = learned(Switch(spec=HashSpec(function="crc16"), num_next_hops=8))
    (planned,) = plan_ports(choice, [FlowHeader(source_ipv4=0xC0000000, destination_ipv4=1, source_port=50000)])
    assert (planned.next_hop, planned.header.source_port) == ("", 50000)


def test_a_header_with_two_next_hops_is_left_out() -> None:
    header = FlowHeader(source_ipv4=1, destination_ipv4=2, source_port=49152)
    choices = [Choice(switch="tor", header=header, next_hop=hop) for hop in ("a", "b")]
    other = Choice(switch="tor", header=replace(header, source_port=49153), next_hop="a")
    assert group_choices([*choices, other]) == (
        ChoiceGroup(switch="tor", next_hops=("a", "b"), headers=(other.header,), chosen=(0,), num_changing=1),
    )

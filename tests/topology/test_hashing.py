"""How switches choose: even shares, seeds, fields, rotation and roles."""

import numpy as np
import pytest

from fabrictune.conformance.topology.hash_functions import excess_chi_square
from fabrictune.foundation.errors import InputError
from fabrictune.topology.hashing import HASHES, FiveTuples, HashSpec, TierHash
from fabrictune.topology.hashing.five_tuples import FIVE_TUPLE, HEADER_FIELDS, HeaderField
from fabrictune.topology.hashing.sonic import SONIC_ALGORITHMS

BASE = {"source_ip": 0x0A000001, "destination_ip": 0x0A000099, "source_port": 0xC123, "destination_qp": 0x100}


def flows(num_flows: int) -> FiveTuples:
    """Return flows of one pair of NICs that differ in their source port alone."""
    return FiveTuples(
        source_ipv4_F=np.full(num_flows, 0x0A000001),
        destination_ipv4_F=np.full(num_flows, 0x0A000099),
        source_port_F=0xC000 + np.arange(num_flows),
    )


def flow(**values: int) -> FiveTuples:
    """Return one flow: BASE with some of its values changed."""
    column = {name: np.array([value]) for name, value in (BASE | values).items()}
    return FiveTuples(
        source_ipv4_F=column["source_ip"],
        destination_ipv4_F=column["destination_ip"],
        source_port_F=column["source_port"],
        destination_qpn_F=column["destination_qp"],
    )


@pytest.mark.parametrize("function", HASHES)
@pytest.mark.parametrize("num_choices", [2, 7, 32, 64])
def test_no_port_gets_a_quarter_more_than_its_share(function: str, num_choices: int) -> None:
    """Of 16,384 flows that differ in their source port alone; 256 a port have a standard deviation of 6 %."""
    num_flows = 2**14
    seed_F = np.full(num_flows, HashSpec(seed=5).node_seeds(1)[0])
    chosen_F = HashSpec(function=function).choose_among(flows(num_flows), seed_F, np.full(num_flows, num_choices))
    assert np.bincount(chosen_F, minlength=num_choices).max() < 1.25 * num_flows / num_choices


@pytest.mark.parametrize("function", sorted(set(HASHES) - {"crc16"}))
@pytest.mark.parametrize("num_choices", [4, 32])
def test_real_queue_pairs_are_spread_evenly(function: str, num_choices: int) -> None:
    """Their chi-square is not above what chance gives; below it is no fault."""
    assert excess_chi_square(HashSpec(function=function, seed=5), num_choices) < 5


def test_crc16s_lowest_two_bits_spread_real_queue_pairs_unevenly() -> None:
    """Found by this very test; an index taken a bit higher is even."""
    assert excess_chi_square(HashSpec(function="crc16", seed=5), 4) > 20
    assert excess_chi_square(HashSpec(function="crc16", seed=5, rotation=1), 4) < 5


@pytest.mark.parametrize("function", HASHES)
def test_a_hash_has_the_bits_it_states(function: str) -> None:
    """The highest of them is used, and none above it: rotation would lose or invent bits otherwise."""
    seed_F = np.full(4096, 3, np.uint64)
    used = int(np.bitwise_or.reduce(HASHES[function].hash_flows(flows(4096), seed_F)))
    assert used.bit_length() == HASHES[function].num_bits


@pytest.mark.parametrize("function", HASHES)
def test_the_table_says_what_a_seed_does(function: str) -> None:
    """Where a seed shifts, the exclusive or of two seeds' hashes is one and the same for all flows."""
    one, two = (HASHES[function].hash_flows(flows(100), np.full(100, seed, np.uint64)) for seed in (11, 22))
    assert (len(set((one ^ two).tolist())) == 1) == HASHES[function].is_shifted_by_seed


def test_seeds_differ_by_switch_or_not_at_all() -> None:
    """One seed for all switches is the configuration that polarizes."""
    assert len(set(HashSpec().node_seeds(1000).tolist())) == 1000
    assert len(set(HashSpec(seed_per_switch=False).node_seeds(1000).tolist())) == 1
    assert HashSpec(seed=1).node_seeds(1) != HashSpec(seed=2).node_seeds(1)


@pytest.mark.parametrize("function", HASHES)
@pytest.mark.parametrize("changed", sorted(BASE))
def test_only_chosen_fields_matter(function: str, changed: HeaderField) -> None:
    """A field that is not chosen counts as zero; one that is changes the hash."""
    seed = np.zeros(1, np.uint64)
    without = tuple(field for field in HEADER_FIELDS if field != changed)
    for fields, is_different in ((HEADER_FIELDS, True), (without, False)):
        spec = HashSpec(function=function, fields=fields)
        before, after = (spec.hash_flows(one, seed)[0] for one in (flow(), flow(**{changed: BASE[changed] ^ 4})))
        assert (before != after) == is_different


def test_the_queue_pair_is_no_part_of_the_five_tuple() -> None:
    """E-ECMP has to be asked for."""
    assert "destination_qp" not in FIVE_TUPLE
    assert flow().wire_bytes().shape == (1, 13)
    assert flow().choosing(HEADER_FIELDS).wire_bytes()[0, 13:].tolist() == [0, 1, 0]


def test_rotation_moves_low_bits_to_the_top() -> None:
    """0xCAFE turned right by 4 of its 16 bits is 0xECAF."""
    plain = HashSpec(function="crc16").hash_flows(flows(1000), np.zeros(1000, np.uint64))
    turned = HashSpec(function="crc16", rotation=4).hash_flows(flows(1000), np.zeros(1000, np.uint64))
    assert [f"{value:04x}" for value in turned] == [f"{value:04x}"[-1] + f"{value:04x}"[:-1] for value in plain]


def test_a_tier_has_its_own_role() -> None:
    """What the role leaves open is as in the rest of the fabric."""
    spec = HashSpec(function="crc16", seed=1, tiers=(TierHash(tier=2, function="crc32", rotation=3),))
    assert spec.at_tier(1) == HashSpec(function="crc16", seed=1)
    assert spec.at_tier(2) == HashSpec(function="crc32", seed=1, rotation=3)


def test_sonics_names_are_functions_here() -> None:
    """All seven of its `ecmp_hash_algorithm`."""
    assert len(SONIC_ALGORITHMS) == 7
    assert set(SONIC_ALGORITHMS.values()) <= set(HASHES)


def test_an_unknown_function_is_refused_with_the_nearest() -> None:
    """The message lists what there is."""
    with pytest.raises(InputError) as raised:
        HashSpec(function="crc23")
    assert str(raised.value) == (
        "function: unknown hash function 'crc23'\n  did you mean 'crc32'?\n"
        "  allowed: mixer, crc32, crc32_low, crc32_high, crc16, crc16_ccitt_false, crc16_xmodem, crc_ccitt, xor16, "
        "crc_xor, toeplitz"
    )


def test_all_settings_out_of_range_are_named_at_once() -> None:
    """One run shows every mistake."""
    role = TierHash(tier=1)
    with pytest.raises(InputError) as raised:
        HashSpec(seed=-1, rotation=16, resilient_buckets=0, fields=(), tiers=(role, role))
    assert str(raised.value) == (
        "seed: -1\n  allowed: 0 to 2**63 - 1\n"
        "rotation: 16\n  allowed: 0 to 15\n"
        "resilient_buckets: 0\n  allowed: 1 to 65536\n"
        "fields: none\n  allowed: one header field at least\n"
        "tiers: a tier twice\n  allowed: each tier once"
    )


def test_a_role_is_checked_where_it_is_made() -> None:
    """A scenario then points to its line."""
    with pytest.raises(InputError, match="rotation: 99"):
        TierHash(tier=2, rotation=99)

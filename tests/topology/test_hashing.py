"""The hash models against slow ones, and the properties that make them good or bad."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.errors import InputError
from foundation.rocev2 import UDP_PORT
from topology.hashing import HASHES, HashSpec
from topology.hashing.crc32 import crc32, hash_crc32
from topology.hashing.five_tuples import FiveTuples
from topology.hashing.mixer import hash_mixer, mix

MASK = 2**64 - 1

addresses = st.integers(0, 2**32 - 1)
ports = st.integers(0, 2**16 - 1)


def flows(num_flows: int) -> FiveTuples:
    """Return flows of one pair of NICs that differ in their source port alone."""
    return FiveTuples(
        source_ipv4_F=np.full(num_flows, 0x0A000001),
        destination_ipv4_F=np.full(num_flows, 0x0A000099),
        source_port_F=0xC000 + np.arange(num_flows),
    )


def slow_mix(value: int) -> int:
    """SplitMix64 as its paper writes it, on Python's whole numbers."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def test_mix_gives_splitmix64s_first_outputs() -> None:
    """From state 0 the reference generator's first two outputs are these; the state grows by the increment."""
    state = np.array([0, 0x9E3779B97F4A7C15], np.uint64)
    assert mix(state).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@given(source=addresses, destination=addresses, port=ports, seed=st.integers(0, MASK))
def test_mixer_equals_the_slow_one(source: int, destination: int, port: int, seed: int) -> None:
    """Array arithmetic that wraps at 64 bits is the same as whole numbers cut at 64 bits."""
    flow = FiveTuples(
        source_ipv4_F=np.array([source]), destination_ipv4_F=np.array([destination]), source_port_F=np.array([port])
    )
    expected = slow_mix(slow_mix(seed) ^ (source << 32 | destination))
    expected = slow_mix(expected ^ (17 << 32 | port << 16 | UDP_PORT))
    assert int(hash_mixer(flow, np.array([seed], np.uint64))[0]) == expected


@given(source=addresses, destination=addresses, port=ports, seed=st.integers(0, MASK))
def test_crc32_equals_zlibs_on_wire_bytes(source: int, destination: int, port: int, seed: int) -> None:
    """zlib takes the seed as the running value, which is our register's initial value."""
    flow = FiveTuples(
        source_ipv4_F=np.array([source]), destination_ipv4_F=np.array([destination]), source_port_F=np.array([port])
    )
    wire = source.to_bytes(4) + destination.to_bytes(4) + b"\x11" + port.to_bytes(2) + UDP_PORT.to_bytes(2)
    assert int(hash_crc32(flow, np.array([seed], np.uint64))[0]) == zlib.crc32(wire, seed & 0xFFFFFFFF)


def test_crc32_check_value() -> None:
    """The catalogue's check value of CRC-32/ISO-HDLC."""
    digits = np.frombuffer(b"123456789", np.uint8)[None, :]
    assert int(crc32(digits, np.zeros(1, np.uint32))[0]) == 0xCBF43926


@pytest.mark.parametrize("function", HASHES)
@pytest.mark.parametrize("num_choices", [2, 7, 32, 64])
def test_choices_are_even(function: str, num_choices: int) -> None:
    """Chi-square over 16,384 source ports: mean m - 1, standard deviation sqrt(2 (m - 1)); five of them allowed."""
    num_flows = 2**14
    seed_F = np.full(num_flows, HashSpec(seed=5).node_seeds(1)[0])
    chosen_F = HashSpec(function=function).choose_among(flows(num_flows), seed_F, np.full(num_flows, num_choices))
    counts = np.bincount(chosen_F, minlength=num_choices)
    expected = num_flows / num_choices
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < num_choices - 1 + 5 * (2 * (num_choices - 1)) ** 0.5


def test_one_bit_flips_half_of_the_mixers() -> None:
    """Of 64 bits, 32 change with any one bit of the source port: between 31 and 33 on the mean of 4,096 flows."""
    base = flows(4096)
    seed_F = np.zeros(4096, np.uint64)
    for bit in range(14):
        changed = FiveTuples(
            source_ipv4_F=base.source_ipv4_F,
            destination_ipv4_F=base.destination_ipv4_F,
            source_port_F=base.source_port_F ^ (1 << bit),
        )
        difference = hash_mixer(base, seed_F) ^ hash_mixer(changed, seed_F)
        mean = np.unpackbits(difference.view(np.uint8)).sum() / 4096
        assert 31 < mean < 33


def test_another_seed_flips_the_same_bits_of_every_crc() -> None:
    """CRC is linear, which is why seeds do not cure polarization under it."""
    difference = hash_crc32(flows(100), np.full(100, 1, np.uint64)) ^ hash_crc32(flows(100), np.full(100, 2, np.uint64))
    assert len(set(difference.tolist())) == 1


def test_seeds_differ_by_switch_or_not_at_all() -> None:
    """One seed for all switches is the configuration that polarizes."""
    assert len(set(HashSpec().node_seeds(1000).tolist())) == 1000
    assert len(set(HashSpec(seed_per_switch=False).node_seeds(1000).tolist())) == 1
    assert HashSpec(seed=1).node_seeds(1) != HashSpec(seed=2).node_seeds(1)


def test_an_unknown_function_is_refused_with_the_nearest() -> None:
    """The message lists what there is."""
    with pytest.raises(InputError) as raised:
        HashSpec(function="crc23")
    assert str(raised.value) == (
        "function: unknown hash function 'crc23'\n  did you mean 'crc32'?\n  allowed: mixer, crc32"
    )

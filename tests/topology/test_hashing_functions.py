"""Every hash function against its standard's values, another implementation, or a slow one."""

import binascii
import ipaddress
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.rocev2 import UDP_PORT
from fabrictune.topology.hashing import FiveTuples
from fabrictune.topology.hashing.crc import Crc
from fabrictune.topology.hashing.crc16 import ARC, CCITT_FALSE, KERMIT, XMODEM
from fabrictune.topology.hashing.crc32 import ISO_HDLC, hash_crc32, hash_crc32_high, hash_crc32_low
from fabrictune.topology.hashing.mixer import hash_mixer, mix_bits
from fabrictune.topology.hashing.toeplitz import hash_toeplitz, toeplitz
from fabrictune.topology.hashing.xor16 import hash_crc_xor, hash_xor16

MASK = 2**64 - 1
VERIFICATION_KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
VERIFICATION_SUITE = (  # destination, source, hash of addresses, hash of addresses and ports
    ("161.142.100.80:1766", "66.9.149.187:2794", 0x323E8FC2, 0x51CCC178),
    ("65.69.140.83:4739", "199.92.111.2:14230", 0xD718262A, 0xC626B0EA),
    ("12.22.207.184:38024", "24.19.198.95:12898", 0xD2D0A5DE, 0x5C2B394A),
    ("209.142.163.6:2217", "38.27.205.30:48228", 0x82989176, 0xAFC7327F),
    ("202.188.127.2:1303", "153.39.163.191:44251", 0x5D1809C5, 0x10E828A2),
)

addresses = st.integers(0, 2**32 - 1)
ports = st.integers(0, 2**16 - 1)
seeds = st.integers(0, MASK)


def flow(source: int, destination: int, port: int) -> FiveTuples:
    """Return one flow."""
    return FiveTuples(
        source_ipv4_F=np.array([source]), destination_ipv4_F=np.array([destination]), source_port_F=np.array([port])
    )


def wire(source: int, destination: int, port: int) -> bytes:
    """Return the flow's 13 bytes."""
    return source.to_bytes(4) + destination.to_bytes(4) + b"\x11" + port.to_bytes(2) + UDP_PORT.to_bytes(2)


def rows(data: bytes) -> np.ndarray:
    """Return one row of bytes."""
    return np.frombuffer(data, np.uint8)[None, :]


def slow_mix(value: int) -> int:
    """SplitMix64 as its paper writes it, on Python's whole numbers."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def slow_crc(crc: Crc, data: bytes, initial: int) -> int:
    """Divide bit by bit, reflected or not, as the painless guide's model algorithm does."""
    register = initial if not crc.is_reflected else int(f"{initial:0{crc.width}b}"[::-1], 2)
    for byte in data:
        for bit in range(8):
            entering = byte >> (bit if crc.is_reflected else 7 - bit) & 1
            leaving = register >> (crc.width - 1) & 1
            register = register << 1 & 2**crc.width - 1
            if entering != leaving:
                register ^= crc.polynomial
    result = int(f"{register:0{crc.width}b}"[::-1], 2) if crc.is_reflected else register
    return result ^ crc.final_xor


def slow_toeplitz(data: bytes, key: bytes) -> int:
    """Slide the key bit by bit, as the driver documentation's pseudo-code does."""
    key_bits = int.from_bytes(key)
    result = 0
    for place in range(8 * len(data)):
        if data[place // 8] >> (7 - place % 8) & 1:
            result ^= key_bits >> (8 * len(key) - 32 - place) & 0xFFFFFFFF
    return result


def test_mix_gives_splitmix64s_first_outputs() -> None:
    """From state 0 the reference generator's first two outputs are these; the state grows by the increment."""
    state = np.array([0, 0x9E3779B97F4A7C15], np.uint64)
    assert mix_bits(state).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@given(source=addresses, destination=addresses, port=ports, seed=seeds)
def test_mixer_equals_the_slow_one(source: int, destination: int, port: int, seed: int) -> None:
    """Array arithmetic that wraps at 64 bits is the same as whole numbers cut at 64 bits."""
    expected = slow_mix(slow_mix(seed) ^ (source << 32 | destination))
    expected = slow_mix(expected ^ (17 << 32 | port << 16 | UDP_PORT))
    assert int(hash_mixer(flow(source, destination, port), np.array([seed], np.uint64))[0]) == expected


def test_one_bit_flips_half_of_the_mixers() -> None:
    """Of 64 bits, 32 change with any one bit of the source port: between 31 and 33 on the mean of 4,096 flows."""
    seed_F, port_F = np.zeros(4096, np.uint64), 0xC000 + np.arange(4096)

    def hashes(port_F: np.ndarray) -> np.ndarray:
        same_F = np.full(4096, 0x0A000001)
        return hash_mixer(FiveTuples(source_ipv4_F=same_F, destination_ipv4_F=same_F, source_port_F=port_F), seed_F)

    for bit in range(14):
        difference = hashes(port_F) ^ hashes(port_F ^ (1 << bit))
        mean = np.unpackbits(difference.view(np.uint8)).sum() / 4096
        assert 31 < mean < 33


@pytest.mark.parametrize("crc", [ARC, CCITT_FALSE, XMODEM, KERMIT, ISO_HDLC], ids=lambda crc: crc.name)
def test_crcs_have_their_catalogued_check_values(crc: Crc) -> None:
    """Of the nine bytes "123456789", as the catalogue lists them."""
    assert int(crc(rows(b"123456789"), np.zeros(1, np.uint64))[0]) == crc.check


@pytest.mark.parametrize("crc", [ARC, CCITT_FALSE, XMODEM, KERMIT, ISO_HDLC], ids=lambda crc: crc.name)
@given(data=st.binary(min_size=4, max_size=20), seed=seeds)
def test_crcs_equal_bitwise_division(crc: Crc, data: bytes, seed: int) -> None:
    """A table a place is the same as one register that the whole message runs through."""
    seed &= 2**crc.width - 1
    expected = slow_crc(crc, data, crc.initial ^ seed)
    assert int(crc(rows(data), np.array([seed], np.uint64))[0]) == expected


@given(source=addresses, destination=addresses, port=ports, seed=seeds)
def test_crc32_equals_zlibs_on_wire_bytes(source: int, destination: int, port: int, seed: int) -> None:
    """zlib takes the seed as the running value, which is our register's initial value; the halves are its halves."""
    one, seed_F = flow(source, destination, port), np.array([seed], np.uint64)
    expected = zlib.crc32(wire(source, destination, port), seed & 0xFFFFFFFF)
    assert int(hash_crc32(one, seed_F)[0]) == expected
    assert int(hash_crc32_high(one, seed_F)[0]) << 16 | int(hash_crc32_low(one, seed_F)[0]) == expected


@given(data=st.binary(min_size=2, max_size=20), seed=ports)
def test_xmodem_equals_the_standard_librarys(data: bytes, seed: int) -> None:
    """`binascii.crc_hqx` is the same polynomial and order of bits, with the seed as its initial value."""
    assert int(XMODEM(rows(data), np.array([seed], np.uint64))[0]) == binascii.crc_hqx(data, seed)


@given(source=addresses, destination=addresses, port=ports, seed=ports)
def test_xor_folds_all_words_of_the_header(source: int, destination: int, port: int, seed: int) -> None:
    """Seven 16-bit words, and the lower byte of the mixed one is folded once more."""
    words = (source >> 16, source & 0xFFFF, destination >> 16, destination & 0xFFFF, 17, port, UDP_PORT, seed)
    expected = 0
    for word in words:
        expected ^= word
    one, seed_F = flow(source, destination, port), np.array([seed], np.uint64)
    assert int(hash_xor16(one, seed_F)[0]) == expected
    arc = int(ARC(rows(wire(source, destination, port)), seed_F)[0])
    assert int(hash_crc_xor(one, seed_F)[0]) == (arc & 0xFF00) | ((expected >> 8 ^ expected) & 0xFF)


@pytest.mark.parametrize(("destination", "source", "by_addresses", "by_ports"), VERIFICATION_SUITE)
def test_toeplitz_passes_the_verification_suite(
    destination: str, source: str, by_addresses: int, by_ports: int
) -> None:
    """Microsoft's IPv4 vectors, without and with ports; the order is source before destination."""
    ends = [end.split(":") for end in (source, destination)]
    address_bytes = b"".join(ipaddress.IPv4Address(address).packed for address, _ in ends)
    port_bytes = b"".join(int(port).to_bytes(2) for _, port in ends)
    seed_F = np.zeros(1, np.uint64)
    assert int(toeplitz(rows(address_bytes), seed_F)[0]) == by_addresses
    assert int(toeplitz(rows(address_bytes + port_bytes), seed_F)[0]) == by_ports
    assert slow_toeplitz(address_bytes + port_bytes, VERIFICATION_KEY) == by_ports


@given(source=addresses, destination=addresses, port=ports)
def test_toeplitz_leaves_the_protocol_out(source: int, destination: int, port: int) -> None:
    """Its input is addresses and ports."""
    data = wire(source, destination, port)
    expected = slow_toeplitz(data[:8] + data[9:], VERIFICATION_KEY)
    assert int(hash_toeplitz(flow(source, destination, port), np.zeros(1, np.uint64))[0]) == expected


def test_toeplitz_keys_do_not_mix() -> None:
    """Flows of many seeds in one call are hashed as each would be alone."""
    data = np.arange(12 * 50, dtype=np.uint8).reshape(50, 12)
    seed_F = np.arange(50, dtype=np.uint64) % np.uint64(7)
    together = toeplitz(data, seed_F)
    alone = [int(toeplitz(data[[row]], seed_F[[row]])[0]) for row in range(50)]
    assert together.tolist() == alone
    assert len(set(toeplitz(np.repeat(data[:1], 7, axis=0), np.arange(7, dtype=np.uint64)).tolist())) == 7

"""Hash functions against the values their standards publish, and how evenly they spread real queue pairs."""

import ipaddress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.rocev2 import source_port
from fabrictune.topology.hashing import HASHES, FiveTuples, HashSpec
from fabrictune.topology.hashing.crc import Crc
from fabrictune.topology.hashing.crc16 import ARC, CCITT_FALSE, KERMIT, XMODEM
from fabrictune.topology.hashing.crc32 import ISO_HDLC
from fabrictune.topology.hashing.toeplitz import toeplitz

RSS_VECTORS = (  # destination, source, hash of addresses, hash of addresses and ports
    ("161.142.100.80:1766", "66.9.149.187:2794", 0x323E8FC2, 0x51CCC178),
    ("65.69.140.83:4739", "199.92.111.2:14230", 0xD718262A, 0xC626B0EA),
    ("12.22.207.184:38024", "24.19.198.95:12898", 0xD2D0A5DE, 0x5C2B394A),
    ("209.142.163.6:2217", "38.27.205.30:48228", 0x82989176, 0xAFC7327F),
    ("202.188.127.2:1303", "153.39.163.191:44251", 0x5D1809C5, 0x10E828A2),
)
NUM_CHOICES = 32
NUM_PAIRS = 64  # of NICs
NUM_QPS = 64  # a side
MOST_DEVIATIONS = 5.0


def cases() -> tuple[Case, ...]:
    """Return the cases of hash functions."""
    return (*_check_values(), *_rss_vectors(), *_evenness())


def _check_values() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"topology.{crc.name.lower().replace('/', '-')}-check-value",
            source=f'catalogue of parametrised CRC algorithms: {crc.name} of "123456789" is {crc.check:#x}',
            unit="",
            **exactly(crc.check),
            run=partial(_check_value, crc),
        )
        for crc in (ARC, CCITT_FALSE, XMODEM, KERMIT, ISO_HDLC)
    )


def _rss_vectors() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"topology.toeplitz-vector-{number}-{what}",
            source="Microsoft, verifying the RSS hash calculation, IPv4",
            unit="",
            **exactly(expected),
            run=partial(_rss_hash, source, destination, has_ports),
        )
        for number, (destination, source, by_addresses, by_ports) in enumerate(RSS_VECTORS, start=1)
        for what, has_ports, expected in (("addresses", False, by_addresses), ("ports", True, by_ports))
    )


def _evenness() -> tuple[Case, ...]:
    """Below chance is no fault: a linear hash deals numbers that count upwards more evenly than dice would."""
    return tuple(
        Case(
            name=f"topology.chi-square-{name}",
            source="chi-square of 32 choices by real queue pairs: 31 on average, with a standard deviation of sqrt(62)",
            unit="deviations",
            expected=0.0,
            low=-MOST_DEVIATIONS,
            high=MOST_DEVIATIONS,
            run=partial(excess_chi_square, HashSpec(function=name, rotation=1 if name == "crc16" else 0)),
        )
        for name in HASHES
    )


def excess_chi_square(spec: HashSpec, num_choices: int = NUM_CHOICES) -> float:
    """Return by how many standard deviations the chi-square of real queue pairs is above chance.

    The flows are all those between 64 pairs of NICs with 64 queue-pair numbers a side, each 5-tuple once: numbers as a
    driver gives them, so that source ports have the entropy they have on a fabric.
    """
    pair, local, remote = (axis.ravel() for axis in np.meshgrid(*map(np.arange, (NUM_PAIRS, NUM_QPS, NUM_QPS))))
    pair_F, port_F = np.divmod(np.unique(pair << 16 | source_port(0x100 + local, 0x100 + remote)), 2**16)
    flows = FiveTuples(
        source_ipv4_F=0x0A000001 + pair_F,
        destination_ipv4_F=0x0A000001 + 512 * (pair_F + 1),
        source_port_F=port_F,
    )
    seed_F = np.full(len(flows), spec.node_seeds(1)[0])
    chosen_F = spec.choose_among(flows, seed_F, np.full(len(flows), num_choices))
    expected = len(flows) / num_choices
    chi_square = float(((np.bincount(chosen_F, minlength=num_choices) - expected) ** 2 / expected).sum())
    freedom = num_choices - 1
    return (chi_square - freedom) / float(np.sqrt(2 * freedom))


def _check_value(crc: Crc) -> float:
    return float(crc(_row(b"123456789"), np.zeros(1, np.uint64))[0])


def _rss_hash(source: str, destination: str, has_ports: bool) -> float:
    ends = [end.split(":") for end in (source, destination)]
    data = b"".join(ipaddress.IPv4Address(address).packed for address, _ in ends)
    data += b"".join(int(port).to_bytes(2) for _, port in ends) if has_ports else b""
    return float(toeplitz(_row(data), np.zeros(1, np.uint64))[0])


def _row(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)[None, :]

"""Hash algorithms of SONiC's `SWITCH_HASH` table, and the function here that models each.

The names say a family and no more: polynomial, initial value, bit order and which bits become an index are the chip's.
A result under such a name shows how that family behaves, not which link a given switch will choose; where that matters,
compare with what the switch's counters show.

Source: SONiC `SWITCH_HASH|GLOBAL` (`ecmp_hash_algorithm`); SAI `sai_hash_algorithm_t`.
"""

from collections.abc import Mapping

SONIC_ALGORITHMS: Mapping[str, str] = {
    "CRC": "crc16",
    "XOR": "xor16",
    "RANDOM": "mixer",
    "CRC_32LO": "crc32_low",
    "CRC_32HI": "crc32_high",
    "CRC_CCITT": "crc_ccitt",
    "CRC_XOR": "crc_xor",
}

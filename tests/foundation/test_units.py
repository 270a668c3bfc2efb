"""Text with a unit becomes a whole number, exactly, or is refused with a message that says what to write."""

from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import UnitError
from fabrictune.foundation.units import (
    BYTE_UNITS,
    DURATION_UNITS,
    LENGTH_UNITS,
    RATE_UNITS,
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration_ps,
    parse_fraction,
    parse_length_mm,
    parse_rate_bps,
)

Parser = Callable[[str], int]
PARSERS: dict[Parser, Mapping[str, int]] = {
    parse_rate_bps: RATE_UNITS,
    parse_bytes: BYTE_UNITS,
    parse_duration_ps: DURATION_UNITS,
    parse_length_mm: LENGTH_UNITS,
}


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_rate_bps, "400 Gbps", 400_000_000_000),
        (parse_rate_bps, "400Gb/s", 400_000_000_000),
        (parse_rate_bps, "1.6 Tbps", 1_600_000_000_000),
        (parse_rate_bps, "400G", 400_000_000_000),
        (parse_rate_bps, "400g", 400_000_000_000),
        (parse_rate_bps, "100GbE", 100_000_000_000),
        (parse_rate_bps, "25 Gb/sec", 25_000_000_000),
        (parse_rate_bps, "1.6T", 1_600_000_000_000),
        (parse_rate_bps, "10 Gbit/s", 10_000_000_000),
        (parse_rate_bps, "2.5e3 Mbps", 2_500_000_000),
        (parse_bytes, "9 MB", 9_000_000),
        (parse_bytes, "9 MiB", 9 * 1024 * 1024),
        (parse_bytes, " 1.5 KiB ", 1536),
        (parse_bytes, "0 B", 0),
        (parse_duration_ps, "5 us", 5_000_000),
        (parse_duration_ps, "5 \u00b5s", 5_000_000),
        (parse_duration_ps, "0.1 ns", 100),
        (parse_duration_ps, "2 min", 120 * 10**12),
        (parse_length_mm, "2.5 m", 2_500),
        (parse_length_mm, "+3 cm", 30),
    ],
)
def test_text_with_a_unit_becomes_a_whole_number_of_the_base_unit(parse: Parser, text: str, expected: int) -> None:
    """Powers of ten, except KiB to TiB; both spellings of bits a second and of micro."""
    assert parse(text) == expected


@pytest.mark.parametrize("parse", PARSERS)
@given(data=st.data())
def test_a_whole_number_in_any_unit_is_exact(parse: Parser, data: st.DataObject) -> None:
    """`n unit` is n times the unit's size, with no float on the way, up to 2**63 - 1."""
    units = PARSERS[parse]
    unit = data.draw(st.sampled_from(sorted(units)))
    count = data.draw(st.integers(0, (2**63 - 1) // units[unit]).filter(lambda value: value < 10**18))
    assert parse(f"{count} {unit}") == count * units[unit]


@given(st.integers(1, 10**18 - 1))
def test_a_decimal_point_only_moves_digits(count: int) -> None:
    """x.yyy Gbps with nine decimals is the same number of bits a second as its digits without the point."""
    count %= 9 * 10**18 // 10**9  # below 2**63 in bps
    assert parse_rate_bps(f"{count // 10**9}.{count % 10**9:09d} Gbps") == count


@given(st.text(max_size=120))
def test_any_text_is_a_quantity_or_a_unit_error(text: str) -> None:
    """No other exception reaches the caller, whatever stands in the file."""
    parsers: tuple[Callable[[str], float], ...] = (*PARSERS, parse_fraction)
    for parse in parsers:
        with suppress(UnitError):
            assert parse(text) >= 0


RATE_ALLOWED = "a number and one of bps, Kbps, Mbps, Gbps, Tbps; for example '400 Gbps'"
BYTES_ALLOWED = "a number and one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; for example '9 MB'"
DURATION_ALLOWED = "a number and one of ps, ns, us, ms, s, min, h; for example '5 us'"


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_rate_bps, "fast", f"'fast': not a rate\n  allowed: {RATE_ALLOWED}"),
        (parse_rate_bps, "", f"'': not a rate\n  allowed: {RATE_ALLOWED}"),
        (parse_rate_bps, "400", f"'400': a rate needs its unit\n  allowed: {RATE_ALLOWED}"),
        (
            parse_rate_bps,
            "400 gbits",
            f"'400 gbits': 'gbits' is no unit of rate\n  did you mean 'Gbps'?\n  allowed: {RATE_ALLOWED}",
        ),
        (parse_rate_bps, "-1 Gbps", f"'-1 Gbps': a rate is not negative\n  allowed: {RATE_ALLOWED}"),
        (parse_rate_bps, "0.5 bps", f"'0.5 bps': no whole number of bps\n  allowed: {RATE_ALLOWED}"),
        (parse_rate_bps, "1e9 Tbps", "'1e9 Tbps': too large a rate\n  allowed: below 9223372036854775808 bps"),
        (
            parse_bytes,
            "9 MiBs",
            f"'9 MiBs': 'MiBs' is no unit of size\n  did you mean 'MiB'?\n  allowed: {BYTES_ALLOWED}",
        ),
        (
            parse_bytes,
            "3 Gbps",
            f"'3 Gbps': 'Gbps' is no unit of size\n  did you mean 'GB'?\n  allowed: {BYTES_ALLOWED}",
        ),
        (parse_duration_ps, "1e-3 ps", f"'1e-3 ps': no whole number of ps\n  allowed: {DURATION_ALLOWED}"),
        (
            parse_duration_ps,
            "9" * 70 + " s",
            f"'{'9' * 57}...': not a duration\n  allowed: {DURATION_ALLOWED}",
        ),
        (
            parse_fraction,
            "20 percent",
            "'20 percent': expected a share of one\n  allowed: a number from 0 to 1, or a percentage such as \"20 %\"",
        ),
        (parse_fraction, "120 %", '\'120 %\': a share lies between 0 and 1\n  allowed: 0 to 1, or "0 %" to "100 %"'),
    ],
)
def test_a_refusal_says_what_was_found_and_what_to_write(parse: Parser, text: str, message: str) -> None:
    """Word for word, since people act on it."""
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_a_refusal_names_the_place() -> None:
    """The key path comes first, as an editor's problem matcher expects."""
    with pytest.raises(UnitError) as caught:
        parse_rate_bps("400", where="incast.yaml:7: fabric.link_rate")
    assert str(caught.value).startswith("incast.yaml:7: fabric.link_rate: '400': a rate needs its unit\n")


@pytest.mark.parametrize(("text", "expected"), [("0.25", 0.25), ("25 %", 0.25), ("25%", 0.25), ("0", 0.0), ("1", 1.0)])
def test_a_share_is_a_number_or_a_percentage(text: str, expected: float) -> None:
    """25 % = 25 / 100 = 0.25."""
    assert parse_fraction(text) == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_rate(400e9), "400 Gbps"),
        (format_rate(0), "0 bps"),
        (format_rate(999_999), "1 Mbps"),
        (format_rate(123_456e12), "123500 Tbps"),
        (format_bytes(9_000_000), "9 MB"),
        (format_bytes(1), "1 B"),
        (format_duration(163_400_000), "163.4 us"),
        (format_duration(-5_000), "-5 ns"),
    ],
)
def test_a_quantity_is_shown_in_the_largest_unit_below_it(shown: str, expected: str) -> None:
    """Four significant digits; rounded before the unit is chosen, so 999,999 bps is no `1000 Kbps`."""
    assert shown == expected


@given(st.integers(0, 10**18))
def test_what_is_shown_reads_back_within_half_of_the_fourth_digit(num_bytes: int) -> None:
    """Four significant digits are off by at most 5 parts in 10,000."""
    assert abs(parse_bytes(format_bytes(num_bytes)) - num_bytes) <= num_bytes * 5e-4

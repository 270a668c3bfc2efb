"""Settings as a command line writes them."""

from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.scenario.assignments import parse_setting


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("radix=8", ("radix", 8)),
        ("rate = 200 Gbps", ("rate", "200 Gbps")),
        ("deep.key=true", ("deep.key", True)),
        ('axes=["dp", "pp"]', ("axes", ["dp", "pp"])),
        ("name=a=b", ("name", "a=b")),
        ("empty=", ("empty", "")),
    ],
)
def test_a_setting_is_a_key_and_a_value(text: str, value: tuple[str, Any]) -> None:
    """What JSON can read is that; anything else is text, as in a file."""
    assert parse_setting(text) == value


def test_a_setting_without_value_is_refused() -> None:
    """The message shows how one looks."""
    with pytest.raises(InputError) as raised:
        parse_setting("radix")
    assert str(raised.value) == "radix: no setting\n  allowed: KEY=VALUE, for example radix=8"

"""What a command warns of is one line on stderr, and warnings of others stay theirs."""

import warnings

import pytest

from fabrictune.cli.framework.warnings import printed_warnings
from fabrictune.foundation.errors import FabrictuneWarning


def test_a_warning_is_one_line_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """No file, no line, no code; control characters from a file's name are made visible."""
    with printed_warnings():
        for _ in range(3):
            warnings.warn("cut short", FabrictuneWarning, stacklevel=1)
        warnings.warn("lab\x1b[2J.pcap", FabrictuneWarning, stacklevel=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0] == "warning: cut short"
    assert len(shown.err.splitlines()) == 2
    assert "\x1b" not in shown.err


def test_a_warning_of_somebody_else_is_shown_as_ever() -> None:
    """It reaches whoever listened before."""
    with pytest.warns(UserWarning, match="theirs"), printed_warnings():
        warnings.warn("theirs", UserWarning, stacklevel=1)

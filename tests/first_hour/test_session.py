"""The session itself: it counts commands, checks exit codes, and measures the screen."""

import pytest

from tests.first_hour.session import MAX_COMMANDS, Session


def test_a_sixth_command_fails(session: Session) -> None:
    """Five are what a job may take."""
    for _ in range(MAX_COMMANDS):
        assert "fabrictune" in session.command("fabrictune --version")
    with pytest.raises(AssertionError, match="more than 5 commands"):
        session.command("fabrictune --version")


def test_an_answer_larger_than_a_screen_fails(session: Session) -> None:
    """The keys of the engine are more than a hundred rows."""
    with pytest.raises(AssertionError, match="rows on a screen of 50"):
        session.command("fabrictune scenario keys engine")


def test_another_exit_code_fails(session: Session) -> None:
    """A mistake ends with 2, and what it says is in the failure."""
    with pytest.raises(AssertionError, match="exit code 2, not 0"):
        session.command("fabrictune ecmp analyze none.yaml")
    assert "none.yaml" in session.screen


def test_a_file_costs_no_command(session: Session) -> None:
    """What a user writes with an editor is no command."""
    assert session.write("my.yaml", "name: x\n").read_text() == "name: x\n"
    assert session.commands == []

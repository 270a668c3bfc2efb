"""An error says where, what was found, what is allowed, what was probably meant, and what to do next."""

import pytest

from fabrictune.foundation.errors import (
    FabricError,
    FabrictuneError,
    InputError,
    LawError,
    Mistake,
    RecordError,
    RouteError,
    ScenarioError,
    TraceError,
    UnavailableError,
    UnitError,
    UntrustedCodeError,
    nearest_name,
    quote,
    require_one_of,
)


def test_a_mistake_prints_its_parts_in_order() -> None:
    """Place and finding on the first line, the rest indented beneath, absent parts left out."""
    mistake = Mistake(
        where="a.yaml:3: law", found="unknown law 'dcqn'", allowed="none, dcqcn", nearest="dcqcn", next_step="x"
    )
    assert str(mistake) == (
        "a.yaml:3: law: unknown law 'dcqn'\n  did you mean 'dcqcn'?\n  allowed: none, dcqcn\n  next: x"
    )
    assert str(Mistake(where="", found="no such thing")) == "no such thing"


def test_an_error_prints_all_mistakes_of_a_file() -> None:
    """Two mistakes, two paragraphs, one run of the command."""
    error = InputError(Mistake(where="a", found="first"), Mistake(where="b", found="second"))
    assert str(error) == "a: first\nb: second"
    assert [mistake.where for mistake in error.mistakes] == ["a", "b"]


def test_an_error_without_a_mistake_is_the_programmers() -> None:
    """An empty error would tell a user nothing."""
    with pytest.raises(AssertionError, match="at least one mistake"):
        InputError()


def test_wrong_input_ends_with_2_and_a_lacking_machine_with_3() -> None:
    """The exit codes the command line promises."""
    wrong_input = (
        UnitError,
        ScenarioError,
        FabricError,
        RouteError,
        TraceError,
        RecordError,
        LawError,
        UntrustedCodeError,
    )
    assert {error.exit_code for error in wrong_input} == {2}
    assert all(issubclass(error, InputError) for error in wrong_input)
    assert UnavailableError.exit_code == 3
    assert issubclass(UnavailableError, FabrictuneError)
    assert not issubclass(UnavailableError, InputError)


@pytest.mark.parametrize(
    ("found", "allowed", "expected"),
    [
        ("dcqn", ["none", "dcqcn"], "dcqcn"),
        ("DCQCN", ["none", "dcqcn"], "dcqcn"),
        ("gbps", ["bps", "Gbps"], "Gbps"),
        ("zzz", ["none", "dcqcn"], ""),
        ("", ["none"], ""),
        ("anything", [], ""),
    ],
)
def test_the_nearest_name_ignores_case_and_may_be_absent(found: str, allowed: list[str], expected: str) -> None:
    """A guess is offered only where it shares most of its letters (0.6 of difflib's ratio)."""
    assert nearest_name(found, allowed) == expected


def test_long_text_is_cut_before_it_is_shown() -> None:
    """A file of noise must not come back whole in a message: 57 characters and three dots."""
    assert quote("x" * 60) == repr("x" * 60)
    assert quote("x" * 10**6) == repr("x" * 57 + "...")


def test_choosing_returns_the_name_or_lists_what_there_is() -> None:
    """The message is what a user sees after a typing error."""
    allowed = ["none", "dcqcn"]
    assert require_one_of("none", allowed, where="--law", what="law", error=LawError) == "none"
    with pytest.raises(LawError) as caught:
        require_one_of("dcqn", allowed, where="--law", what="law", error=LawError)
    assert str(caught.value) == "--law: unknown law 'dcqn'\n  did you mean 'dcqcn'?\n  allowed: none, dcqcn"

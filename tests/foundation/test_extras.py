"""Extras that are missing are named with the way to get them."""

import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.extras import require_extra


def test_a_missing_extra_is_said_with_its_installation() -> None:
    """A module that no machine has, and one that every Python has."""
    require_extra("json", extra="train", where="trainer")
    with pytest.raises(UnavailableError) as error:
        require_extra("no_such_module", extra="redis", where="store redis://node1:6379")
    assert str(error.value) == (
        'store redis://node1:6379: no_such_module is not installed\n  next: pip install "fabrictune[redis]"'
    )

"""What the tests of the laws share: a law written on the spot."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fabrictune.cc.laws import load_law

HEADER = "from fabrictune.cc.interface import NEVER, Parameter, Status\n"


@pytest.fixture
def write_law(tmp_path: Path) -> Callable[..., ModuleType]:
    """Return a function that loads a law from its text, as a user's file would be."""

    def write(body: str, *, parameters: str = "()", state: str = "()") -> ModuleType:
        path = tmp_path / "my_law.py"
        path.write_text(f"{HEADER}PARAMETERS = {parameters}\nSTATE = {state}\n{body}")
        return load_law(str(path), trust_code=True)

    return write

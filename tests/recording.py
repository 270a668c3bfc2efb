"""Numbers of fixed runs, written down beside their tests.

No definition says how much a run skips or how it is cut, as long as its results are right. Where such a number changes,
the engine has become slower or faster, which is to be seen in the change that makes it so.
"""

import json
import os
from pathlib import Path

VARIABLE = "FABRICTUNE_RECORD"  # set it, run the tests, and look at what has changed in the file

Numbers = list[int]


class Record:
    """Numbers by name in a JSON file, a name a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_writing = VARIABLE in os.environ
        self._numbers: dict[str, Numbers] = json.loads(path.read_text()) if path.exists() else {}

    def hold(self, name: str, *numbers: int) -> None:
        """Assert that the numbers are those that the file has, or put them there."""
        if self._is_writing:
            self._numbers[name] = list(numbers)
        else:
            assert list(numbers) == self._numbers.get(name), f"{name}; {VARIABLE}=1 writes {self._path.name} anew"

    def close(self) -> None:
        """Write the file, if that is what was asked for."""
        if self._is_writing:
            rows = [f"{json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in sorted(self._numbers.items())]
            self._path.write_text("{{\n{}\n}}\n".format(",\n".join(rows)))

"""The how-to page on adding a model names what the code has."""

import re
from pathlib import Path

from fabrictune.trainer_probe.model.sublayers import Sublayer
from fabrictune.trainer_probe.model.table import MODELS, PRESETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-model.md").read_text()


def test_the_page_lists_the_methods_of_a_sublayer() -> None:
    """Each row of its table is one, and there is no other."""
    listed = re.findall(r"^   \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert listed == [name for name in vars(Sublayer) if not name.startswith("_")]


def test_the_files_of_the_page_exist() -> None:
    """Those of the repository; NAME stands for the reader's own."""
    files = set(re.findall(r"`((?:trainer_probe|tests)/[\w/]+\.py)`", PAGE)) - {"trainer_probe/model/NAME.py"}
    assert files
    assert all((ROOT / file).is_file() for file in files)


def test_every_family_is_a_file_of_its_name() -> None:
    """As the page says: `trainer_probe/model/NAME.py`, with presets of its own."""
    for family, spec in MODELS.items():
        assert spec.__module__.endswith(f"trainer_probe.model.{family}")
        assert any(type(preset) is spec for preset in PRESETS.values())

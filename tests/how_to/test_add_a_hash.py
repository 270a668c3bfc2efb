"""The page on adding a hash function: its file runs and prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-hash.md").read_text()


def test_the_file_prints_what_the_page_says(tmp_path: Path) -> None:
    """Its check value holds, and the counts are those quoted."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "my_hash.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "my_hash.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"`{done.stdout.strip()}`" in PAGE

"""The block of a job: safe, self-contained, readable without its script, and the same bytes each time."""

import re
from pathlib import Path

from fabrictune.reports.block import Block, Cube, write_block
from fabrictune.reports.page import TEMPLATES, policy_hash

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"


def block(host: str = "node0") -> Block:
    """Two ranks and a spare node."""
    return Block(
        title="job: dp 2",
        axes={"dp": 2, "pp": 1, "tp": 1},
        cubes=[
            Cube(
                name="0", host=host, state="ok", detail="", place={"dp": 0, "pp": 0, "tp": 0}, values=(1.0, 0.25, 0.0)
            ),
            Cube(name="1", host=host, state="dead", detail=host, place={"dp": 1, "pp": 0, "tp": 0}),
            Cube(name="n9", host="n9", state="spare", detail="has no rank", place={}),
        ],
        states=("ok", "hung", "dead", "spare"),
        notes=("compared over 3 steps",),
    )


def written(folder: Path, one: Block) -> str:
    """Return the file of a block."""
    return write_block(one, folder / "block.html").read_text()


def test_all_that_is_drawn_is_in_the_table(tmp_path: Path) -> None:
    """Rank, host, place, state, values; the number of a state is its place in the list."""
    html = written(tmp_path, block())
    rows = re.findall(r'<tr data-state="(\d)" data-values="([^"]*)" data-place="([^"]*)">(.*?)</tr>', html)
    assert [(state, values, place) for state, values, place, _ in rows] == [
        ("0", "1.0 0.25 0.0 ", "0 0 0"),
        ("2", "   ", "1 0 0"),
        ("3", "   ", ""),
    ]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", rows[0][3])
    assert cells == ["0", "node0", "0", "0", "0", "ok", "1.000", "25.0%", "0.0%", ""]
    assert "1 ok, 1 dead, 1 spare." in re.sub(r"\s+", " ", html)
    assert "compared over 3 steps" in html


def test_names_run_nothing_and_turn_nothing_round(tmp_path: Path) -> None:
    """Markup and a right-to-left override as a host's name."""
    html = written(tmp_path, block(HOSTILE))
    assert "<img" not in html
    assert "\u202e" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;\\u202e") == 3
    assert len(re.findall("<script", html)) == 1


def test_the_policy_lets_its_own_script_and_style_run_and_nothing_else(tmp_path: Path) -> None:
    """No address, no attribute that runs or styles."""
    html = written(tmp_path, block())
    script = (TEMPLATES / "block.js").read_text()
    assert f"script-src '{policy_hash(script)}'; base-uri 'none'; form-action 'none'" in html
    assert "default-src 'none'" in html
    assert not re.search(r"\b(?:src|href|style|on\w+)=", html.replace(script, ""))
    assert "://" not in html
    assert not re.search(r"\b(?:eval|Function|innerHTML|fetch|import)\b", script)


def test_the_same_block_gives_the_same_bytes(tmp_path: Path) -> None:
    """No date, no random names."""
    assert written(tmp_path, block()) == written(tmp_path, block())

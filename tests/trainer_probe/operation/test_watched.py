"""A page says that its rank waits for its loader while it does, and no longer."""

from pathlib import Path

import pytest

from fabrictune.trainer_probe.operation.pages import RankPage, read_page


def test_a_page_says_while_its_rank_waits_for_the_loader(tmp_path: Path) -> None:
    """The loader's call reads the page from inside the wait; a call that fails leaves it there."""
    pytest.importorskip("torch")
    from fabrictune.trainer_probe.operation.watched import page_hook

    page = RankPage.create(tmp_path / "page")
    seen: list[str] = []

    def take() -> list[object]:
        seen.append(read_page(tmp_path / "page").tag)
        if len(seen) > 1:
            raise EOFError
        return []

    wrap = page_hook(page).take_of
    assert wrap is not None
    watched = wrap(take)  # type: ignore[arg-type]
    assert watched() == []
    assert (seen, read_page(tmp_path / "page").tag) == (["loader"], "")
    with pytest.raises(EOFError):
        watched()
    assert read_page(tmp_path / "page").tag == "loader"

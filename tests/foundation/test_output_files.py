"""Output files: whole or as they were, and no link or device in their place is written through."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.output_files import check_output_file, replaced_file


@contextmanager
def small_disk(num_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size while the block runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write(path: Path, text: str) -> None:
    """Write a file as commands do."""
    with replaced_file(path) as half:
        half.write_text(text)


def test_a_full_disk_keeps_the_earlier_file(tmp_path: Path) -> None:
    """And the message names the file."""
    write(tmp_path / "page.html", "earlier")
    with small_disk(4096), pytest.raises(InputError, match=r"page\.html: cannot be written \(File too large\)$"):
        write(tmp_path / "page.html", "x" * 10_000)
    assert (tmp_path / "page.html").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_failing_writer_leaves_nothing(tmp_path: Path) -> None:
    """Whatever it fails of."""
    write(tmp_path / "file", "earlier")

    def stop() -> None:
        with replaced_file(tmp_path / "file") as half:
            half.write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert (tmp_path / "file").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    """Also one that leads nowhere."""
    (tmp_path / "victim").write_text("mine")
    for target in ("victim", "nowhere"):
        (tmp_path / target[:1]).symlink_to(target)
        write(tmp_path / target[:1], "new")
        assert not (tmp_path / target[:1]).is_symlink()
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_permissions_stay(tmp_path: Path) -> None:
    """Of a file that was there; a new one gets those of any new file."""
    (plain := tmp_path / "plain").write_text("x")
    write(tmp_path / "new", "x")
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    plain.chmod(0o640)
    write(plain, "y")
    assert plain.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_as_it_is() -> None:
    """`--out /dev/null` replaces no device."""
    write(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    """Of this name; a file that looks like it, or that a writer holds, stays."""
    litter, other = tmp_path / f".file-{'0' * 16}.half", tmp_path / ".file-notes.half"
    litter.write_text("x")
    other.write_text("x")
    with replaced_file(tmp_path / "file") as half:
        half.write_text("first")
        write(tmp_path / "file", "second")
        assert half.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".file-notes.half", "file"]
    assert (tmp_path / "file").read_text() == "first"


@pytest.mark.parametrize(
    ("place", "reason"),
    [("", "Is a directory"), ("missing/file", "No such file or directory"), ("file/file", "Not a directory")],
)
def test_a_place_that_cannot_be_written_is_known_before(tmp_path: Path, place: str, reason: str) -> None:
    """Both ask the same."""
    (tmp_path / "file").write_text("x")
    for ask in (check_output_file, lambda path: write(path, "x")):
        with pytest.raises(InputError, match=rf"{tmp_path / place}: cannot be written \({reason}\)"):
            ask(tmp_path / place)

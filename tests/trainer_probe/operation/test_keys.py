"""Key files and who may read them."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.operation.keys import make_key, read_key


def test_a_key_is_read_as_it_was_made(tmp_path: Path) -> None:
    """32 bytes, in a file for its owner alone."""
    path = tmp_path / "key"
    key = make_key(path)
    assert read_key(path) == key
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_is_not_made_twice(tmp_path: Path) -> None:
    """The first may be in use."""
    path = tmp_path / "key"
    make_key(path)
    with pytest.raises(InputError, match="is there already"):
        make_key(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """It is no secret."""
    path = tmp_path / "key"
    make_key(path)
    path.chmod(mode)
    with pytest.raises(InputError, match=rf"mode {mode:04o}: others can read it"):
        read_key(path)


@pytest.mark.parametrize("content", [b"", b"short", b"00" * 31, b"zz" * 32, b"\xff" * 64, b"0" * 100_000])
def test_a_file_without_a_key_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    """What may be half of a key stays out of messages."""
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InputError) as raised:
        read_key(path)
    assert str(raised.value) == f"{path}: holds no key\n  allowed: 64 hexadecimal digits"

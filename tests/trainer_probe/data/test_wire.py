"""What a loader and its workers say to one another."""

import mmap
import os
import socket

import pytest

from fabrictune.foundation.errors import LoaderError, Mistake, TokenFileError
from fabrictune.trainer_probe.data import wire


def test_an_error_comes_out_as_it_went_in() -> None:
    """Its kind, and all its mistakes."""
    error = TokenFileError(Mistake(where="a", found="b", allowed="c"), Mistake(where="d", found="e", next_step="f"))
    found = wire.decode_error(wire.encode_error(error))
    assert type(found) is TokenFileError
    assert found.mistakes == error.mistakes


def test_memory_is_shared_by_its_descriptor() -> None:
    """What one end writes the other reads, and no name leads to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        descriptor = wire.make_memory(4096, available_bytes=8192)
        with mmap.mmap(descriptor, 4096) as written:
            wire.send_message(ours, {"some": "words"}, descriptor)
            message, (received,) = wire.receive_message(theirs)
            written[:5] = b"seven"
            with mmap.mmap(received, 4096, prot=mmap.PROT_READ) as read:
                assert read[:5] == b"seven"
        assert message == {"some": "words"}
        os.close(descriptor)
        os.close(received)


def test_memory_that_the_machine_cannot_spare_is_not_asked_for() -> None:
    """Half of 8191 bytes is 4095, one less than is asked for."""
    with pytest.raises(LoaderError) as error:
        wire.make_memory(4096, available_bytes=8191)
    assert str(error.value) == (
        "loader: batches of 4096 bytes in all\n  allowed: 4095, half of the available memory\n"
        "  next: prefetch fewer batches, or smaller ones"
    )


def test_available_memory_is_less_than_all_there_is() -> None:
    """The system's estimate, in bytes."""
    assert 0 < wire.available_bytes() < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_an_end_that_has_gone_is_noticed() -> None:
    """An error in place of a message, not a wait."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs, pytest.raises(EOFError):
        wire.receive_message(theirs)


def test_the_other_end_of_a_pair_is_ours() -> None:
    """Made by this process, so of this user."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert wire.belongs_to_this_user(ours)


def test_a_connection_of_another_user_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system says who is at the other end: this process. To another user it is a stranger."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert wire.belongs_to_this_user(ours)
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        assert not wire.belongs_to_this_user(ours)

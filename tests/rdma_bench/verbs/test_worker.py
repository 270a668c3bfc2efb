"""A worker is a process that listens where it was told, serves who knows its token, and says what it cannot do."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.rdma_bench.measurement.workers import local_worker, remote_worker, worker_command, worker_environment
from fabrictune.rdma_bench.verbs.channel import ChannelError
from tests.patience import patience

TOKEN = "0123456789abcdef"
ENDED_S = 20


@contextmanager
def worker(folder: Path, listen: str = "127.0.0.1:0", *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Start one; it ends with the block."""
    (folder / "token").write_text(f"{TOKEN}\n")
    words = worker_command(sys.executable, "--listen", listen, "--token-file", str(folder / "token"), *options)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=worker_environment(), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def place_of(process: "subprocess.Popen[str]") -> str:
    """Return where it listens, once it says so."""
    assert process.stdout is not None
    return process.stdout.readline().removeprefix("listening on ").strip()


def test_it_answers_who_knows_the_token_and_nobody_else(tmp_path: Path) -> None:
    """One after another: a stranger, a friend, the friend again."""
    with worker(tmp_path) as process:
        place = place_of(process)
        with pytest.raises(ChannelError), remote_worker(place, TOKEN[::-1]):
            pass
        for _ in range(2):
            with remote_worker(place, TOKEN) as friend:
                assert friend.ask("describe")["python"].startswith("3.")


def test_a_port_that_another_worker_has_is_refused(tmp_path: Path) -> None:
    """Exit code 3, and one line that names the option."""
    with worker(tmp_path) as first:
        place = place_of(first)
        with worker(tmp_path, place) as second:
            _, said = second.communicate(timeout=patience(ENDED_S))
    assert second.returncode == 3
    assert said.startswith(f"--listen {place}: [Errno 98] Address already in use")


def test_it_listens_on_no_address_that_was_not_named(tmp_path: Path) -> None:
    """A port alone would mean every address of the host."""
    with worker(tmp_path, ":18700") as process:
        _, said = process.communicate(timeout=patience(ENDED_S))
    assert (process.returncode, said) == (2, "--listen :18700: no address\n  allowed: IPV4:PORT\n")


def test_a_request_that_is_none_is_refused_and_the_next_one_answered() -> None:
    """Text of any length, and values of any type, where a name belongs."""
    with local_worker(sys.executable) as near:
        for request in ("x" * 10_000, "", "describe\n"):
            with pytest.raises(InputError, match="unknown request"):
                near.ask(request)
        with pytest.raises(InputError, match="unknown role"):
            near.ask("place", role="both")
        assert near.ask("describe")["host"]


def test_a_token_that_is_too_short_is_refused(tmp_path: Path) -> None:
    """Exit code 2, with the command that makes a better one."""
    (tmp_path / "short").write_text("secret")
    with worker(tmp_path, "127.0.0.1:0", "--token-file", str(tmp_path / "short")) as process:
        _, said = process.communicate(timeout=patience(ENDED_S))
    assert process.returncode == 2
    assert said == (
        f"{tmp_path / 'short'}: a token of 6 characters\n"
        f"  allowed: 16 or more\n  next: openssl rand -hex 32 > {tmp_path / 'short'}\n"
    )


def test_a_path_is_healed_when_who_cut_it_is_gone(tmp_path: Path) -> None:
    """The commands of the worker's owner run as they stand, and the second even without being asked for."""
    touch, remove = (shlex.join([word, str(tmp_path / "cut")]) for word in ("touch", "rm"))
    with local_worker(sys.executable, cut=touch, heal=remove) as near:
        near.ask("cut")
        assert (tmp_path / "cut").exists()
    assert not (tmp_path / "cut").exists()


def cut_commands(folder: Path) -> tuple[str, ...]:
    """Return options of a worker whose path is cut while the file `cut` exists; healing it takes a moment."""
    heal = shlex.join(["sh", "-c", f"sleep 0.3; rm {shlex.quote(str(folder / 'cut'))}"])
    return "--cut-command", shlex.join(["touch", str(folder / "cut")]), "--heal-command", heal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_worker_that_is_ended_heals_the_path(tmp_path: Path, number: signal.Signals) -> None:
    """By a service manager, a terminal that closes, Ctrl-C: its host is not left without its link."""
    with (
        worker(tmp_path, "127.0.0.1:0", *cut_commands(tmp_path)) as process,
        remote_worker(place_of(process), TOKEN) as controller,
    ):
        controller.ask("cut")
        process.send_signal(number)
        _, said = process.communicate(timeout=patience(ENDED_S))
    assert not (tmp_path / "cut").exists()
    assert (process.returncode, said) == (0, "stopped\n")


def test_a_worker_that_is_ended_while_it_heals_heals_again(tmp_path: Path) -> None:
    """The first signal ends the command that heals, which takes a second; those after it end nothing."""
    begun, cut = (shlex.quote(str(tmp_path / name)) for name in ("begun", "cut"))
    heal = shlex.join(["sh", "-c", f"touch {begun}; sleep 1; rm {cut}"])
    options = ("--cut-command", f"touch {cut}", "--heal-command", heal)
    with worker(tmp_path, "127.0.0.1:0", *options) as process:
        with remote_worker(place_of(process), TOKEN) as controller:
            controller.ask("cut")
        deadline = time.monotonic() + patience(ENDED_S)
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(5):
            process.terminate()
            time.sleep(0.2)
        process.communicate(timeout=patience(ENDED_S))
    assert not (tmp_path / "cut").exists()


def test_a_controller_that_falls_silent_after_a_cut_loses_its_session(tmp_path: Path) -> None:
    """It is stopped, or its host has no power: the path is healed, and the next one is served."""
    with worker(tmp_path, "127.0.0.1:0", *cut_commands(tmp_path)) as process:
        place = place_of(process)
        with remote_worker(place, TOKEN) as silent:
            silent.ask("cut", silence_s=0.1)
            assert (tmp_path / "cut").exists()
            with remote_worker(place, TOKEN) as other:
                assert other.ask("describe")["host"]
                assert not (tmp_path / "cut").exists()


@pytest.mark.parametrize("silence_s", [0, -1, 1e9, float("nan")])
def test_a_cut_has_an_end(tmp_path: Path, silence_s: float) -> None:
    """Two hours without a request at the most; and nothing is cut by a request that is refused."""
    with (
        local_worker(sys.executable, cut=f"touch {tmp_path / 'cut'}", heal="true") as near,
        pytest.raises(InputError, match=r"cut\.silence_s"),
    ):
        near.ask("cut", silence_s=silence_s)
    assert not (tmp_path / "cut").exists()


def test_a_connection_is_probed_for_a_host_that_vanished(tmp_path: Path) -> None:
    """Linux lists the worker's end with a keepalive timer, 02, once the controller has confirmed what was sent, 01."""
    with worker(tmp_path) as process, remote_worker(place_of(process), TOKEN) as controller:
        controller.ask("describe")
        deadline = time.monotonic() + patience(ENDED_S)
        while (timer := timer_of_connection(process.pid)) == "01" and time.monotonic() < deadline:
            time.sleep(0.01)
    assert timer == "02"


def timer_of_connection(pid: int) -> str:
    """Return the timer of the only established connection of a process (Linux, proc_net_tcp)."""
    links = (str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir())
    inodes = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    (timer,) = (line[5].partition(":")[0] for line in lines if line[3] == "01" and line[9] in inodes)
    return timer


def test_without_commands_no_path_can_be_cut(tmp_path: Path) -> None:
    """And a request cannot bring its own."""
    with local_worker(sys.executable) as near:
        with pytest.raises(UnavailableError, match="no command that cuts the path"):
            near.ask("cut", command="touch cut")
        with pytest.raises(InputError):
            near.ask("heal", after_s="soon")


def test_nobody_listens_there_is_one_message() -> None:
    """With what to start on that host."""
    with pytest.raises(ChannelError) as caught, remote_worker("127.0.0.1:1", TOKEN):
        pass
    assert caught.value.mistakes[0].next_step == "fabrictune rdma serve --listen ... on that host"


def test_a_worker_ends_with_its_leader(tmp_path: Path) -> None:
    """Nothing keeps running on this host after a measurement."""
    with local_worker(sys.executable, cut=f"sh -c 'echo $PPID > {tmp_path / 'pid'}'", heal="true") as near:
        near.ask("cut")
        pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

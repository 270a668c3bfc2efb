"""Machine code is kept, found again and used without the compiler; what could be somebody else's is not used."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cc import code_cache, codegen, compiler
from fabrictune.cc.code_cache import keep_code, kept_code
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import TELEMETRY_DTYPE, Status
from fabrictune.cc.interpreter import HandCalledLaw
from fabrictune.cc.law_rules import handler_arguments

CODE = b"code" * 100
COMPILE_DCQCN = """
import sys
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.cc.interpreter import HandCalledLaw
from fabrictune.cc.flow_state import new_flow
law = HandCalledLaw(compile_law(load_law("dcqcn")))
flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
law.call("on_start", flow, 0), law.call("on_cnp", flow, 10**8)
print(flow["rate_bps"][0], "numba" in sys.modules)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fabrictune" / "laws"


def test_a_law_is_compiled_once_and_then_needs_no_numba():
    """Two processes get the same rate from the same law; only the first loads the compiler."""
    first, second = (
        subprocess.run([sys.executable, "-c", COMPILE_DCQCN], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert (first[1], second[1]) == ("True", "False")
    assert first[0] == second[0] == "500000000.0"


def test_kept_code_raises_refuses_and_reads_telemetry_as_new_code_does(write_law, folder):
    """What could lead back into Numba does not: exceptions, powers, telemetry."""
    module = write_law(
        "USES_TELEMETRY = True\n"
        "def on_start(params, flow, now_ps):\n"
        "    if now_ps == 1: raise ValueError('one')\n"
        "    flow.rate_bps = 2.0 ** (now_ps / 2)\n"
        "    return Status.REFUSED if now_ps == 2 else Status.OK\n"
        f"def on_ack({', '.join(handler_arguments('on_ack'))}):\n"
        "    flow.rate_bps = telemetry[num_hops - 1].queue_bytes\n"
        "    return Status.OK\n"
    )
    telemetry = np.zeros(2, TELEMETRY_DTYPE)
    telemetry["queue_bytes"] = [3, 4]
    for _ in ("new", "kept"):
        law = HandCalledLaw(compile_law(module))
        flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
        assert [law.call("on_start", flow, now_ps) for now_ps in (1, 2, 3)] == [
            Status.RAISED,
            Status.REFUSED,
            Status.OK,
        ]
        assert flow["rate_bps"][0] == pytest.approx(2**1.5)
        assert law.call("on_ack", flow, 0, 4096, 8_000_000, 0, 2, 0, telemetry) == Status.OK
        assert flow["rate_bps"][0] == 4
        assert len(list(folder.glob("*.o"))) == 1


def test_code_that_needs_this_process_is_not_kept(write_law, folder, monkeypatch):
    """What refers to an address in it would lead anywhere in another; nor is a law kept that has no fingerprint."""
    module = write_law("def on_start(params, flow, now_ps):\n    return Status.OK\n")
    generate = codegen.generate
    with monkeypatch.context() as patch:
        patch.setattr(codegen, "generate", lambda *law: replace(generate(*law), is_self_contained=False))
        compile_law(module)
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "fingerprint", lambda *_law: "")
        compile_law(module)
    assert not folder.exists()


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_what_is_kept_is_found_under_its_key_alone(umask):
    """Nothing was there before; and whatever rights new files have for others."""
    assert kept_code("key") is None
    before = os.umask(umask)
    keep_code("key", CODE)
    os.umask(before)
    assert kept_code("key") == CODE
    assert kept_code("other") is None


@pytest.mark.parametrize("spoil", [lambda content: content[:-1], lambda content: content + b"x", lambda content: b""])
def test_a_file_that_was_changed_is_not_used(folder, spoil):
    """Cut short, longer, or empty: LLVM would end the process on it."""
    keep_code("key", CODE)
    path = folder / "key.o"
    path.write_bytes(spoil(path.read_bytes()))
    assert kept_code("key") is None


def test_a_file_or_folder_that_others_may_write_is_not_used(folder):
    """Nor one reached over a link: it is code that will run."""
    keep_code("key", CODE)
    path = folder / "key.o"
    path.chmod(0o620)
    assert kept_code("key") is None
    path.chmod(0o600)
    folder.chmod(0o777)
    assert kept_code("key") is None
    folder.chmod(0o700)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    assert kept_code("key") is None


@pytest.mark.parametrize("owned", [0, 1], ids=["folder", "file"])
def test_a_folder_or_file_of_another_user_is_not_used(monkeypatch, owned):
    """The folder is looked at first; whoever owns either could put code of his own there."""
    keep_code("key", CODE)
    ours = os.geteuid()
    users = iter([ours] * owned + [ours + 1])
    monkeypatch.setattr(os, "geteuid", lambda: next(users))
    assert kept_code("key") is None


def test_nothing_is_kept_in_a_folder_that_others_may_write(folder):
    """They could exchange it before it is read."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    keep_code("key", CODE)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("look", [1, 2], ids=["folder", "file"])
def test_a_cache_that_is_exchanged_while_it_is_looked_at_is_not_used(folder, monkeypatch, look):
    """Another user owns what is above the folder, and renames: what was looked at is what is read."""
    keep_code("key", b"evil")
    folder.rename(folder.with_name("evil"))
    keep_code("key", CODE)
    ours, num_looks = os.geteuid(), 0

    def exchange_and_look():
        nonlocal num_looks
        num_looks += 1
        if num_looks == look:
            folder.rename(folder.with_name("looked-at"))
            folder.with_name("evil").rename(folder)
        return ours

    monkeypatch.setattr(os, "geteuid", exchange_and_look)
    assert kept_code("key") == CODE


def test_a_cache_in_the_current_directory_does_not_count(tmp_path, monkeypatch):
    """The XDG specification ignores relative paths; a folder that somebody unpacked could bring code along."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    keep_code("key", CODE)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_cache_that_cannot_be_written_costs_nothing_else(folder, tmp_path):
    """A file stands where the folder would."""
    (tmp_path / "fabrictune").write_text("")
    keep_code("key", CODE)
    assert kept_code("key") is None


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    """As in a container that runs under any number."""

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    keep_code("key", CODE)
    assert kept_code("key") is None


def test_what_was_not_used_for_longest_is_forgotten_first(folder, monkeypatch):
    """Of three with room for two, the one that was asked for stays."""
    monkeypatch.setattr(code_cache, "MAX_KEPT", 2)
    keep_code("used", CODE)
    keep_code("unused", CODE)
    for age, name in ((2, "used"), (1, "unused")):
        _make_older(folder / f"{name}.o", age)
    assert kept_code("used") == CODE
    keep_code("new", CODE)
    assert sorted(path.stem for path in folder.iterdir()) == ["new", "used"]


def _make_older(path, hours):
    then_ns = path.stat().st_mtime_ns - hours * 3600 * 10**9
    os.utime(path, ns=(then_ns, then_ns))


def test_code_of_up_to_four_mebibytes_is_kept():
    """No law comes near that."""
    keep_code("large", bytes(2**22))
    keep_code("too-large", bytes(2**22 + 1))
    assert kept_code("large") == bytes(2**22)
    assert kept_code("too-large") is None


def test_the_code_of_256_laws_is_kept(folder):
    """One more pushes out the one that was not used for longest."""
    keep_code("0", CODE)
    for number in range(1, 256):
        (folder / f"{number}.o").write_bytes(b"")
    _make_older(folder / "0.o", 1)
    assert len(list(folder.iterdir())) == 256
    keep_code("new", CODE)
    assert len(list(folder.iterdir())) == 256
    assert kept_code("new") == CODE
    assert kept_code("0") is None

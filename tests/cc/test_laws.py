"""Finding laws, and refusing what is none."""

import subprocess
import sys

import pytest

from fabrictune.cc.laws import LAWS, load_law
from fabrictune.foundation.errors import LawError, UntrustedCodeError
from fabrictune.foundation.extensions.kinds import MAX_BYTES

LAW = """
from fabrictune.cc.interface import Status
PARAMETERS = ()
STATE = ()
def on_start(params, flow, now_ps):
    flow.rate_bps = flow.line_rate_bps / 2
    return Status.OK
"""


def refusal(name_or_path, *, trust_code=True):
    with pytest.raises(LawError) as raised:
        load_law(str(name_or_path), trust_code=trust_code)
    return str(raised.value)


def test_laws_go_by_their_names():
    """The table is the list a user may choose from."""
    assert load_law("dcqcn") is LAWS["dcqcn"]
    assert load_law("none") is LAWS["none"]


def test_an_unknown_name_gets_the_nearest():
    """A slip of a finger is answered with the name that was meant."""
    names = ", ".join(LAWS)
    assert refusal("dcqn") == f"law: unknown law 'dcqn'\n  did you mean 'dcqcn'?\n  allowed: {names}"


def test_a_file_outside_the_project_is_refused_without_leave(tmp_path):
    """A scenario from elsewhere must not run code by naming it; nothing of the file is executed."""
    path = tmp_path / "my_law.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{LAW}")
    with pytest.raises(UntrustedCodeError) as raised:
        load_law(str(path))
    assert str(raised.value) == (
        f"{path}: a law in a file outside the project, which may do anything on this machine\n"
        "  next: read it, then run again with --trust-code"
    )
    assert not (tmp_path / "ran").exists()


def test_a_trusted_file_is_a_law_and_leaves_nothing_behind(tmp_path):
    """No compiled files appear in the user's folder."""
    path = tmp_path / "my_law.py"
    path.write_text(LAW)
    assert load_law(str(path), trust_code=True).__name__ == "my_law"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path):
    """Whether trusted or not, first the file must be there."""
    path = tmp_path / "gone.py"
    assert refusal(path, trust_code=False) == (
        f"{path}: no such file\n  allowed: a Python file, or one of {', '.join(LAWS)}"
    )


def test_a_file_of_another_kind_is_refused(tmp_path):
    """A path is recognised by its slash; what it leads to must be Python."""
    path = tmp_path / "law.yaml"
    path.write_text("law: none")
    assert refusal(path) == f"{path}: not a Python file\n  allowed: a file ending in .py"


def test_a_syntax_error_is_given_with_its_line(tmp_path):
    """Line 3 lacks its closing bracket."""
    path = tmp_path / "my_law.py"
    path.write_text("PARAMETERS = ()\nSTATE = ()\ndef on_start(params:\n    pass\n")
    assert refusal(path) == f"{path}:3: not valid Python ('(' was never closed)"


def test_what_is_raised_on_import_is_given_with_its_line(tmp_path):
    """Line 2 divides by zero, in a function called from line 3."""
    path = tmp_path / "my_law.py"
    path.write_text("def gain():\n    return 1 / 0\nGAIN = gain()\n")
    assert refusal(path) == f"{path}:2: raised ZeroDivisionError while being imported: division by zero"


def test_a_law_that_exits_does_not_end_the_run(tmp_path):
    """sys.exit in a law's file is a mistake like any other."""
    path = tmp_path / "my_law.py"
    path.write_text("import sys\nsys.exit(3)\n")
    assert refusal(path) == f"{path}:2: raised SystemExit while being imported: 3"


def test_a_hundred_megabytes_are_not_read(tmp_path):
    """A law is a page of text; noise is refused by its size."""
    path = tmp_path / "my_law.py"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    assert refusal(path) == (
        f"{path}: too large for a law\n  allowed: {MAX_BYTES} bytes\n  next: keep in the file what the law needs"
    )


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """A compiled file renamed to .py."""
    path = tmp_path / "my_law.py"
    path.write_bytes(b"\xa7\r\r\n\xff\xfe")
    assert refusal(path) == f"{path}: not text in UTF-8"


def test_null_bytes_are_refused(tmp_path):
    """Python's own compiler will not have them."""
    path = tmp_path / "my_law.py"
    path.write_bytes(b"PARAMETERS = ()\x00")
    assert refusal(path).startswith(f"{path}: not valid Python (")


def test_a_file_without_on_start_is_no_law(tmp_path):
    """An empty file lacks all three things a law must have, and all three are said."""
    path = tmp_path / "empty.py"
    path.write_text("")
    message = refusal(path)
    assert "law empty: no function on_start" in message
    assert "law empty: PARAMETERS: nothing" in message
    assert "law empty: STATE: nothing" in message


def test_naming_laws_does_not_load_the_compiler():
    """`fabrictune --help` lists laws and must stay quick."""
    code = "import sys, fabrictune.cc.laws; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_law_of_a_mebibyte_is_read(tmp_path):
    """And not one of a byte more."""
    path = tmp_path / "my_law.py"
    path.write_text(LAW + "#" * (2**20 - len(LAW)))
    assert load_law(str(path), trust_code=True).__name__ == "my_law"
    path.write_text(LAW + "#" * (2**20 + 1 - len(LAW)))
    assert refusal(path) == (
        f"{path}: too large for a law\n  allowed: 1048576 bytes\n  next: keep in the file what the law needs"
    )

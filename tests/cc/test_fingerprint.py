"""A law's fingerprint changes with all that its machine code depends on, and with nothing else."""

import pytest

from fabrictune.cc import dcqcn
from fabrictune.cc.checked_law import checked_law
from fabrictune.cc.fingerprint import fingerprint
from fabrictune.cc.flow_state import flow_dtype, params_record
from fabrictune.cc.laws import load_law

LAW = """
import math
from fabrictune.cc.interface import Parameter, Status

GAIN = 0.5
PARAMETERS = (Parameter(name="first_bps", default=1e9, low=1.0, high=1e12, meaning="first rate"),)
STATE = (("level", "f8"),)

def halved(x):
    return x * GAIN

def on_start(params, flow, now_ps):
    '''Begin.'''
    flow.level = math.sqrt(halved(params.first_bps))
    return Status.OK
"""


@pytest.fixture
def print_of(tmp_path):
    """Return the fingerprint of a law of this text."""

    def found(text):
        path = tmp_path / "my_law.py"
        path.write_text(text)
        module = load_law(str(path), trust_code=True)
        return fingerprint(checked_law(module), params_record(module).dtype, flow_dtype(module))

    return found


def test_the_same_law_has_the_same_fingerprint(print_of):
    """Comments, and a parameter's default, which is read at run time, change nothing."""
    assert print_of(LAW) == print_of(
        LAW.replace("GAIN = 0.5", "GAIN = 0.5  # half").replace("default=1e9", "default=2e9")
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GAIN = 0.5", "GAIN = 0.25"),  # a global of a helper
        ("GAIN = 0.5", "GAIN = True"),
        ("x * GAIN", "x / GAIN"),  # a helper's code
        ("math.sqrt(halved(params.first_bps))", "halved(math.sqrt(params.first_bps))"),
        ("Status.OK", "Status.REFUSED"),
        ('"level", "f8"', '"level", "i8"'),  # the layout of a record
        ("STATE = (", 'STATE = (("before", "f8"), '),
        ("def on_start(", "def on_nack(params, flow, now_ps):\n    return Status.OK\n\ndef on_start("),
    ],
)
def test_what_the_code_depends_on_changes_it(print_of, old, new):
    """One change each."""
    assert print_of(LAW) != print_of(LAW.replace(old, new)) is not None


def test_the_compiler_s_settings_change_it(monkeypatch):
    """Numba takes some from the environment."""
    records = params_record(dcqcn).dtype, flow_dtype(dcqcn)
    before = fingerprint(checked_law(dcqcn), *records)
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert fingerprint(checked_law(dcqcn), *records) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GAIN = 0.5", "import numpy as np\nGAIN = np.array([0.5])"),
        ("import math", "import cmath as math"),
        (
            "def halved(x):\n    return x * GAIN",
            "def made():\n    y = 0.5\n    return lambda x: x * y\nhalved = made()",
        ),
    ],
)
def test_what_no_text_stands_for_has_no_fingerprint(print_of, old, new):
    """Such a law is compiled each time, or not at all."""
    assert print_of(LAW.replace(old, new)) is None

"""Table of laws, and loading of a law by name or by path."""

from pathlib import Path
from types import ModuleType

from fabrictune.cc import barre, dcqcn, dcqcn_firmware, dctcp, hpcc, hybrid, none, nscc, swift, timely
from fabrictune.cc.law_rules import check_law
from fabrictune.foundation.errors import LawError, require_one_of
from fabrictune.foundation.extensions.kinds import Kind, is_path
from fabrictune.foundation.extensions.tables import Table

LAW = Kind(what="law", group="fabrictune.laws", value_type=ModuleType, check=check_law, error=LawError)

_OWN = {
    "none": none,
    "barre": barre,
    "dcqcn": dcqcn,
    "dcqcn_firmware": dcqcn_firmware,
    "dctcp": dctcp,
    "hpcc": hpcc,
    "hybrid": hybrid,
    "nscc": nscc,
    "swift": swift,
    "timely": timely,
}

LAWS = Table(LAW, _OWN)


def load_law(name_or_path: str, *, trust_code: bool = False) -> ModuleType:
    """Return the law called `name_or_path`, or the one in that file if it ends in `.py` or has a slash.

    Raises LawError for an unknown name or a file that is no law, UntrustedCodeError for a file without `trust_code`.
    """
    if is_path(name_or_path):
        return LAWS.load(Path(name_or_path), trust_code=trust_code).value
    return LAWS[require_one_of(name_or_path, list(LAWS), where="law", what="law", error=LawError)]

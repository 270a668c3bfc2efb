"""Reader of a NIC's DCQCN parameters: a folder of its files, or their text.

A folder is /sys/kernel/debug/mlx5/<device>/cc_params, /sys/class/net/<interface>/ecn, or a copy of either. Text has one
number a line, its name before it: `grep . *` over such a folder, `path: value`, or what `mlxconfig query` prints; a
line of `mlxconfig set` has several.

A NIC has more settings than a law has parameters; what is not known here is named in the answer and not used.

Source: cc/nic_parameters.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabrictune.cc import dcqcn_firmware
from fabrictune.cc.flow_state import params_record
from fabrictune.cc.nic_parameters import CNP_INTERVAL, NIC_PARAMETERS, NicParameter
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake

MAX_TEXT_BYTES = 2**20
MAX_NUMBER_BYTES = 4096  # the size a kernel gives such a file
FOLDERS = (".", "roce_rp", "roce_np")

# `rp_ai_rate: 5`, `.../rpg_ai_rate:5`, `RPG_AI_RATE_P1   5`, `CLAMP_TGT_RATE_P1  False(0)`
_LINE = re.compile(r"(\w+)(?:\s*[:=]\s*|\s+)([\w().+-]+)\s*$")
_SETTING = re.compile(r"\s*mlxconfig\s.*\sset\s")
_PAIR = re.compile(r"(\w+)=([\w().+-]+)")
_NUMBER = re.compile(r"(?:\w+\()?(0x[0-9a-fA-F]{1,8}|\d{1,10})\)?")
_PORT = re.compile(r"_p\d$")

_BY_NAME = {name: parameter for parameter in NIC_PARAMETERS for name in (parameter.name, parameter.upstream_name)}


@dataclass(frozen=True, kw_only=True)
class NicReading:
    """Congestion-control parameters read from a NIC."""

    numbers: dict[str, int]  # as the NIC has them, by the vendor's names
    ignored: tuple[str, ...]  # names that no law's parameter answers to

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of law `dcqcn_firmware`."""
        return {
            parameter.law_name: self.numbers[parameter.name] * parameter.unit
            for parameter in NIC_PARAMETERS
            if parameter.law_name and parameter.name in self.numbers
        }

    @property
    def law_keys(self) -> dict[str, str]:
        """The same as a scenario writes them: the keys of its law's `parameters`."""
        return {
            parameter.name: parameter.scenario_value(self.numbers[parameter.name])
            for parameter in NIC_PARAMETERS
            if parameter.law_name and parameter.name in self.numbers
        }

    @property
    def cnp_interval(self) -> str | None:
        """Least time between two CNPs of the NIC as a receiver, as a scenario writes it; None if it is not given."""
        number = self.numbers.get(CNP_INTERVAL.name)
        return None if number is None else CNP_INTERVAL.scenario_value(number)


@dataclass(frozen=True, kw_only=True)
class _Entry:
    where: str
    name: str
    text: str


def read_nic(path: Path) -> NicReading:
    """Return what the folder or text at `path` says; raises InputError, or LawError for a number out of range."""
    entries = list(_folder_entries(path) if path.is_dir() else _text_entries(path))
    numbers: dict[str, int] = {}
    ignored: list[str] = []
    mistakes: list[Mistake] = []
    for entry in entries:
        parameter = _BY_NAME.get(_PORT.sub("", entry.name.lower()))
        if parameter is None:
            ignored.append(entry.name)
        elif mistake := _take(parameter, entry, numbers):
            mistakes.append(mistake)
    if not numbers and not mistakes:
        mistakes.append(Mistake(where=str(path), found="no parameter of DCQCN", allowed=", ".join(sorted(_BY_NAME))))
    if mistakes:
        raise InputError(*mistakes)
    reading = NicReading(numbers=numbers, ignored=tuple(dict.fromkeys(ignored)))
    params_record(dcqcn_firmware, reading.parameters)
    return reading


def _take(parameter: NicParameter, entry: _Entry, numbers: dict[str, int]) -> Mistake | None:
    """Add an entry's number; returns what is wrong with it."""
    match = _NUMBER.fullmatch(entry.text)
    if match is None:
        return Mistake(where=f"{entry.where}: {entry.name}", found=f"{entry.text[:40]!r}", allowed="a whole number")
    number = int(match[1], 0)
    if numbers.setdefault(parameter.name, number) != number:
        return Mistake(
            where=f"{entry.where}: {entry.name}",
            found=f"{number}, after {numbers[parameter.name]} before",
            allowed="one value for each parameter",
            next_step="keep the lines of one port",
        )
    return None


def _text_entries(path: Path) -> Iterator[_Entry]:
    for number, line in enumerate(read_text(path, max_bytes=MAX_TEXT_BYTES).splitlines(), start=1):
        where = f"{path}:{number}"
        if _SETTING.match(line):
            yield from (_Entry(where=where, name=match[1], text=match[2]) for match in _PAIR.finditer(line))
        elif match := _LINE.search(line):
            yield _Entry(where=where, name=match[1], text=match[2])


def _folder_entries(path: Path) -> Iterator[_Entry]:
    """Yield the files of the folder and of those below it that have parameters."""
    for folder in FOLDERS:
        if not (path / folder).is_dir():
            continue
        for file in sorted((path / folder).iterdir()):
            if file.is_file():
                text = read_text(file, max_bytes=MAX_NUMBER_BYTES) if file.name in _BY_NAME else ""
                yield _Entry(where=str(file), name=file.name, text=text.strip())

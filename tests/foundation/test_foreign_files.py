"""No reader waits for a pipe or reads a device, whatever the format."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.collectives.measurement.files import read_measurements
from fabrictune.collectives.nccl.log_lines import read_log_lines
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.documents import load_json, load_yaml
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.foreign_files import MAX_SHOWN, read_head, shown
from fabrictune.foundation.xml_documents import load_xml
from fabrictune.rdma_bench.captures.reader import read_capture
from fabrictune.topology.importers import IMPORTERS, import_fabric

READERS: dict[str, Callable[[Path], object]] = {
    "capture": read_capture,
    "chakra": lambda path: read_trace([path.rename(path.with_suffix(".0.et"))]),
    "fabric": lambda path: import_fabric([path]),
    "json": load_json,
    "log": lambda path: next(read_log_lines(path)),
    "measurements": read_measurements,
    "trace": lambda path: read_trace([path]),
    "xml": load_xml,
    "yaml": load_yaml,
}


@pytest.mark.parametrize("name", READERS)
def test_a_device_is_refused(name: str, tmp_path: Path) -> None:
    """`/dev/zero` has a size of 0 and never ends."""
    path = tmp_path / "file"
    path.symlink_to("/dev/zero")
    with pytest.raises(InputError):
        READERS[name](path)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"log"}))
def test_a_pipe_is_refused_without_waiting(name: str, tmp_path: Path) -> None:
    """Opening one waits for its writer. A log may be one: `fabrictune rdma timers explain <(zcat log.gz)`."""
    path = tmp_path / "file"
    os.mkfifo(path)
    with pytest.raises(InputError):
        READERS[name](path)


@pytest.mark.parametrize("name", IMPORTERS)
def test_no_importer_reads_a_pipe_or_a_device(name: str, tmp_path: Path) -> None:
    """Neither to tell its format, nor where the format is named."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for path in tmp_path.iterdir():
        IMPORTERS[name].recognises(path)
        with pytest.raises(InputError):
            import_fabric([path], format=name)


def test_the_head_of_what_cannot_be_opened_is_empty(tmp_path: Path) -> None:
    """A folder, nothing at all, and half of a packed file."""
    (tmp_path / "half.gz").write_bytes(b"\x1f\x8b\x08")
    for path in (tmp_path, tmp_path / "none", tmp_path / "half.gz"):
        assert read_head(path, 9, is_unpacked=True) == b""


def test_a_foreign_value_is_shown_within_bounds() -> None:
    """Also an integer of more digits than Python writes out."""
    assert shown("short") == "'short'"
    assert len(shown("x" * 10**6)) == MAX_SHOWN + 3
    assert re.fullmatch("an integer too long to write", shown(10**5000))

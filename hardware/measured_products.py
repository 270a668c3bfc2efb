"""Files of measured matrix products: a shape a line, with the rate that it reached.

Comma-separated, with a header that names the columns in any order: `m`, `n`, `k`, `layout` (TN, NN or NT, as cuBLAS has
it) and `tflops`; and, where they are known, `batch` (1) and `result_bytes`, what an entry of the result moves (2; 8 for
single precision that is added to).
"""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.hardware.gemm import Layout, Product
from fabrictune.hardware.gemm_fit import MeasuredProduct

MAX_FILE_BYTES = 16 * 2**20
MAX_SIZE = 2**31
MAX_TFLOPS = 1e6
LAYOUTS: Mapping[str, Layout] = {"TN": "TN", "NN": "NN", "NT": "NT"}
REQUIRED = ("m", "n", "k", "layout", "tflops")
OPTIONAL = ("batch", "result_bytes")
_FLOPS_PER_TFLOPS = 1e12


def read_measured_products(path: Path) -> list[MeasuredProduct]:
    """Return the shapes in a file; raises InputError with every mistake."""
    rows = csv.reader(io.StringIO(read_text(path, max_bytes=MAX_FILE_BYTES), newline=""))
    shapes: list[MeasuredProduct] = []
    mistakes: list[Mistake] = []
    try:
        columns = _columns(path, [name.strip() for name in next(rows, [])])
        for cells in rows:
            if cells:
                _append(shapes, mistakes, dict(zip(columns, cells, strict=False)), f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise InputError(Mistake(where=f"{path}:{rows.line_num}", found=str(error))) from None
    if mistakes:
        raise InputError(*mistakes)
    return shapes


def _columns(path: Path, columns: list[str]) -> list[str]:
    """Return the columns of a header; raises InputError for those that are unknown, twice or missing."""
    known = (*REQUIRED, *OPTIONAL)
    allowed = ", ".join(known)
    mistakes = [
        Mistake(where=f"{path}:1", found=f"column {name[:60]!r}", nearest=nearest_name(name, known), allowed=allowed)
        for name in columns
        if name not in known or columns.count(name) > 1
    ]
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        mistakes.append(Mistake(where=f"{path}:1", found=f"no column {', '.join(missing)}", allowed=allowed))
    if mistakes:
        raise InputError(*mistakes)
    return columns


def _append(shapes: list[MeasuredProduct], mistakes: list[Mistake], cells: Mapping[str, str], where: str) -> None:
    """Append the shape of a line, or its mistakes."""
    sizes = {name: _size(cells.get(name, ""), where, name, mistakes) for name in ("m", "n", "k")}
    optional = {name: _size(cells[name], where, name, mistakes) for name in OPTIONAL if cells.get(name)}
    layout, rate = cells.get("layout", "").strip().upper(), _rate(cells.get("tflops", ""))
    if layout not in LAYOUTS:
        mistakes.append(Mistake(where=f"{where}: layout", found=repr(layout[:60]), allowed=", ".join(LAYOUTS)))
    if rate is None:
        found = repr(cells.get("tflops", "")[:60])
        mistakes.append(Mistake(where=f"{where}: tflops", found=found, allowed=f"above 0, up to {MAX_TFLOPS:g}"))
    if layout in LAYOUTS and rate is not None and all((*sizes.values(), *optional.values())):
        product = Product(**sizes, batch=optional.get("batch", 1), layout=LAYOUTS[layout])
        result_bytes = optional.get("result_bytes", 2)
        shapes.append(MeasuredProduct(product=product, flops_per_s=rate * _FLOPS_PER_TFLOPS, result_bytes=result_bytes))


def _size(text: str, where: str, name: str, mistakes: list[Mistake]) -> int:
    """Return a size, 0 for what is none."""
    plain = text.strip()
    size = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= len(str(MAX_SIZE)) else 0
    if not 1 <= size <= MAX_SIZE:
        mistakes.append(Mistake(where=f"{where}: {name}", found=repr(text[:60]), allowed=f"1 to {MAX_SIZE}"))
        return 0
    return size


def _rate(text: str) -> float | None:
    try:
        rate = float(text)
    except ValueError:
        return None
    return rate if math.isfinite(rate) and 0 < rate <= MAX_TFLOPS else None

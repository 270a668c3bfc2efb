"""Files of measured products: columns in any order, and every mistake with its line."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.hardware.gemm import Product
from fabrictune.hardware.gemm_fit import MeasuredProduct
from fabrictune.hardware.measured_products import read_measured_products


def test_columns_stand_in_any_order(tmp_path: Path) -> None:
    """What is left out is one product of half precision."""
    path = tmp_path / "shapes.csv"
    path.write_text("layout,tflops,m,n,k,batch,result_bytes\nTN,250.5,4096,8192,1024,,\nnt,200,8,16,32,4,8\n")
    assert read_measured_products(path) == [
        MeasuredProduct(product=Product(m=4096, n=8192, k=1024, layout="TN"), flops_per_s=250.5e12),
        MeasuredProduct(product=Product(m=8, n=16, k=32, batch=4, layout="NT"), flops_per_s=200e12, result_bytes=8),
    ]


def test_every_mistake_has_its_line(tmp_path: Path) -> None:
    """A size of zero, a layout that is none, a rate that is no number."""
    path = tmp_path / "shapes.csv"
    path.write_text("m,n,k,layout,tflops\n0,1,1,TN,1\n1,1,1,XY,nan\n")
    with pytest.raises(InputError) as refused:
        read_measured_products(path)
    assert str(refused.value).replace(f"{tmp_path}/", "") == (
        "shapes.csv:2: m: '0'\n  allowed: 1 to 2147483648\n"
        "shapes.csv:3: layout: 'XY'\n  allowed: TN, NN, NT\n"
        "shapes.csv:3: tflops: 'nan'\n  allowed: above 0, up to 1e+06"
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1,1,1,XY,1", "layout: 'XY'"),
        ("1,1,1,TN,0", "tflops: '0'"),
        ("1,1,1,TN,1000000.5", "tflops: '1000000.5'"),
        ("1,1,1,TN,one", "tflops: 'one'"),
        ("1,1,2147483649,TN,1", "k: '2147483649'"),
        (f"{'9' * 80},1,1,TN,1", f"m: '{'9' * 60}'\n"),
        ("1,1,1", "layout: ''"),
    ],
)
def test_one_mistake_is_enough(line: str, told: str, tmp_path: Path) -> None:
    """With all else in order; the limits themselves are allowed."""
    path = tmp_path / "shapes.csv"
    path.write_text(f"m,n,k,layout,tflops\n2147483648,1,1,TN,1e6\n{line}\n")
    with pytest.raises(InputError) as refused:
        read_measured_products(path)
    assert str(refused.value).startswith(f"{path}:3: {told}")


def test_a_file_of_more_than_16_mib_is_refused(tmp_path: Path) -> None:
    """One byte more; as large as that it is read."""
    path = tmp_path / "shapes.csv"
    header = "m,n,k,layout,tflops\n"
    path.write_text(header + "\n" * (2**24 - len(header)))
    assert read_measured_products(path) == []
    path.write_text(header + "\n" * (2**24 - len(header) + 1))
    with pytest.raises(InputError, match="16777217 bytes"):
        read_measured_products(path)


def test_a_header_lacks_nothing(tmp_path: Path) -> None:
    """And has no column that nothing reads."""
    path = tmp_path / "shapes.csv"
    path.write_text("m,n,k,layot,tflops\n")
    with pytest.raises(InputError) as refused:
        read_measured_products(path)
    assert str(refused.value).replace(f"{tmp_path}/", "") == (
        "shapes.csv:1: column 'layot'\n  did you mean 'layout'?\n"
        "  allowed: m, n, k, layout, tflops, batch, result_bytes\n"
        "shapes.csv:1: no column layout\n  allowed: m, n, k, layout, tflops, batch, result_bytes"
    )


@given(text=st.text(alphabet='mnk,layouttflopsTN019.e-+" \n\r\x00', max_size=200))
def test_any_text_is_shapes_or_a_mistake(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Never another exception."""
    path = tmp_path_factory.mktemp("shapes") / "shapes.csv"
    path.write_text(f"m,n,k,layout,tflops\n{text}", newline="")
    with suppress(InputError):
        assert all(one.flops_per_s > 0 for one in read_measured_products(path))

"""The study of products' rates: its lines, and what it refuses."""

from pathlib import Path

import pytest

from benchmarks.studies.gemm_rates import main
from fabrictune.hardware.files import bundled_profile
from fabrictune.hardware.gemm import Product, product_s


def write_shapes(path: Path, depths: tuple[int, ...]) -> None:
    """Write shapes that take what the profile of an A100 says."""
    gpu = bundled_profile("a100").gpu
    lines = ["m,n,k,layout,tflops"]
    for tokens in range(1024, 8192, 512):
        for depth in depths:
            shape = Product(m=tokens, n=8192, k=depth, layout="NN")
            rate = shape.flops / (product_s(gpu, shape) + gpu.launch_ps / 1e12)
            lines.append(f"{tokens},8192,{depth},NN,{rate / 1e12}")
    path.write_text("\n".join(lines))


def test_the_study_prints_rates_as_a_profile_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shapes made by the profile itself: its own shares, and no error."""
    path = tmp_path / "shapes.csv"
    write_shapes(path, (1024, 4096))
    assert main([str(path), "a100"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "gemm:\n  tn: 78.2 %\n  nn: 79.7 %\n  nt: 74.9 %\n  half_depth: 100.0\n  load_cost: 4.0\n\n"
    )
    assert "\nthe profile as it is: 28 shapes, mean 0.00%" in printed


def test_one_depth_does_not_tell_its_loss_from_the_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A share of 80 % with 100 steps besides, or one of 84 % with 360."""
    path = tmp_path / "shapes.csv"
    write_shapes(path, (4096,))
    assert main([str(path), "a100"]) == 0
    assert "all shapes have one depth: they do not tell half_depth from the shares" in capsys.readouterr().out


def test_a_file_that_is_none_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the mistake, and no traceback."""
    assert main([str(tmp_path / "no.csv"), "a100"]) == 2
    assert "no.csv" in capsys.readouterr().err
    assert main([]) == 2

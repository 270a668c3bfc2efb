"""Devices of ranks: each GPU by its number, in every thread."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune import collectives, trainer_probe
from fabrictune.trainer_probe.data.loader import Loader

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.training.hardware import device_of, driver_settings
from fabrictune.trainer_probe.training.input_pipeline import Feed
from tests.trainer_probe.training.alone import small

WITHOUT_A_NUMBER = re.compile(r"""device\(\s*["']cuda["']\s*\)|\.to\(\s*["']cuda|device=["']cuda["']|\.cuda\(\s*\)""")


def test_a_rank_has_the_gpu_of_its_local_number() -> None:
    """The first GPU has a number, too."""
    assert device_of(small({"device": "cuda"}), 3) == torch.device("cuda", 3)
    assert device_of(small({"device": "cuda"})).index == 0
    assert device_of(small(), 3) == torch.device("cpu")


def test_collectives_beside_products_are_launched_in_order() -> None:
    """Only where tensor-parallel collectives run beside products, and only on GPUs."""
    tensor_parallel: dict[str, object] = {"device": "cuda", "degrees": {"layout": {"tp": 2}}}
    assert driver_settings(small(tensor_parallel)) == {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    assert driver_settings(small({**tensor_parallel, "overlap": "dp"})) == {}
    assert driver_settings(small({"device": "cuda"})) == {}
    assert driver_settings(small({**tensor_parallel, "device": "cpu"})) == {}


class Rows(Loader):
    """Two rows of three ids, again and again."""

    def __init__(self) -> None:
        """Connect to nothing."""

    def take(self) -> NDArray[np.int64]:
        """Return the rows."""
        return np.arange(6).reshape(2, 3)


def test_batches_are_where_the_feed_is_told() -> None:
    """Its own thread copies them; meta stands for a device that is not the default."""
    feed = Feed(Rows(), 1, torch.device("meta"))
    try:
        batches = feed.take()
    finally:
        feed.close()
    assert len(batches) == 2
    assert all(ids.is_meta for batch in batches for ids in (batch.tokens_BS, batch.targets_BS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_batches_arrive_on_a_gpu() -> None:
    """Whole, whatever the copies of later ones do with the memory of earlier ones."""
    feed = Feed(Rows(), 1, torch.device("cuda", 0))
    try:
        steps = [feed.take() for _ in range(20)]
    finally:
        feed.close()
    assert all(batch.tokens_BS.tolist() in ([[0, 1]], [[3, 4]]) for batches in steps for batch in batches)


@pytest.mark.parametrize("package", [trainer_probe, collectives], ids=["trainer_probe", "collectives"])
def test_no_device_is_named_without_its_number(package: object) -> None:
    """Such a device is the current one of a thread, which is the first GPU in every new thread."""
    (folder,) = package.__path__  # type: ignore[attr-defined]  # a package's
    found = [path for path in Path(folder).rglob("*.py") if WITHOUT_A_NUMBER.search(path.read_text())]
    assert not found

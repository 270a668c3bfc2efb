"""What all tests of the trainer have around them."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Have torch use one thread, as the ranks do: products this small only wait for others."""
    try:
        import torch
    except ImportError:
        yield
        return
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)

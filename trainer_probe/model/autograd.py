"""Calls of autograd functions that are written by hand."""

from typing import Any

import torch
from torch.autograd.function import Function


def apply(function: type[Function], *arguments: Any) -> torch.Tensor:
    """Return the result of an autograd function, whose `apply` torch leaves untyped."""
    result: torch.Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result

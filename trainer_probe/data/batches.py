"""Batches: the samples of each data-parallel replica in each step, read from a token file.

A sample is `sequence_length` ids and one more, since every id is predicted from those before it; the next sample begins
with that last one. Each step takes the next `batch_size` places of the order, replica after replica, so that the whole
batch does not depend on the number of replicas, and a training resumes at a place, whatever its batch size was.

Left out: samples cross the ends of texts.

Shapes: R rows of one replica; C columns, the sequence length and one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, TokenFileError
from fabrictune.trainer_probe.data.order import SampleOrder
from fabrictune.trainer_probe.data.token_file import TokenFile


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """A token file, the samples to read from it, and how replicas share them."""

    path: str = field(metadata={"help": "token file"})
    sequence_length: int = field(metadata={"help": "predicted ids of a sample"})
    batch_size: int = field(metadata={"help": "samples of the whole batch, over all replicas"})
    vocabulary_size: int = field(metadata={"help": "ids of the model's vocabulary"})
    num_replicas: int = field(default=1, metadata={"help": "data-parallel degree"})
    seed: int = field(default=0, metadata={"help": "seed of the order"})

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=f"data.{name}", found=str(getattr(self, name)), allowed="1 or more")
            for name in ("sequence_length", "batch_size", "vocabulary_size", "num_replicas")
            if getattr(self, name) < 1
        ]
        if not 0 <= self.seed < 2**63:
            mistakes.append(Mistake(where="data.seed", found=str(self.seed), allowed="0 to 2**63 - 1"))
        if not mistakes and self.batch_size % self.num_replicas:
            mistakes.append(
                Mistake(
                    where="data.batch_size",
                    found=str(self.batch_size),
                    allowed=f"a multiple of the data-parallel degree, {self.num_replicas}",
                )
            )
        if mistakes:
            raise InputError(*mistakes)

    @property
    def rows(self) -> int:
        """Samples of a replica in a step."""
        return self.batch_size // self.num_replicas


class Batches:
    """The batches of a token file; raises TokenFileError where it can't be read or doesn't fit."""

    def __init__(self, spec: BatchSpec) -> None:
        self.spec = spec
        self.file = TokenFile.open(Path(spec.path))
        mistakes = []
        if self.file.vocabulary_size > spec.vocabulary_size:
            mistakes.append(
                Mistake(
                    where=spec.path,
                    found=f"a vocabulary of {self.file.vocabulary_size} ids",
                    allowed=f"at most the model's {spec.vocabulary_size}",
                    next_step="give the model a larger vocabulary, or tokenize with a smaller one",
                )
            )
        if self.file.num_tokens <= spec.sequence_length:
            mistakes.append(
                Mistake(
                    where=spec.path,
                    found=f"{self.file.num_tokens} ids",
                    allowed=f"{spec.sequence_length + 1} or more: a sequence and the id after it",
                    next_step="give it more text, or train on shorter sequences",
                )
            )
        if mistakes:
            raise TokenFileError(*mistakes)
        self.num_samples = (self.file.num_tokens - 1) // spec.sequence_length
        self._order = SampleOrder(self.num_samples, spec.seed)

    def read(self, place: int, replica: int, out_RC: NDArray[Any]) -> None:
        """Write a replica's rows of the batch that begins at a place; raises TokenFileError where they are damaged."""
        first = place + replica * self.spec.rows
        samples_R = self._order.samples(np.arange(first, first + self.spec.rows))
        for row_C, sample in zip(out_RC, samples_R.tolist(), strict=True):
            begin = sample * self.spec.sequence_length
            row_C[:] = self.file.read(begin, begin + self.spec.sequence_length + 1)
        if int(out_RC.max()) >= self.file.vocabulary_size:
            self._refuse(samples_R, out_RC)

    def state(self, place: int) -> dict[str, int]:
        """Return the state to resume at a place, in the same order of the same samples."""
        return {
            "place": place,
            "seed": self.spec.seed,
            "sequence_length": self.spec.sequence_length,
            "num_tokens": self.file.num_tokens,
            "checksum": self.file.checksum,
        }

    def resume(self, state: Mapping[str, int]) -> int:
        """Return the place to resume at; raises InputError for a state of another order or another file."""
        own = self.state(state["place"])
        mistakes = [
            Mistake(
                where=f"state of the data: {name}",
                found=str(own[name]),
                allowed=f"{state[name]}, as when the state was saved",
                next_step="resume with the token file and settings of the earlier run",
            )
            for name in own
            if own[name] != state[name]
        ]
        if mistakes:
            raise InputError(*mistakes)
        return state["place"]

    def _refuse(self, samples_R: IntArray, out_RC: NDArray[Any]) -> None:
        row, column = (int(index) for index in np.argwhere(out_RC >= self.file.vocabulary_size)[0])
        raise TokenFileError(
            Mistake(
                where=f"{self.spec.path}: id number {int(samples_R[row]) * self.spec.sequence_length + column}",
                found=f"id {int(out_RC[row, column])}, beyond the vocabulary",
                allowed=f"0 to {self.file.vocabulary_size - 1}",
                next_step="the file is damaged: tokenize the text again",
            )
        )

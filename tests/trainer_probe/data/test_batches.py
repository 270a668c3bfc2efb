"""Batches: the same whole whatever shares it, and taken up again at the sample."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.errors import InputError, TokenFileError
from fabrictune.trainer_probe.data.batches import Batches, BatchSpec
from fabrictune.trainer_probe.data.token_file import HEADER_BYTES
from tests.trainer_probe.data.conftest import MakeFile, make_first_version


def spec_of(path: Path, **settings: Any) -> BatchSpec:
    """Samples of 4 ids and the one after; 12 to a batch."""
    return BatchSpec(
        **{"path": str(path), "sequence_length": 4, "batch_size": 12, "vocabulary_size": 1000, "seed": 9, **settings}
    )


def read(batches: Batches, place: int, replica: int = 0) -> NDArray[Any]:
    rows_RC = np.empty((batches.spec.rows, batches.spec.sequence_length + 1), dtype=np.uint16)
    batches.read(place, replica, rows_RC)
    return rows_RC


def test_an_epoch_has_every_sample_once(make_file: MakeFile) -> None:
    """145 ids 0, 1, 2, ... are 36 samples (0 to 4, 4 to 8, ...): three batches of 12."""
    batches = Batches(spec_of(make_file(145)))
    rows = np.concatenate([read(batches, place) for place in (0, 12, 24)])
    assert batches.num_samples == 36
    assert sorted(rows.tolist()) == [list(range(first, first + 5)) for first in range(0, 144, 4)]


def test_ids_that_fill_no_sample_are_left_out(make_file: MakeFile) -> None:
    """148 ids are 36 samples too: a 37th would need id 148."""
    assert Batches(spec_of(make_file(148))).num_samples == 36
    assert Batches(spec_of(make_file(149))).num_samples == 37


@pytest.mark.parametrize("num_replicas", [2, 3, 4])
def test_replicas_share_the_batch_that_one_would_have(num_replicas: int, make_file: MakeFile) -> None:
    """Row after row, replica after replica, at a place in the middle of an epoch's end."""
    path = make_file(145)
    alone = read(Batches(spec_of(path)), 30)
    shared = Batches(spec_of(path, num_replicas=num_replicas))
    assert np.array_equal(np.concatenate([read(shared, 30, replica) for replica in range(num_replicas)]), alone)


def test_a_training_goes_on_at_the_sample_with_another_batch_size(make_file: MakeFile) -> None:
    """7 batches of 12 end at place 84; batches of 4 from there on are the 8th batch of 12, cut in three."""
    path = make_file(1001)
    before, after = Batches(spec_of(path)), Batches(spec_of(path, batch_size=4))
    place = after.resume(before.state(84))
    rows = np.concatenate([read(after, place + 4 * step) for step in range(3)])
    assert np.array_equal(rows, read(before, 84))


def test_a_state_of_another_order_is_refused(make_file: MakeFile) -> None:
    """Another seed, and samples of another length: both are said."""
    path = make_file(145)
    state = Batches(spec_of(path)).state(24)
    with pytest.raises(InputError) as error:
        Batches(spec_of(path, seed=10, sequence_length=8)).resume(state)
    assert str(error.value) == (
        "state of the data: seed: 10\n  allowed: 9, as when the state was saved\n"
        "  next: resume with the token file and settings of the earlier run\n"
        "state of the data: sequence_length: 8\n  allowed: 4, as when the state was saved\n"
        "  next: resume with the token file and settings of the earlier run"
    )


def test_a_state_of_another_file_is_refused(make_file: MakeFile) -> None:
    """Of the same length even: the checksum of the ids tells."""
    state = Batches(spec_of(make_file(145))).state(24)
    with pytest.raises(InputError, match="state of the data: checksum"):
        Batches(spec_of(make_file(145, vocabulary_size=100))).resume(state)


def test_a_file_that_does_not_fit_the_model_is_refused(make_file: MakeFile) -> None:
    """Too many ids for the model's vocabulary, and too few for one sequence: both are said."""
    path = make_file(100)
    with pytest.raises(TokenFileError) as error:
        Batches(spec_of(path, vocabulary_size=257, sequence_length=100))
    assert str(error.value).replace(str(path), "text.tokens") == (
        "text.tokens: a vocabulary of 1000 ids\n  allowed: at most the model's 257\n"
        "  next: give the model a larger vocabulary, or tokenize with a smaller one\n"
        "text.tokens: 100 ids\n  allowed: 101 or more: a sequence and the id after it\n"
        "  next: give it more text, or train on shorter sequences"
    )


def test_a_damaged_id_is_refused_when_it_is_read(make_file: MakeFile) -> None:
    """Id number 77 becomes 65535 in a file without checksums of blocks; the batches without it are good."""
    path = make_file(145)
    make_first_version(path)
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES + 2 * 77 : HEADER_BYTES + 2 * 78] = b"\xff\xff"
    path.write_bytes(content)
    batches = Batches(spec_of(path, batch_size=1))
    refusals = []
    for place in range(batches.num_samples):
        try:
            read(batches, place)
        except TokenFileError as error:
            refusals.append(str(error).replace(str(path), "text.tokens"))
    assert refusals == [
        "text.tokens: id number 77: id 65535, beyond the vocabulary\n  allowed: 0 to 999\n"
        "  next: the file is damaged: tokenize the text again"
    ]


def test_all_mistakes_of_the_settings_are_said_at_once(tmp_path: Path) -> None:
    """Before any file is opened."""
    with pytest.raises(InputError) as error:
        spec_of(tmp_path, sequence_length=0, seed=-1)
    assert str(error.value) == (
        "data.sequence_length: 0\n  allowed: 1 or more\ndata.seed: -1\n  allowed: 0 to 2**63 - 1"
    )
    with pytest.raises(InputError, match=r"data\.batch_size: 12\n  allowed: a multiple of the data-parallel degree, 5"):
        spec_of(tmp_path, num_replicas=5)

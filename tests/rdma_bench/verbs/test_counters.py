"""What counters counted between two readings, whatever they did in between."""

from pathlib import Path

import pytest

from fabrictune.rdma_bench.verbs.counters import Certainty, by_meaning, count_changes, read_counters


@pytest.mark.parametrize(
    ("name", "before", "after", "change", "certainty"),
    [
        ("local_ack_timeout_err", 5, 9, 4, "exact"),
        ("local_ack_timeout_err", 2**32 - 3, 2, 5, "wrapped"),  # 3 to the top, then 2 more
        ("local_ack_timeout_err", 1_000_000, 7, 7, "reset"),  # a wrap would be four billion
        ("port_rcv_data", 2**40, 12, 12, "reset"),  # of 64 bits: it never wraps
        ("symbol_error", 65_530, 65_535, 5, "at least"),  # 16 bits that stop at the top
        ("link_downed", 255, 255, 0, "at least"),
    ],
)
def test_a_change_says_how_sure_it_is(name: str, before: int, after: int, change: int, certainty: Certainty) -> None:
    """Exact, once around 2**32, begun anew, or stopped at the highest value."""
    (found,) = count_changes({name: before}, {name: after})
    assert (found.name, found.change, found.certainty) == (name, change, certainty)


def test_what_did_not_move_is_left_out() -> None:
    """And so is what only one reading has."""
    assert count_changes({"duplicate_request": 3, "gone": 1}, {"duplicate_request": 3, "new": 8}) == ()


@pytest.mark.parametrize("name", ["local_ack_timeout_err", "to_retransmits", "completer_retry_err"])
def test_drivers_names_have_one_meaning(name: str) -> None:
    """mlx5, bnxt_re and rxe each call a timeout something else."""
    assert by_meaning(count_changes({name: 0}, {name: 6})) == {"timeouts": 6}


def test_counters_are_read_from_both_folders(tmp_path: Path) -> None:
    """Those that are no number are left out, and so is how long the driver keeps a reading."""
    port = tmp_path / "mlx5_0" / "ports" / "1"
    for folder, name, text in (
        ("hw_counters", "out_of_sequence", "12\n"),
        ("hw_counters", "lifespan", "10\n"),
        ("counters", "link_downed", "2\n"),
        ("counters", "port_xmit_wait", "N/A (no PMA)\n"),
    ):
        (port / folder).mkdir(parents=True, exist_ok=True)
        (port / folder / name).write_text(text)
    assert read_counters("mlx5_0", root=tmp_path) == {"out_of_sequence": 12, "link_downed": 2}

"""Gray loss: the planted link is named alone, and chance names nobody."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies.gray_loss.trials import Bench
from fabrictune.foundation.errors import InputError
from fabrictune.observability.gray_loss.counts import CountedPath, gather_counts
from fabrictune.observability.gray_loss.detection import find_lossy_links, packets_needed
from fabrictune.observability.gray_loss.files import read_counts
from fabrictune.observability.gray_loss.record import make_loss_record

_LEAVES = [f"{one}{other}" for one in "abcde" for other in "abcde" if one != other]


def _cross(received: dict[tuple[str, str], int], *, sent: int = -1) -> list[CountedPath]:
    """Return paths from each of two leaves to the other over spines s0 to s3."""
    return [
        CountedPath(flow=flow, links=[f"{flow[0]}-s{spine}", f"s{spine}-{flow[1]}"], received=count, sent=sent)
        for (flow, spine), count in received.items()
    ]


def test_a_half_percent_needs_over_a_million_packets_on_the_link() -> None:
    """z of 1 % over 512 links is 4.11, of the power 90 % 1.28: ((4.11 + 1.28) / 0.005)^2 = 1.16 million."""
    assert packets_needed(0.005, 512) == pytest.approx(1.163e6, rel=2e-3)


def test_the_share_that_one_path_lacks_is_its_loss() -> None:
    """Three paths bring 10,000 and one 9,000: the loss is 10 %, and two links have that path: both are named."""
    (lossy,) = find_lossy_links(gather_counts(_cross({("ab", s): 9_000 if s == "2" else 10_000 for s in "0123"}))).lossy
    assert lossy.links == ("a-s2", "s2-b")
    assert lossy.loss_fraction == pytest.approx(0.1, abs=1e-3)


def test_paths_that_cross_tell_the_link() -> None:
    """Both flows from a are short over s2, that from c to b is not: the link is a's."""
    counts = {("ab", s): 9_000 if s == "2" else 10_000 for s in "0123"}
    counts |= {("ac", s): 9_010 if s == "2" else 10_005 for s in "0123"} | {("cb", s): 10_000 for s in "0123"}
    (lossy,) = find_lossy_links(gather_counts(_cross(counts))).lossy
    assert lossy.links == ("a-s2",)


def test_where_senders_count_a_hundred_times_fewer_packets_are_enough() -> None:
    """30 of 2,000 lost on one path, none elsewhere: 1.5 %, beyond what any background explains."""
    paths = _cross({("ab", s): 1_970 if s == "1" else 2_000 for s in "0123"}, sent=2_000)
    (lossy,) = find_lossy_links(gather_counts(paths)).lossy
    assert lossy.loss_fraction == pytest.approx(0.015, rel=0.01)


@pytest.mark.parametrize(("lost", "is_named"), [(9, True), (2, False)])
def test_of_seen_losses_a_few_count_where_no_other_packet_is_lost(lost: int, *, is_named: bool) -> None:
    """Of 1,750 packets of a link, among 44,000 of all. Two may be packets that were sent again without need."""
    rows = [(flow, spine) for flow in _LEAVES for spine in "0123"]
    sent = 550
    received = {row: sent - (lost if row == ("ab", "2") else 0) for row in rows}
    report = find_lossy_links(gather_counts(_cross(received, sent=sent)))
    assert bool(report.lossy) == is_named


def test_links_that_all_paths_share_are_counted_as_unseen() -> None:
    paths = [CountedPath(flow="f", links=["host", f"up{row}"], received=100) for row in range(4)]
    report = find_lossy_links(gather_counts(paths))
    assert (report.num_links, report.num_unseen, report.lossy) == (5, 1, ())


def test_unequal_shares_are_expected_where_they_are_given() -> None:
    paths = [
        CountedPath(flow="f", links=[f"up{row}"], received=n, share=n / 1e6) for row, n in enumerate((10_000, 30_000))
    ]
    assert find_lossy_links(gather_counts(paths)).lossy == ()


@pytest.mark.parametrize("loss", [0.005, 0.02])
def test_a_planted_link_among_64_hosts_is_located(loss: float) -> None:
    """A sample of the study: five trials a loss, and five clean runs."""
    bench = Bench(64, seed=3)
    packets = bench.packets(loss)
    assert sum(bench.trial(loss, seed, packets=packets).is_located for seed in range(5)) >= 4
    clean = [bench.trial(loss, seed, packets=packets, is_clean=True) for seed in range(5)]
    assert sum(bool(trial.report.lossy) for trial in clean) == 0


def test_spraying_in_turn_needs_fewer_packets() -> None:
    """Counts that differ by one packet at most have a dispersion near its least; 1 % of 5,000 stands out."""
    random = np.random.default_rng(0)
    counts = {(flow, s): 5_000 + int(random.integers(2)) for flow in _LEAVES for s in "0123"}
    for flow in ("ab", "ac", "ad", "ae"):
        counts[flow, "3"] -= 50
    report = find_lossy_links(gather_counts(_cross(counts)))
    assert [lossy.links for lossy in report.lossy] == [("a-s3",)]


def test_the_record_names_the_link_and_says_what_it_may_miss() -> None:
    counts = {("ab", s): 90_000 if s == "2" else 100_000 for s in "0123"} | {("cb", s): 100_000 for s in "0123"}
    record = make_loss_record(gather_counts(_cross(counts)), source="counts.csv", started=0.0)
    (finding,) = record.findings
    assert (finding.id, finding.entity) == ("loss.lossy-link", "a-s2")
    assert record.run["notes"][0].startswith("packets are assumed to be sprayed")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("flow,received\nf,1\n", "no column 'links'"),
        ("flow,links,received\n", "no rows"),
        ("flow,links,received\nf,a;b,-3\n", "'-3'"),
        ("flow,links,received,sent\nf,a;b,5,3\n", "5 received of 3 sent"),
        ("flow,links,received\nf,,5\n", "0 links"),
        ("flow,links,received,share\nf,a,5,nan\n", "share 'nan'"),
    ],
)
def test_mistakes_of_a_file_are_named(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_counts(path)
    assert error.value.mistakes[0].found == found

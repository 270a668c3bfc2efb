"""Files of observed next hops, and what is wrong with them, word for word."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.topology.hash_learning.headers import FlowHeader
from fabrictune.topology.hash_learning.observations import read_choices, read_flows


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_rows_without_a_next_hop_are_counted(tmp_path: Path) -> None:
    text = (
        "switch,source,destination,source_port,next_hop\nt0,10.0.0.1,10.0.1.1,49152,s1\nt0,10.0.0.1,10.0.1.1,49153,\n"
    )
    choices, num_left_out = read_choices(written(tmp_path / "seen.csv", text))
    assert num_left_out == 1
    (choice,) = choices
    assert (choice.switch, choice.next_hop) == ("t0", "s1")
    assert choice.header == FlowHeader(source_ipv4=0x0A000001, destination_ipv4=0x0A000101, source_port=49152)


def test_flows_need_addresses_alone(tmp_path: Path) -> None:
    (header,) = read_flows(written(tmp_path / "flows.csv", "source,destination\n10.0.0.1,10.0.1.1\n"))
    assert header.source_port == 49152


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "seen.csv: an empty file"),
        ("source\n", "seen.csv:1: no column destination, source_port, next_hop"),
        ("source,destination,source_port,next_hop\n1.2.3,10.0.0.1,1,a\n", "seen.csv:2: source '1.2.3'"),
        ("source,destination,source_port,next_hop\n1.2.3.4,10.0.0.1,65536,a\n", "seen.csv:2: source_port '65536'"),
        ("source,destination,source_port,next_hop\n1.2.3.4,10.0.0.1\n", "seen.csv:2: 2 columns"),
    ],
)
def test_mistakes_have_their_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_choices(written(tmp_path / "seen.csv", text))
    assert said in str(error.value)


def test_a_record_of_another_kind_is_refused(tmp_path: Path) -> None:
    place = RunRecord(kind="simulation", run=describe_run(seed=0, started=0.0), tables={}).write(tmp_path / "run")
    with pytest.raises(InputError, match="a record of 'simulation'"):
        read_choices(place)


def test_probed_paths_are_a_choice_a_hop(tmp_path: Path) -> None:
    """Three hops have two choices; behind an unknown one there is none."""
    hops = [{"addresses": [f"10.255.0.{n}"], "names": [name]} for n, name in enumerate(("tor0:down1", "s1:down0", ""))]
    unknown: dict[str, list[str]] = {"addresses": [], "names": []}
    paths = [{"hops": hops, "source_ports": [49152, 49153]}, {"hops": [hops[0], unknown], "source_ports": [49154]}]
    run = describe_run(seed=0, started=0.0, targets=[{"source": "10.0.0.1", "target": "10.0.1.1", "paths": paths}])
    choices, num_left_out = read_choices(RunRecord(kind="topo probe", run=run, tables={}).write(tmp_path / "run"))
    assert num_left_out == 1
    assert [(one.switch, one.header.source_port, one.next_hop) for one in choices] == [
        ("tor0", 49152, "s1:down0"),
        ("tor0", 49153, "s1:down0"),
        ("s1", 49152, "10.255.0.2"),
        ("s1", 49153, "10.255.0.2"),
    ]

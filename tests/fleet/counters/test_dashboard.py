"""The dashboard asks for names that are served, shows every class once in each row, and overlaps nowhere."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.fleet.counters.dashboard import PANELS
from fabrictune.fleet.counters.open_metrics import family_name
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.monitor.endpoint import open_metrics
from fabrictune.rdma_bench.monitor.monitoring import Monitor
from fabrictune.rdma_bench.monitor.sources import NicSources


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> dict[str, Any]:
    """Return the dashboard as the command writes it."""
    assert run(["fleet", "counters", "dashboard", "--out", str(tmp_path / "nics.json")]) == 0
    model: dict[str, Any] = json.loads((tmp_path / "nics.json").read_text())
    return model


def test_every_class_is_shown_once() -> None:
    shown = [one for _, _, classes in PANELS for one in classes]
    assert sorted(shown) == sorted(set(CounterClass) - {CounterClass.NOT_KNOWN})


def test_its_queries_ask_for_names_that_are_served(model: dict[str, Any], tmp_path: Path) -> None:
    """Those of the endpoint, and the families of the fleet's text."""
    monitor = Monitor(
        sources=NicSources(root=tmp_path), interval_s=0.002
    )  # no NICs; the families are named all the same
    served = set(re.findall(r"^# TYPE (\w+) ", open_metrics(monitor), re.M))
    served |= {f"{family_name(one)}_total" for one in CounterClass}
    queries = [target["expr"] for panel in model["panels"] for target in panel.get("targets", ())]
    assert len(queries) == 2 * len(PANELS) + len(CounterClass) - 1
    assert {re.search(r"fabrictune_nic\w+", query)[0] for query in queries} <= served  # type: ignore[index]


def test_panels_have_numbers_of_their_own_and_do_not_overlap(model: dict[str, Any]) -> None:
    panels = model["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == 2 + 2 * len(PANELS)
    for first, second in combinations([panel["gridPos"] for panel in panels], 2):
        is_beside = first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        is_above = first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]
        assert is_beside or is_above

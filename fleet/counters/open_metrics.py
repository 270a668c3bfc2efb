"""Counters in OpenMetrics text, for a scrape or a textfile collector: one family by class, labels for the rest.

Source: OpenMetrics 1.0 (text format: counters end in `_total`, the text in `# EOF`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from fabrictune.fleet.counters.snapshots import Place
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.counters.snapshots import Counter
from fabrictune.rdma_bench.monitor.endpoint import label_value

PREFIX = "fabrictune_nic_"


def open_metrics(counters: Iterable[Counter], places: Mapping[str, Place]) -> Iterator[str]:
    """Yield the lines of all counters whose class is known."""
    families: dict[CounterClass, list[Counter]] = {}
    for counter in counters:
        if counter.meaning.counter_class != CounterClass.NOT_KNOWN:
            families.setdefault(counter.meaning.counter_class, []).append(counter)
    for counter_class, members in families.items():
        name = family_name(counter_class)
        yield f"# TYPE {name} counter"
        yield f"# HELP {name} {counter_class.value}"
        for counter in members:
            place = places.get(counter.device, Place())
            node, _, device = counter.device.partition("/")
            labels = {"node": node, "device": device, "counter": counter.name, "other_end": place.other_end}
            if place.rail is not None:
                labels["rail"] = str(place.rail)
            shown = ",".join(f'{label}="{label_value(value)}"' for label, value in labels.items())
            yield f"{name}_total{{{shown}}} {counter.value * counter.meaning.factor}"
    yield "# EOF"


def family_name(counter_class: CounterClass) -> str:
    """Return the name of a class's family, without the ending of a counter's samples."""
    return PREFIX + re.sub(r"\W+", "_", counter_class.value)

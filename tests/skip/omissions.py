"""`python -m tests.skip.omissions`: every value of exact skip's walk left out in turn, and the run that tells.

Builds the engine once more in build/omissions, with a number at each place where the walk tells a visitor a value. A
value that is left out is not kept, compared or moved. It is *caught* if a run's results change; one that follows from
others never is, and stands in IMPLIED with the reason.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build/omissions"
COPIED = ("CMakeLists.txt", "netsim/engine", "topology/fairness_engine")
SOURCES = ("skip/state_walk.inl", "skip/features_walk.inl", "state/host_links.hpp", "state/entropy_cache.hpp")
CALL = re.compile(r"\bvisitor\.(same|instant|stamp|anchor|count)\(")
NUM_PLAIN, NUM_FEATURED, NUM_ROUNDS = 40, 80, 40

LEFT_OUT = """
inline int omitted = -1;

template <typename Visitor>
bool leave_out(Visitor& visitor) {
    if constexpr (requires { visitor.place; }) {
        visitor.place++;
    } else if constexpr (requires { visitor.keep(0); }) {
        visitor.keep(0);
    }
    return true;
}
"""
TOLD = """
template <typename Visitor, typename... Arguments>
bool tell_KIND(int number, Visitor& visitor, Arguments&&... arguments) {
    return number == omitted ? leave_out(visitor) : visitor.KIND(arguments...);
}
"""

# What follows from other values, which are named: no known run tells that it is left out.
IMPLIED = {
    "state_walk: same(base - sender.oldest_sequence)": "the bytes in flight are full packets",
    "state_walk: same(sender.in_flight_bytes)": "the oldest sequence number",
    "state_walk: same(sender.rtt_ps)": "each repeat ends with the same acknowledgement, and it is read after one",
    "state_walk: same(sender.gap_ps)": "the rate and the last packet's size",
    "state_walk: same(base - sender.highest_sequence)": "packets sent again are counted",
    "state_walk: same(sender.last_wire_bytes)": "within a message packets are full",
    "state_walk: same(static_cast<std::int64_t>(sender.state))": "the rings of ports; a failure comes of a timer",
    "state_walk: same(sender.num_timeouts)": "a timeout ends the search; after progress it is 0",
    "state_walk: same(std::bit_cast<std::int64_t>(sender.rate_bps": "the gap",
    "state_walk: count(sender.num_unacknowledged)": "the end of a transfer begins the search anew",
    "state_walk: same(transfer.num_retransmitted)": "the highest sequence number stands while packets are sent again",
    "state_walk: same(std::int64_t{senders[qp].highest_sequence} ": "packets on their way; a gap comes of a drop",
    "state_walk: same(receiver.transfer)": "as the transfer that is sent",
    "state_walk: same(receiver.message_end)": "as the transfer that is sent",
    "state_walk: same(receiver.num_unanswered)": "the sender's oldest packet and the acknowledgements on their way",
    "state_walk: same(receiver.has_sent_nak)": "a NAK ends the search",
    "state_walk: same(receiver.has_mark && marks_matter())": "packets to acknowledge met the same queues, undrawn",
    "state_walk: same(port.queued_bytes)": "the packets in the queue",
    "state_walk: same(port.ingress_bytes)": "the packets that came through the port",
    "state_walk: same(port.has_wake | port.is_paused << 1 | port.": "what waits, and pause frames and their counts",
    "state_walk: same(stats.dropped_packets)": "a gap: NAK, timer or packet out of order, or bytes in flight that grow",
    "state_walk: instant(flight.arrives_ps, false)": "when the packet was sent and what it met",
    "state_walk: same(END_OF_LIST)": "a longer list moves all values behind it",
    "state_walk: instant(frame.effective_ps, false)": "the packets by which the threshold was crossed",
    "state_walk: same(frame.payload)": "pauses and resumes take turns",
    "state_walk: same(qp)": "what each of the ring's pairs has sent last",
    "state_walk: same(packet.queue_pair)": "the sequence number and the time of sending",
    "state_walk: same(packet.path_position)": "the port it is at, and its queue pair",
    "state_walk: same(packet.wire_bytes | static_cast<std::int64_": "how long it takes on the wire",
    "state_walk: same(packet.ingress_port)": "the queue pair",
    "state_walk: same(is_cnp ? 0 : from_oldest)": "the time of sending",
    "features_walk: same(output.balance_bytes)": "the turn, and the packets sent last",
    "features_walk: same(input.headroom_bytes)": "the packets that came through the port, and pauses",
    "features_walk: same(output.is_paused | output.is_storm << 1 | i": "what waits, and frames; a watch ends a search",
    "features_walk: instant(stats.pause_ends_ps, true)": "its beginning ends the search",
    "features_walk: instant(stats.refresh_ps, true)": "as the end of the pause",
    "features_walk: instant(watchdog.look_ps, true)": "a watch that begins or comes due ends the search",
    "features_walk: anchor(watchdog.last_pause_ps)": "only a storm reads it, which takes a watch",
    "features_walk: anchor(selective.newest_sent_ps)": "the next acknowledgement sets it",
    "features_walk: instant(selective.deadline_ps, true)": "only packets out of order set it",
    "features_walk: same(std::int64_t{transmission.sequence} - sende": "all from the oldest to the next, in order",
    "features_walk: same(END_OF_LIST)": "a longer list moves all values behind it",
    "features_walk: instant(endpoints[qp].answer_ps, false)": "the last of the answers to come",
    "features_walk: instant(reply.arrives_ps, false)": "the time of its packet's arrival in the host",
    "features_walk: same(priorities.ports[port].turn)": "the balance, and the packets sent last",
    "features_walk: instant(nics[port].drained_ps, false)": "the packet before it, and PCIe",
    "features_walk: same(entropies[packet_id])": "the port that it chooses, and the values kept",
    "features_walk: same(times_in_host_ps[packet_id])": "the time of sending and where the answer is",
    "features_walk: same(std::int64_t{expected} - senders[packet.que": "its own sequence number, in order",
    "host_links: instant(read_.until_ps[link], false)": "the transmitters of the link's ports",
    "host_links: instant(write_.until_ps[link], false)": "the packet being taken by the host",
    "entropy_cache: same(value)": "the values of packets on their way",
    "entropy_cache: same(std::bit_cast<std::int64_t>(random_))": "a value drawn shows in the port it chooses",
    "entropy_cache: instant(thaws_ps_, true)": "a freeze comes of a timeout",
    "entropy_cache: same(next_)": "the number of acknowledgements in a period",
    "entropy_cache: same(num_kept_)": "it is full after eight acknowledgements",
    "entropy_cache: same(num_fresh_)": "acknowledgements and packets sent",
    "entropy_cache: same(frozen_)": "a freeze comes of a timeout",
    "entropy_cache: same(num_to_explore_)": "a freeze comes of a timeout",
}


@dataclass(frozen=True)
class Value:
    """A place where the walk tells a value."""

    number: int
    file: str
    line: int
    text: str  # what is told, and as what

    @property
    def name(self) -> str:
        """Return it as IMPLIED has it, which is its beginning."""
        return f"{Path(self.file).stem}: {self.text[:48]}"


def plant(engine: Path) -> list[Value]:
    """Number the values told in a copy of the engine's sources; return them."""
    values: list[Value] = []
    for file in SOURCES:
        source = (engine / file).read_text()
        parts, end = [], 0
        for match in CALL.finditer(source):
            close = _end_of_call(source, match.end())
            text = " ".join(f"{match[1]}({source[match.end() : close]}".split())
            values.append(Value(len(values), file, source.count("\n", 0, match.start()) + 1, text))
            parts += [source[end : match.start()], f"tell_{match[1]}({values[-1].number}, visitor, "]
            end = match.end()
        (engine / file).write_text("".join([*parts, source[end:]]))
    visitors = engine / "skip/visitors.hpp"
    head, namespace, rest = visitors.read_text().partition("namespace netsim {\n")
    tellers = LEFT_OUT + "".join(TOLD.replace("KIND", kind) for kind in ("same", "instant", "stamp", "anchor", "count"))
    visitors.write_text(head + namespace + tellers + rest)
    for file in SOURCES[2:]:
        path = engine / file
        path.write_text(
            path.read_text().replace("#pragma once\n", '#pragma once\n#include "../skip/visitors.hpp"\n', 1)
        )
    module = engine / "bindings/module.cpp"
    text = module.read_text().replace(
        '#include "law.hpp"\n', '#include "law.hpp"\n#include "../skip/visitors.hpp"\n', 1
    )
    module.write_text(
        text.replace(
            "    bind_law(module);\n",
            '    module.def("omit", [](int number) { omitted = number; });\n    bind_law(module);\n',
            1,
        )
    )
    return values


def _end_of_call(source: str, place: int) -> int:
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(source[place], 0)
        place += 1
    return place


def build() -> list[Value]:
    """Build the engine with numbered values in FOLDER, and let it be the one that is imported; return the values."""
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in COPIED:
        source, copy = ROOT / name, tree / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    values = plant(tree / "netsim/engine")
    binaries = Path(sys.executable).parent
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True).strip()
    configure = [
        "-S",
        str(tree),
        "-B",
        str(FOLDER / "build"),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={binaries / 'ninja'}",
    ]
    options = ["-DFABRICTUNE_MUTANTS=ON", f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]
    subprocess.run([binaries / "cmake", *configure, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([binaries / "ninja", "-C", FOLDER / "build", "_engine"], check=True, stdout=subprocess.DEVNULL)
    (file,) = (FOLDER / "build").glob("_engine.*.so")
    spec = spec_from_file_location("fabrictune.netsim._engine", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fabrictune.netsim._engine"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return values


class Runs:
    """The runs that are to tell, and what they leave without skip."""

    def __init__(self) -> None:
        from tests.skip.features import featured_run
        from tests.skip.rounds import random_rounds
        from tests.skip.runs import LAWS, finished, random_run, results, searching_long
        from tests.skip.targets import TARGETS

        runs = {
            **{name: make() for name, make in TARGETS.items()},
            **{f"plain {seed}": random_run(seed) for seed in range(NUM_PLAIN)},
            **{f"featured {seed}": featured_run(seed) for seed in range(NUM_FEATURED)},
            **{f"rounds {seed}": random_rounds(seed) for seed in range(NUM_ROUNDS)},
        }
        self.runs = {name: (searching_long(run.inputs()), LAWS[run.law]) for name, run in runs.items()}
        self.finished, self.results = finished, results
        self.truth, self.names = {}, []
        for name, (inputs, law) in self.runs.items():
            self.truth[name] = results(finished(inputs, law, skips=False, events_per_slice=10**8))
            skipping = finished(inputs, law, skips=True, events_per_slice=10**8)
            assert results(skipping) == self.truth[name], name
            if skipping.num_skipped_events or name in TARGETS:
                self.names.append(name)

    def first_that_differs(self) -> str | None:
        """Return the first run whose results are not those without skip, and one that differs."""
        for place, name in enumerate(self.names):
            inputs, law = self.runs[name]
            try:
                got: dict[str, Any] = self.results(self.finished(inputs, law, skips=True, events_per_slice=10**8))
            except Exception as error:
                return self._found(place, f"{name}: {type(error).__name__}")
            different = [key for key, value in self.truth[name].items() if got[key] != value]
            if different:
                return self._found(place, f"{name}: {different[0]}")
        return None

    def _found(self, place: int, text: str) -> str:
        self.names.insert(0, self.names.pop(place))  # what has caught one often catches the next
        return text


def verdicts(values: list[Value], wanted: str) -> Iterator[tuple[Value, str | None]]:
    """Yield each value, and the run that tells that it is left out."""
    engine: Any = sys.modules["fabrictune.netsim._engine"]
    engine.omit(-1)
    runs = Runs()
    print(f"{len(runs.names)} runs that skip something, {len(values)} values", flush=True)
    for value in values:
        if wanted in value.name:
            engine.omit(value.number)
            yield value, runs.first_that_differs()
    engine.omit(-1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="values whose name holds this")
    options = parser.parse_args()
    num_wrong = 0
    for value, found in verdicts(build(), options.only):
        expected = value.name in IMPLIED
        is_wrong = (found is None) != expected
        num_wrong += is_wrong
        mark = "caught" if found else "implied" if expected else "SURVIVED"
        print(f"{mark}  {value.file}:{value.line} {value.text}  {found or IMPLIED.get(value.name, '')}", flush=True)
    print(f"{num_wrong} values that no run tells and nothing implies, or implied ones that a run tells")
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

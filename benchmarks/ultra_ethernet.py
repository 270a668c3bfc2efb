"""Ultra Ethernet beside uet-htsim: completion of the same flows, as ratios, and what each sent again.

The flows are those of fabrictune/conformance/netsim/ultra_ethernet.py, which keeps uet-htsim's figures. Given the path
of an `htsim_uec` of one's own, the module writes its connection matrices, runs it, and compares with what it says.

Run: `python -m benchmarks.run ultra_ethernet`, or `python -m benchmarks.ultra_ethernet PATH/TO/htsim_uec`
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fabrictune.conformance.netsim.ultra_ethernet import FLOWS, Flows, Mode, connections, simulate

OPTIONS: dict[Mode, tuple[str, ...]] = {
    "random": ("-sender_cc_only", "-load_balancing_algo", "oblivious"),
    "reps": ("-sender_cc_only", "-load_balancing_algo", "reps"),
    "credits": ("-receiver_cc_only", "-load_balancing_algo", "reps"),
    "credits-and-nscc": ("-receiver_cc", "-load_balancing_algo", "reps"),
}
FINISHED = re.compile(r" finished at ([0-9.e+]+) ")
LONGEST_RUN_US = 20_000


def benchmarks() -> list[dict[str, Any]]:
    """Return completions over uet-htsim's, as rows of benchmarks/results.json."""
    return [
        _row(name, mode, flows.htsim_us[mode], f"of the {flows.htsim_us[mode]} us recorded")
        for name, flows in FLOWS.items()
        for mode in flows.htsim_us
    ]


def _row(name: str, mode: Mode, htsim_us: float, said: str) -> dict[str, Any]:
    record = simulate(name, mode)
    transfers = record.tables["transfers"]
    num_resent = int(transfers["packets_retransmitted"].sum())
    return {
        "name": f"netsim.ultra-ethernet.{name}.{mode}",
        "value": float(transfers["finish_ps"].max()) / 1e6 / htsim_us,
        "unit": "of uet-htsim's",
        "spread": f"one run, {said}; {num_resent} of {int(transfers['packets_sent'].sum())} packets sent again",
    }


def _htsim_us(program: str, flows: Flows, mode: Mode, folder: Path) -> float:
    """Run uet-htsim and return when its last flow ended."""
    pairs = connections(flows)
    lines = [f"Nodes {flows.num_hosts}", f"Connections {len(pairs)}"]
    lines += [f"{a}->{b} id {n} start 0 size {flows.num_bytes}" for n, (a, b) in enumerate(pairs, 1)]
    (folder / "flows.cm").write_text("\n".join(lines) + "\n")
    options = [*OPTIONS[mode], "-tm", "flows.cm", "-nodes", str(flows.num_hosts), "-tiers", "3"]
    options += ["-end", str(LONGEST_RUN_US), "-o", "htsim.log"]
    done = subprocess.run([program, *options], cwd=folder, capture_output=True, text=True, check=True)
    finished_us = [float(text) for text in FINISHED.findall(done.stdout)]
    if len(finished_us) < len(pairs):
        sys.exit(f"{program}: {len(finished_us)} of {len(pairs)} flows ended within {LONGEST_RUN_US} us")
    return max(finished_us)


def main(program: str) -> None:
    """Print each case beside a run of uet-htsim."""
    with tempfile.TemporaryDirectory() as folder:
        for name, flows in FLOWS.items():
            for mode in flows.htsim_us:
                htsim_us = _htsim_us(program, flows, mode, Path(folder))
                row = _row(name, mode, htsim_us, f"of {htsim_us:.1f} us now")
                print(f"{row['name']:56} {row['value']:6.3f} {row['unit']}; {row['spread']}", flush=True)


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))

"""`python -m tests.chaos`: disturbs a job of eight ranks at random moments, and prints what came of it.

A session that is stopped goes on where it was: runs that are finished are not done again.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.chaos.plan import BY_NAME, FAULTS
from tests.chaos.report import report
from tests.chaos.session import Session
from tests.chaos.verdicts import Verdict


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a run that is stopped leaves nothing
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("chaos"), help="folder of the session")
    parser.add_argument("--only", choices=sorted(BY_NAME), help="a fault")
    parser.add_argument("--minutes", type=float, help="start no run after so long")
    parser.add_argument("--keep", action="store_true", help="keep the folders of runs that passed")
    parser.add_argument("--report", action="store_true", help="only print the report of what is done")
    options = parser.parse_args()
    session = Session(options.out.resolve(), options.seed, options.only)
    for fault in FAULTS:
        if fault.needs:
            print(f"{fault.name}: not tried: {fault.needs}")
    if not options.report:
        try:
            _go_on(session, options)
        except KeyboardInterrupt:
            print("stopped; the same command goes on", file=sys.stderr)
    verdicts = session.verdicts()
    if not verdicts:
        return 0
    text = report(verdicts, session.runs)
    (session.folder / "report.txt").write_text(text + "\n")
    print(text)
    return 1 if any(verdict.failures for verdict in verdicts) else 0


def _go_on(session: Session, options: argparse.Namespace) -> None:
    started_s = time.monotonic()
    until_s = started_s + options.minutes * 60 if options.minutes else float("inf")
    for verdict in session.go_on(options.runs, until_s, keeps_all=options.keep):
        print(_line(verdict), file=sys.stderr, flush=True)


def _line(verdict: Verdict) -> str:
    outcome = "recovered" if verdict.is_recovered else "stopped" if verdict.is_stopped_named else "lost"
    failures = f"; FAILED: {'; '.join(verdict.failures)}" if verdict.failures else ""
    return f"{verdict.number:4d}  {verdict.fault:32s} {outcome} after {verdict.duration_s:.1f} s{failures}"


if __name__ == "__main__":
    sys.exit(main())

"""The entry point: `fabrictune <command>`. Every way a command can end becomes an exit code here, and nowhere else.

0 good, 1 findings at or above `--fail-on`, 2 usage or input, 3 could not collect; 130 stopped by Ctrl-C, SIGTERM or
SIGHUP, 141 by a reader that closed its pipe. No input of a user's ends in a traceback; a mistake of ours does.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from fabrictune.cli.framework.errors import describe_failure, print_failure
from fabrictune.cli.framework.groups import LazyCommand, LazyGroup
from fabrictune.cli.framework.options import COMPLETION, INTERRUPTED
from fabrictune.cli.framework.warnings import printed_warnings
from fabrictune.foundation.errors import InputError, Mistake

BROKEN_PIPE = 141
DROPPED_FOR_S = 0.01  # until an interrupt comes again; the finalizer is over by then

COMMANDS = {
    "init": LazyCommand("Write a new scenario, with every setting and its meaning.", "fabrictune.cli.init:init"),
    "scenario": LazyCommand(
        "Check a scenario file, and list the keys it can have.", "fabrictune.cli.scenario:scenario"
    ),
    "topo": LazyCommand("Import, build, show, check, compare and probe fabrics.", "fabrictune.cli.topo.group:topo"),
    "ecmp": LazyCommand("Find the links on which flows collide, and what would help.", "fabrictune.cli.ecmp:ecmp"),
    "sim": LazyCommand(
        "Run a scenario in the packet engine, once or under many settings.", "fabrictune.cli.sim.group:sim"
    ),
    "trace": LazyCommand("Import, show, draw and export communication traces.", "fabrictune.cli.trace:trace"),
    "coll": LazyCommand(
        "Start the ranks of a job, and measure and model collectives.", "fabrictune.cli.coll.group:coll"
    ),
    "train": LazyCommand("Train a language model over three axes of parallelism.", "fabrictune.cli.train.group:train"),
    "hardware": LazyCommand(
        "List hardware profiles, and show their values with sources.", "fabrictune.cli.hardware:hardware"
    ),
    "rdma": LazyCommand(
        "Predict and measure RDMA retransmission timers and link-flap tolerance.", "fabrictune.cli.rdma.group:rdma"
    ),
    "fleet": LazyCommand(
        "Read the hosts and switches of a cluster, and find what disagrees.", "fabrictune.cli.fleet.group:fleet"
    ),
    "diagnose": LazyCommand(
        "Name the process that a hanging job waits for, from its dumps and logs.", "fabrictune.cli.diagnose:diagnose"
    ),
    "report": LazyCommand("Make HTML pages from run records and jobs.", "fabrictune.cli.report:report"),
    "law": LazyCommand(
        "List congestion-control algorithms (laws), and exchange parameters with a NIC.", "fabrictune.cli.law:law"
    ),
    "rules": LazyCommand("List the rules of findings, or explain one.", "fabrictune.cli.rules:rules"),
    "validate": LazyCommand("Compare predictions with measurements.", "fabrictune.cli.validate.group:validate"),
    "conformance": LazyCommand(
        "Run the published cases: expected and actual values.", "fabrictune.cli.conformance:run_all"
    ),
    "doctor": LazyCommand("Check what this machine supports, and what to install.", "fabrictune.cli.doctor:doctor"),
    "demo": LazyCommand("Compare a bad and a good placement on a 128-GPU fabric.", "fabrictune.cli.demo:demo"),
    "completion": LazyCommand(
        "Print the script that completes commands in a shell.", "fabrictune.cli.completion:completion"
    ),
    "manual": LazyCommand("Write a man page for each command.", "fabrictune.cli.manual.command:manual"),
}

fabrictune = click.version_option(package_name="fabrictune")(
    LazyGroup(
        name="fabrictune",
        table=COMMANDS,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="Network and cluster performance tuning for large GPU clusters.",
        epilog="Start with `fabrictune demo`; then `fabrictune COMMAND --help`, each with an example.",
    )
)


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    _open_closed_streams()
    stop_like_ctrl_c()
    if COMPLETION in os.environ:
        from fabrictune.cli.completion import answer_shell

        if answer_shell(fabrictune):
            sys.exit(0)
    sys.exit(run(sys.argv[1:]))


def stop_like_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP stop a command as Ctrl-C does, unless they are ignored, as under `nohup`."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # from a scheduler, and from a terminal that closes
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    sys.unraisablehook = _interrupt_again


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Raise an interrupt anew that came where Python drops what is raised: in a finalizer, or a callback."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
    else:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, DROPPED_FOR_S)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        _check_text(arguments)
        with (
            printed_warnings(),
            fabrictune.make_context("fabrictune", list(arguments), obj=tuple(arguments)) as context,
        ):
            code = fabrictune.invoke(context)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as done:  # --help has been printed
        return done.exit_code
    except (KeyboardInterrupt, click.Abort):
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit finds an open end
        return BROKEN_PIPE
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made; Python 3.11 wraps it
            print("stopped", file=sys.stderr)
            return INTERRUPTED
        failure = describe_failure(error)
        if failure is None:
            raise
        print_failure(failure, as_json="--json" in arguments)
        return failure.exit_code


def _open_closed_streams() -> None:
    """Open what the caller has closed (`>&-`) on the null device, so that no file of ours takes its number."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number free, which is this one
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def _check_text(arguments: Sequence[str]) -> None:
    """Raise InputError for an argument that is no UTF-8, which neither a record nor a table can name."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InputError(
                Mistake(
                    where="fabrictune",
                    found=f"the argument {argument!r}, which is no UTF-8",
                    next_step="rename the file, or name another",
                )
            ) from None

"""`fabrictune rdma`: what RDMA adapters do when nothing comes back."""

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.rdma.counters import counters
from fabrictune.cli.rdma.explain import explain
from fabrictune.cli.rdma.flap_job import flap_job
from fabrictune.cli.rdma.gray_loss import gray_loss
from fabrictune.cli.rdma.importing import import_perftest
from fabrictune.cli.rdma.measure import measure
from fabrictune.cli.rdma.monitor import monitor
from fabrictune.cli.rdma.predict import choose, predict, table
from fabrictune.cli.rdma.serve import serve
from fabrictune.cli.rdma.simulate import simulate
from fabrictune.cli.rdma.transfers import bw, lat, matrix

rdma = CommandGroup(name="rdma", help="Predict and measure RDMA retransmission timers and link-flap tolerance.")
timers = CommandGroup(
    name="timers",
    help="""Predict, choose, simulate and measure the time to a retry-exceeded error.

    \b
    Example:
      fabrictune rdma timers predict --flap 30s
    """,
)
for one in (timers, bw, lat, matrix, import_perftest, counters, monitor, gray_loss, serve, flap_job):
    rdma.add_command(one)
for command in (predict, table, choose, simulate, measure, explain):
    timers.add_command(command)

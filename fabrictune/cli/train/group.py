"""`fabrictune train`: the reference trainer."""

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.train.ablate import ablate
from fabrictune.cli.train.change import change
from fabrictune.cli.train.checkpoint import checkpoint
from fabrictune.cli.train.decay import decay
from fabrictune.cli.train.diagnose import diagnose
from fabrictune.cli.train.effective import effective
from fabrictune.cli.train.executor import executor
from fabrictune.cli.train.keys import keys
from fabrictune.cli.train.operate import operate
from fabrictune.cli.train.plan import plan
from fabrictune.cli.train.run import run
from fabrictune.cli.train.status import status
from fabrictune.cli.train.stragglers import stragglers
from fabrictune.cli.train.survive import survive

train = CommandGroup(name="train", help="Train a language model over three axes of parallelism.")
for command in (
    *(run, operate, change, executor, status, plan, diagnose, stragglers, decay),
    *(ablate, effective, survive, keys, checkpoint),
):
    train.add_command(command)

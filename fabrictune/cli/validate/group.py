"""`fabrictune validate`: predictions beside measurements."""

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.validate.cluster.command import cluster
from fabrictune.cli.validate.fit import fit
from fabrictune.cli.validate.local import local
from fabrictune.cli.validate.predict import predict
from fabrictune.cli.validate.testbed.group import testbed
from fabrictune.cli.validate.whatif import whatif

validate = CommandGroup(name="validate", help="Compare predictions with measurements.")
for command in (local, cluster, testbed, fit, predict, whatif):
    validate.add_command(command)

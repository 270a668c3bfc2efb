"""What importing the trainer costs those who only want its ledger."""

import subprocess
import sys


def test_importing_the_packages_does_not_import_torch() -> None:
    """torch takes seconds to import and may be missing; only the modules that use it may ask for it."""
    program = (
        "import sys, collectives, collectives.conformance, trainer_probe, trainer_probe.launcher, trainer_probe.ledger,"
        " collectives.startup.stores, collectives.startup.servers, collectives.startup.storm.experiment,"
        " trainer_probe.conformance, trainer_probe.data.loader, trainer_probe.data.tokenizing,"
        " trainer_probe.optimizers.schedule, trainer_probe.optimizers.segments, trainer_probe.optimizers.spec;"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

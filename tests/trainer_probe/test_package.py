"""What importing the trainer costs those who only want its ledger."""

import subprocess
import sys


def test_importing_the_packages_does_not_import_torch() -> None:
    """torch takes seconds to import and may be missing; only the modules that use it may ask for it."""
    modules = (
        *("collectives", "collectives.startup.stores", "collectives.startup.servers"),
        *(
            "collectives.startup.storm.experiment",
            "conformance.collectives.startup",
            "conformance.trainer_probe.counts",
        ),
        *("trainer_probe", "trainer_probe.launcher.processes", "trainer_probe.ledger", "trainer_probe.data.loader"),
        *("trainer_probe.data.tokenization", "trainer_probe.optimizers.learning_rate"),
        *("trainer_probe.optimizers.segments", "trainer_probe.optimizers.spec"),
    )
    imports = "; ".join(f"import fabrictune.{module}" for module in modules)
    program = f"import sys; {imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

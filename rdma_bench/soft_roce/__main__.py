"""`python -m fabrictune.rdma_bench.soft_roce`: build the virtual machine's image unless it is cached; print its path.

The set-up does this while it has a network, so that no test or measurement has to wait for it.
"""

import sys

from fabrictune.foundation.errors import UnavailableError
from fabrictune.rdma_bench.soft_roce.image import get_image
from fabrictune.rdma_bench.soft_roce.programs import require_programs

try:
    require_programs(["qemu-system-x86_64"])  # without it the image is of no use
    print(get_image().folder)
except UnavailableError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)

"""Constants of NCCL's tuning model, by version.

Latencies are in microseconds and bandwidths in GB/s (10**9 bytes a second), as NCCL has them. Rows by generation are
Volta, Ampere, Hopper, Blackwell; their three columns are one host, two hosts, and more.

Source: NVIDIA/nccl, src/graph/tuning.cc: `2.27` from v2.27.7-1 (the same latencies since 2.23), `2.28` from v2.28.9-1;
v2.30.7-1 differs from the latter for Blackwell alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol

Row = tuple[float, float, float]
Rows = tuple[Row, Row, Row, Row]
VOLTA, AMPERE, HOPPER, BLACKWELL = range(4)


class Medium(Enum):
    """What a step crosses."""

    NVLINK = "NVLink"
    PCIE = "PCIe"
    NETWORK = "network"


@dataclass(frozen=True, kw_only=True)
class TunerConstants:
    """The constants of one version."""

    version: str
    base_us: Mapping[Algorithm, Row]  # columns: LL, LL128, Simple
    step_us: Mapping[Medium, Mapping[Algorithm, Row]]  # columns: LL, LL128, Simple
    ll_max: Rows  # one host: by generation; several: row 0 Intel and others, row 1 AMD
    ring_ll128_channel_max: Rows
    tree_ll128_channel_max: Rows
    tree_channel_max: Rows
    nvls_tree_channel_max: Rows | None  # None: the graphs' rates alone count
    nvls_efficiency: Row | tuple[float, ...] | None  # of NVLink's rate by generation; None: 5/6 of the graph's rate

    def base(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Return the latency of a launch, in us; 0 where NCCL has none."""
        return self.base_us.get(algorithm, (0.0, 0.0, 0.0))[_COLUMN[protocol]]

    def step(self, medium: Medium, algorithm: Algorithm, protocol: Protocol) -> float:
        """Return the latency of a step over a medium, in us."""
        return self.step_us[medium].get(algorithm, (0.0, 0.0, 0.0))[_COLUMN[protocol]]


_COLUMN = {protocol: column for column, protocol in enumerate(Protocol)}
_T, _R, _N, _NT, _P = Algorithm.TREE, Algorithm.RING, Algorithm.NVLS, Algorithm.NVLS_TREE, Algorithm.PAT

_V2_27 = TunerConstants(
    version="2.27",
    base_us={_T: (6.8, 14.0, 8.4), _R: (6.6, 14.0, 8.4), _P: (8.0, 8.0, 8.0)},
    step_us={
        Medium.NVLINK: {
            _T: (0.6, 1.25, 4.0), _R: (0.6, 1.9, 3.4), _N: (0, 0, 25.0), _NT: (0, 0, 25.0), _P: (0, 0, 4.0),
        },
        Medium.PCIE: {_T: (1.0, 1.9, 4.0), _R: (1.0, 2.5, 5.7), _P: (0, 0, 4.0)},
        Medium.NETWORK: {
            _T: (5.0, 8.5, 14.0), _R: (2.7, 4.0, 14.0), _N: (0, 0, 18.0), _NT: (0, 0, 14.0), _P: (0, 0, 14.0),
        },
    },
    ll_max=((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)),
    ring_ll128_channel_max=((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 36.7), (73.4, 73.4, 73.4)),
    tree_ll128_channel_max=((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0), (73.4, 73.4, 58.0)),
    tree_channel_max=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (77.4, 82.8, 72.0)),
    nvls_tree_channel_max=None,
    nvls_efficiency=None,
)  # fmt: skip

_V2_28 = replace(
    _V2_27,
    version="2.28",
    step_us={**_V2_27.step_us, Medium.NETWORK: {**_V2_27.step_us[Medium.NETWORK], _NT: (0, 0, 20.9)}},
    ring_ll128_channel_max=(*_V2_27.ring_ll128_channel_max[:3], (73.4, 34.6, 73.4)),
    tree_ll128_channel_max=(*_V2_27.tree_ll128_channel_max[:3], (55.6, 31.67, 20.0)),
    tree_channel_max=(*_V2_27.tree_channel_max[:3], (70.0, 42.8, 24.0)),
    nvls_tree_channel_max=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 43.8)),
    nvls_efficiency=(0.0, 0.0, 0.85, 0.74),
)

VERSIONS: Mapping[str, TunerConstants] = {constants.version: constants for constants in (_V2_27, _V2_28)}
LATEST = "2.28"

# Trees' bandwidth by size, from 64 B in powers of two. Source: treeCorrectionFactor.
TREE_CORRECTION: Mapping[Protocol, tuple[float, ...]] = {
    Protocol.LL: (
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
        0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0,
    ),
    Protocol.LL128: (
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
        0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0,
    ),
    Protocol.SIMPLE: (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
        0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9,
    ),
}  # fmt: skip


def generation_of(compute_capability: int) -> int:
    """Return the row of a GPU's compute capability, times ten: 70, 80, 90 or 100."""
    return sum(compute_capability >= least for least in (80, 90, 100))

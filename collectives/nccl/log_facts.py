"""Facts that messages of NCCL state, one frozen class each; `log_readers` has their wordings."""

from dataclasses import dataclass

NO_RANK = -1
NETWORK_PREFIX = "NET/"


@dataclass(frozen=True, kw_only=True)
class RankFact:
    """A rank of a communicator and where it runs."""

    rank: int
    host: str
    gpu: int  # CUDA device
    pid: int
    bus_id: str  # "" before NCCL 2.5
    communicator: str  # "" where only nccl-tests' list of devices has the rank
    num_ranks: int
    is_complete: bool  # its initialisation has ended
    where: str


@dataclass(frozen=True, kw_only=True)
class DeviceFact:
    """A network device as NCCL numbers them on one host."""

    host: str
    index: int
    name: str  # mlx5_0
    port: int  # 0 for several devices merged into one
    link_layer: str  # RoCE, IB, or "" where it is not said
    where: str


@dataclass(frozen=True, kw_only=True)
class ChannelFact:
    """Connection of one rank to another on one channel."""

    channel: int
    connection: int  # 0 for collectives, 1 for send and receive
    source_rank: int
    destination_rank: int
    direction: str  # "send" or "receive", as seen from the host that wrote it; "" inside a host
    transport: str  # P2P/IPC, SHM/direct/direct, NET/IB
    device: int  # index of the network device; UNKNOWN inside a host
    proxy_rank: int  # the rank whose device is used, where it is another's; NO_RANK
    flags: tuple[str, ...]  # GDRDMA, Shared
    host: str
    pid: int
    gpu: int
    where: str


@dataclass(frozen=True, kw_only=True)
class RingFact:
    """The whole order of a channel's ring."""

    channel: int
    num_channels: int  # UNKNOWN before NCCL 2.5
    ranks: tuple[int, ...]
    where: str


@dataclass(frozen=True, kw_only=True)
class NeighbourFact:
    """A rank's neighbours in a channel's ring."""

    channel: int
    previous_rank: int
    rank: int
    next_rank: int
    where: str


@dataclass(frozen=True, kw_only=True)
class TreeFact:
    """A rank's place in a channel's tree."""

    channel: int
    rank: int
    parent: int  # NO_RANK at the root
    children: tuple[int, ...]
    where: str


@dataclass(frozen=True, kw_only=True)
class EnvironmentFact:
    """A setting in force on a host."""

    host: str
    name: str
    value: str
    where: str


@dataclass(frozen=True, kw_only=True)
class QueuePairFact:
    """A queue pair that a host opened to send through."""

    host: str
    pid: int
    tid: int
    gpu: int
    device: int  # index of the network device, as in ChannelFact
    qpn: int
    gid_index: int
    ipv4: int  # of the device; UNKNOWN where its GID is no IPv4 address
    where: str


@dataclass(frozen=True, kw_only=True)
class ReceivingQueuePairFact:
    """A queue pair that a host opened to receive through; NCCL logs these since 2.29."""

    host: str
    gpu: int
    device: int
    device_name: str
    qpn: int
    where: str


@dataclass(frozen=True, kw_only=True)
class HandshakeFact:
    """A queue pair in the second half of opening: the remote one's number up to NCCL 2.25, the own one's later."""

    host: str
    pid: int
    tid: int
    qpn: int
    where: str


@dataclass(frozen=True, kw_only=True)
class VersionFact:
    """The version of the library that wrote the log."""

    version: str
    library: str  # NCCL or RCCL
    where: str


@dataclass(frozen=True, kw_only=True)
class NetworkFact:
    """A network that a process uses between hosts: IB, Socket, or a plug-in's name."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class ProviderFact:
    """The provider that the plug-in of libfabric has selected: efa, cxi."""

    name: str
    host: str
    num_devices: int  # UNKNOWN where it is not said
    where: str


@dataclass(frozen=True, kw_only=True)
class NoDeviceFact:
    """A host without a device that NET/IB can use."""

    host: str
    where: str


@dataclass(frozen=True, kw_only=True)
class DeviceRateFact:
    """The rate of a network device, which NCCL logs since 2.27."""

    host: str
    name: str
    rate_bps: int
    where: str


@dataclass(frozen=True, kw_only=True)
class SizeFact:
    """Ranks and hosts of a communicator; NCCL logs them since 2.21."""

    num_ranks: int
    num_hosts: int
    ranks_of_host: int
    where: str


@dataclass(frozen=True, kw_only=True)
class ChannelCountFact:
    """Numbers of channels of a rank."""

    num_collective: int
    num_p2p: int
    num_p2p_per_peer: int
    where: str


@dataclass(frozen=True, kw_only=True)
class GpuDirectFact:
    """Whether a network device reads and writes GPU memory."""

    host: str
    device: str  # name, or NCCL's number of it
    is_enabled: bool
    reason: str  # "no module", "distance 5 > 3"; "" where none is given
    where: str


@dataclass(frozen=True, kw_only=True)
class RingPathFact:
    """Whether the rings' connections use PXN and GPUDirect; NCCL logs it since 2.24."""

    uses_pxn: bool
    uses_gpu_direct: bool
    where: str


@dataclass(frozen=True, kw_only=True)
class AlgorithmFact:
    """The algorithm and protocol of an operation; of NCCL_DEBUG_SUBSYS=TUNING."""

    operation: str  # "" before NCCL 2.24
    size_bytes: int
    algorithm: str
    protocol: str
    where: str


@dataclass(frozen=True, kw_only=True)
class WarningFact:
    """A warning, word for word."""

    host: str
    gpu: int
    message: str
    where: str


Fact = (
    RankFact
    | DeviceFact
    | ChannelFact
    | RingFact
    | NeighbourFact
    | TreeFact
    | EnvironmentFact
    | QueuePairFact
    | ReceivingQueuePairFact
    | HandshakeFact
    | VersionFact
    | NetworkFact
    | ProviderFact
    | NoDeviceFact
    | DeviceRateFact
    | SizeFact
    | ChannelCountFact
    | GpuDirectFact
    | RingPathFact
    | AlgorithmFact
    | WarningFact
)

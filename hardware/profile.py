"""A hardware profile: what predictions need to know of a cluster, each value with its source and uncertainty.

Every field is a key of a YAML file (`foundation/settings/binding.py`). Values that are not public have a source of the
kind `assumed`, so that a prediction can name what it rests on.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import PlainValidator

from fabrictune.foundation.errors import UnitError
from fabrictune.foundation.settings.binding import refuse
from fabrictune.foundation.settings.folder_names import FolderName
from fabrictune.foundation.units import parse_fraction
from fabrictune.hardware.checks import raise_for
from fabrictune.hardware.cluster import FixedSpec, HostSpec, NetworkSpec, NvlinkSpec, StragglerSpec
from fabrictune.hardware.gpu import GpuSpec
from fabrictune.hardware.nccl import NcclSpec
from fabrictune.hardware.software import SoftwareSpec
from fabrictune.hardware.sources import (
    UNCERTAINTY_BY_KIND,
    covering_key,
    kind_of,
    mistakes_in_sources,
    mistakes_in_uncertainties,
    values_by_key,
)

_WITHOUT_SOURCE = ("name", "description", "base", "sources", "uncertainties")


def _read_shares(value: object) -> dict[str, float]:
    """Return a mapping of keys to shares of one."""
    if not isinstance(value, dict):
        refuse("mapping", "a mapping of keys to shares is needed")
    try:
        return {str(key): parse_fraction(str(share), where=str(key)) for key, share in value.items()}
    except UnitError as error:
        refuse("mistake", str(error), mistake=error.mistakes[0])


@dataclass(frozen=True, kw_only=True)
class HardwareProfile:
    """Rates, latencies and costs of a cluster. Raises InputError with every mistake."""

    name: FolderName = field(metadata={"help": "of the profile"})
    description: str = field(default="", metadata={"help": "hardware that it describes"})
    base: str = field(default="", metadata={"help": "bundled profile with the values that this one does not set"})
    gpu: GpuSpec = field(metadata={"help": "GPU"})
    nvlink: NvlinkSpec = field(metadata={"help": "links between the GPUs of a host"})
    network: NetworkSpec = field(metadata={"help": "links between hosts"})
    host: HostSpec = field(metadata={"help": "host"})
    nccl: NcclSpec = field(default_factory=NcclSpec, metadata={"help": "what NCCL's choice depends on"})
    stragglers: StragglerSpec = field(default_factory=StragglerSpec, metadata={"help": "slow hosts"})
    fixed: FixedSpec = field(default_factory=FixedSpec, metadata={"help": "costs of a step"})
    software: SoftwareSpec = field(default_factory=SoftwareSpec, metadata={"help": "kernels of a training system"})
    sources: dict[str, str] = field(metadata={"help": "source of each key or section: `gpu.peak: 'data sheet: ...'`"})
    uncertainties: Annotated[dict[str, float], PlainValidator(_read_shares)] = field(
        default_factory=dict, metadata={"help": "relative uncertainty of keys or sections; else by the kind of source"}
    )

    def __post_init__(self) -> None:
        keys = list(self.values())
        raise_for([*mistakes_in_sources(keys, self.sources), *mistakes_in_uncertainties(keys, self.uncertainties)])

    def values(self) -> dict[str, Any]:
        """Return every value that is set by its dotted key, as `gpu.peak`, in units of its field."""
        return {key: value for key, _, value in self._settings()}

    def field_names(self) -> dict[str, str]:
        """Return the name of the field of every value that is set, which has its unit: `peak_flops_per_s`."""
        return {key: name for key, name, _ in self._settings()}

    def source_of(self, key: str) -> str:
        """Return the source of a value."""
        covering = covering_key(key, self.sources)
        assert covering is not None, "every value has a source"
        return self.sources[covering]

    def uncertainty_of(self, key: str) -> float:
        """Return the relative uncertainty of a value: the profile's, or else that of its kind of source."""
        covering = covering_key(key, self.uncertainties)
        if covering is not None:
            return self.uncertainties[covering]
        return UNCERTAINTY_BY_KIND[kind_of(self.source_of(key))]

    def _settings(self) -> list[tuple[str, str, Any]]:
        """Return key, field and value of what is set; stragglers and costs of a step are not, unless there are some."""
        default = {"stragglers": StragglerSpec(), "fixed": FixedSpec(), "software": SoftwareSpec()}
        unset = {name for name, spec in default.items() if getattr(self, name) == spec}
        settings = values_by_key(self)
        return [setting for setting in settings if setting[0].split(".")[0] not in {*_WITHOUT_SOURCE, *unset}]

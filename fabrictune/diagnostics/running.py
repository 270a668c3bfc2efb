"""A diagnosis on ranks of this machine, or on those that a launcher has started."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.launchers import Launched
from fabrictune.collectives.startup.stores import connect_store, listen, serve_tcp_store
from fabrictune.diagnostics.diagnosis import Diagnosis
from fabrictune.diagnostics.leader import Leader
from fabrictune.diagnostics.plan import GROUP_LIMIT_S, DiagnosisPlan
from fabrictune.diagnostics.rank_process import RankSettings, local_ranks, rank_process
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled

_STORE_S = 60.0
_ATTEMPT = "diagnose"
_PREFIX = "fabrictune-diagnose-"


def diagnose_locally(
    plan: DiagnosisPlan,
    *,
    ranks_per_tor: int,
    folder: Path | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
    group_limit_s: float = GROUP_LIMIT_S,
    prefixes: Mapping[int, Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Diagnose processes of this machine as ranks, with their files below `folder`.

    `prefixes` are words before the commands of a rank's tests. Raises UnavailableError where torch is missing.
    """
    require_extra("torch", extra="train", where="train diagnose")
    with _work_folder(folder) as own, listen() as listener:
        host, port = listener.getsockname()[:2]
        served = serve_tcp_store(listener)
        store = connect_store(
            StoreAddress(scheme="tcp", host=host, port=port), attempt=_ATTEMPT, timeout_s=scaled(_STORE_S)
        )
        with local_ranks(plan.num_ranks, own, (host, port), prefixes):
            leader = Leader(store, plan, ranks_per_tor=ranks_per_tor, rules=rules, group_limit_s=group_limit_s)
            diagnosis = leader.run(progress)
        del served
    return diagnosis


def diagnose_as_rank(
    launched: Launched,
    plan: DiagnosisPlan,
    *,
    ranks_per_tor: int,
    folder: Path | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> Diagnosis | None:
    """Diagnose as the rank that a launcher has made of this process; None on ranks other than 0.

    Raises UnavailableError where torch is missing, and StartupError where the store of rank 0 cannot be reached.
    """
    require_extra("torch", extra="train", where="train diagnose")
    is_leader = launched.rank == 0
    with _work_folder(folder) as own:
        served = serve_tcp_store(listen("", launched.port)) if is_leader and not launched.has_store else None
        address = StoreAddress(scheme="tcp", host=launched.host, port=launched.port)
        store = connect_store(address, attempt=launched.attempt, timeout_s=scaled(_STORE_S))
        settings = RankSettings(
            host=launched.host, port=launched.port, attempt=launched.attempt, rank=launched.rank, folder=str(own)
        )
        with rank_process(settings) as process:
            if not is_leader:
                process.wait()
                return None
            diagnosis = Leader(store, plan, ranks_per_tor=ranks_per_tor, rules=rules).run(progress)
        del served
    return diagnosis


@contextmanager
def _work_folder(parent: Path | None) -> Iterator[Path]:
    """Give an empty folder, in the system's for temporary files or in `parent`, which is made; raises OSError."""
    if parent is None:
        with temporary_folder(_PREFIX) as folder:
            yield folder
        return
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{_PREFIX}", dir=parent) as name:
        yield Path(name)

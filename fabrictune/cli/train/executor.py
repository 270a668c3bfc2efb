"""`fabrictune train executor`: one node of an operated job."""

import os
from pathlib import Path

import click


@click.command()
@click.option("--driver", required=True, metavar="HOST:PORT", help="Address of the driver.")
@click.option(
    "--key", "key_file", type=click.Path(path_type=Path), required=True, help="File of the job's key, mode 0600."
)
@click.option("--job", required=True, metavar="NAME", help="Name of the job.")
@click.option("--node", metavar="NAME", help="Name of this node.  [default: nodeN, by the agent's GROUP_RANK]")
@click.option("--slots", "num_slots", type=click.IntRange(min=1), required=True, help="Ranks at most.")
@click.option(
    "--folder", type=click.Path(path_type=Path), required=True, help="Folder of this node for logs and token data."
)
@click.option("--interface", default="lo", show_default=True, help="Network interface that ranks communicate over.")
@click.option(
    "--orphan-limit",
    "orphan_limit_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Seconds without a driver after which the node ends its ranks and itself.",
)
def executor(
    driver: str,
    key_file: Path,
    job: str,
    node: str | None,
    num_slots: int,
    folder: Path,
    interface: str,
    orphan_limit_s: float,
) -> int:
    """Run the ranks of one node for the driver of `train operate`.

    The driver starts executors itself, as processes, Slurm jobs or pods; with --backend torchelastic agents of torchrun
    start them, one on each host, where --folder is for the folders of all.

    \b
    Example:
      fabrictune train executor --driver 10.0.0.1:29400 --key key --job j1 --node a --slots 8 --folder a
      torchrun --nnodes 4 --nproc-per-node 1 --max-restarts 100 --rdzv-backend c10d --rdzv-endpoint 10.0.0.1:29500 \
        --no-python fabrictune train executor --driver 10.0.0.1:29400 --key key --job j1 --slots 8 --folder nodes
    """
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.foundation.extras import require_extra
    from fabrictune.trainer_probe.operation.executor import ExecutorSettings, run_executor
    from fabrictune.trainer_probe.operation.interfaces import address_of
    from fabrictune.trainer_probe.operation.messages import read_key

    require_extra("torch", extra="train", where="trainer")
    host, _, port = driver.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(Mistake(where="--driver", found=driver, allowed="HOST:PORT"))
    if node is None:
        if not (place := os.environ.get("GROUP_RANK", "")).isdecimal():
            raise InputError(Mistake(where="--node", found="nothing", allowed="a name, or an agent of torchrun above"))
        node = f"node{place}"
        folder = folder / node
    folder.mkdir(parents=True, exist_ok=True)
    settings = ExecutorSettings(
        job=job,
        node=node,
        num_slots=num_slots,
        host=host,
        port=int(port),
        folder=folder,
        key_file=key_file,
        interface=interface,
        address=address_of(interface),
        orphan_limit_s=orphan_limit_s,
    )
    return run_executor(settings, read_key(key_file))

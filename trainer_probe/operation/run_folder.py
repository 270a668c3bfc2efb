"""The folder of an operated job: key, journal, address of the driver, nodes, record. One driver at a time has it."""

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.trainer_probe.operation.messages import make_key, read_key

_LOCK, _KEY, _ADDRESS, _JOB = "driver.lock", "key", "driver.json", "job"


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A job's folder."""

    path: Path

    @property
    def key_file(self) -> Path:
        """File of the key that driver and executors share."""
        return self.path / _KEY

    @property
    def nodes(self) -> Path:
        """Folder of the nodes' folders."""
        return self.path / "nodes"

    @property
    def record(self) -> Path:
        """Folder of the run record."""
        return self.path / "record"

    @property
    def change_file(self) -> Path:
        """File by which a change of code or recipe is asked for."""
        return self.path / "change.json"

    def key(self) -> bytes:
        """Return the key, made at the first call."""
        return read_key(self.key_file) if self.key_file.exists() else make_key(self.key_file)

    def job(self) -> str:
        """Return the job's name, unique on all machines, made at the first call."""
        path = self.path / _JOB
        if not path.exists():
            with replaced_file(path) as half:
                half.write_text(uuid.uuid4().hex)
        return path.read_text().strip()

    def last_port(self) -> int:
        """Return the port of the driver before, where executors look for the next one; 0 for none."""
        try:
            return int(json.loads((self.path / _ADDRESS).read_text())["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def write_address(self, host: str, port: int) -> None:
        """Write where the driver listens."""
        with replaced_file(self.path / _ADDRESS) as half:
            half.write_text(json.dumps({"host": host, "port": port, "pid": os.getpid()}))


@contextmanager
def open_run_folder(path: Path) -> Iterator[RunFolder]:
    """Yield a job's folder, made where it is missing; raises InputError where another driver has it."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            next_step = "wait for its end, or stop it with Ctrl-C"
            raise InputError(
                Mistake(where=str(path), found="another driver runs this job", next_step=next_step)
            ) from None
        yield RunFolder(path=path)
    finally:
        os.close(descriptor)

"""Importer of SONiC switches' databases: files of Redis dumps, folders of them, and archives of `show techsupport`.

Source and rules: `sonic_redis`.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from fabrictune.foundation.documents import MAX_BYTES, load_json, parse_json, read_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import UNPACKING_ERRORS, open_unpacked, read_head
from fabrictune.foundation.records import Confidence
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.recognition import HEAD_BYTES
from fabrictune.topology.importers.sonic import fabric_of_tables
from fabrictune.topology.importers.sonic_redis import SwitchDump, add_rows, dumps_by_chassis, tables_of, without_host

MAX_ARCHIVE_BYTES = 2**40
MAX_MEMBERS = 200_000
_DUMP = re.compile(rb'"(?:[A-Z][A-Z0-9_]{0,40}_TABLE:[^"\n]{0,100}|LLDP_LOC_CHASSIS)"\s*:\s*\{')
_DATABASE = re.compile(r"([A-Z0-9_]+_DB)(\d*)\.json")  # in the folder dump/ of an archive that was unpacked
_WANTED = ("CONFIG_DB", "APPL_DB")
_TAR_AT = 257  # where a tar file says `ustar`
_MEMBER = re.compile(r"(?:.*/)?(?:dump/(CONFIG_DB|APPL_DB)(\d*)\.json|etc/sonic/config_db(\d*)\.json)(\.gz)?")


def is_sonic_dump(path: Path) -> bool:
    """Return whether the file is a dump of APPL_DB, or a tar archive, packed or not."""
    head = read_head(path, HEAD_BYTES, is_unpacked=True)
    is_json = head.lstrip()[:1] == b"{"
    is_tar = head[_TAR_AT : _TAR_AT + 5] == b"ustar"
    return is_tar or (is_json and bool(_DUMP.search(head) or _DATABASE.fullmatch(path.name)))


def load_sonic_dump(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the databases of one or several switches; raises InputError with every mistake in them."""
    cabling = Cabling("sonic")
    dumps = [dump for switch in _switches_in(paths, cabling) for dump in without_host(switch)]
    name_of_chassis = dumps_by_chassis(dumps)
    sources = [tables_of(dump, name_of_chassis, cabling) for dump in dumps]
    return fabric_of_tables(sources, cabling, default_rate_bps=default_rate_bps, confidence=Confidence.MEASURED)


def _switches_in(paths: Sequence[Path], cabling: Cabling) -> Iterator[list[SwitchDump]]:
    """Yield the dumps of each switch: of a file, of an archive, or of the databases that lie in one folder."""
    of_folder: dict[Path, dict[tuple[str, str], str]] = {}
    for path in paths:
        database = _DATABASE.fullmatch(path.name)
        if read_head(path, HEAD_BYTES, is_unpacked=True)[_TAR_AT : _TAR_AT + 5] == b"ustar":
            members = dict(_members(path))
            if not members:
                found, allowed = "an archive without databases", "dump/APPL_DB.json and dump/CONFIG_DB.json in it"
                raise InputError(Mistake(where=str(path), found=found, allowed=allowed))
            yield _dumps_of(members, path)
        elif database and database[1] in _WANTED:
            of_folder.setdefault(path.parent, {})[database[1], database[2]] = read_text(path)
        elif database:
            cabling.notes.append(f"{path}: a database without cabling, left out")
        else:
            dump = SwitchDump(place=path)
            add_rows(dump, load_json(path).tree)
            yield [dump]
    for folder, texts in of_folder.items():
        yield _dumps_of(texts, folder)


def _dumps_of(texts: Mapping[tuple[str, str], str], place: Path) -> list[SwitchDump]:
    """Return the dumps of a switch, one for each ASIC, from the texts of its databases."""
    has_config = any(database == "CONFIG_DB" for database, _ in texts)
    dumps: dict[str, SwitchDump] = {}
    for (database, number), text in sorted(texts.items()):
        if database == "config_db" and has_config:
            continue  # what was on disk; CONFIG_DB is what runs
        dump = dumps.setdefault(number, SwitchDump(place=place, asic=f"asic{number}" if number else ""))
        add_rows(dump, parse_json(text, place / f"{database}{number}.json").tree)
    return list(dumps.values())


def _members(path: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the database, the ASIC's number and the text of each member that is wanted; nothing is written to disk."""
    with open_unpacked(path, max_bytes=MAX_ARCHIVE_BYTES) as stream:
        try:
            with tarfile.open(fileobj=cast("gzip.GzipFile", stream), mode="r|") as archive:
                for count, member in enumerate(archive):
                    if count >= MAX_MEMBERS:
                        found = f"an archive of more than {MAX_MEMBERS:,} files"
                        raise InputError(Mistake(where=str(path), found=found, next_step="take dump/ out of it"))
                    name = _MEMBER.fullmatch(member.name)
                    if name and member.isreg():
                        yield (name[1] or "config_db", name[2] or name[3] or ""), _text_of(archive, member, path)
        except (tarfile.TarError, *UNPACKING_ERRORS, ValueError) as error:
            if isinstance(error, InputError):
                raise
            found = f"a damaged archive ({error})"
            raise InputError(Mistake(where=str(path), found=found, next_step="copy it from the switch again")) from None


def _text_of(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> str:
    """Return the text of a member, unpacked where it is packed by itself; raises InputError."""
    where = f"{path}: {member.name[-200:]}"
    if member.size > MAX_BYTES:
        raise InputError(Mistake(where=where, found=f"{member.size} bytes", allowed=f"at most {MAX_BYTES} bytes"))
    file = archive.extractfile(member)
    data = file.read(MAX_BYTES) if file else b""
    if member.name.endswith(".gz"):
        unpacker = zlib.decompressobj(wbits=31)
        data = unpacker.decompress(data, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise InputError(Mistake(where=where, found="a packed file", allowed=f"at most {MAX_BYTES} bytes"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"not text: byte {error.start} is no UTF-8"
        raise InputError(Mistake(where=where, found=found, allowed="text in UTF-8")) from None

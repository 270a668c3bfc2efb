"""Image of the virtual machine: a kernel, and a root file system in memory made of Debian packages, in the cache.

An image is named after its kernel and a digest of what goes into it, so that a new kernel or another recipe makes
another. It is built next to its place and renamed into it: no reader sees half of one. Building takes 12 s and 120 MB
of downloads, an image 45 MB.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.caches import cache_folder
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.soft_roce.packages import USERLAND, download, find_kernel
from fabrictune.rdma_bench.soft_roce.programs import WHERE, require_programs, run_program

GUEST = Path(__file__).parent / "guest"
MODULES = (
    *("rdma_rxe", "crc32_generic", "ib_uverbs", "rdma_ucm", "veth", "dummy", "af_packet"),
    *("sch_ingress", "cls_matchall", "act_gact"),  # to drop what comes in at a port
    *("virtio_pci", "virtio_rng", "virtio_net", "9p", "9pnet_virtio"),
)
PROGRAMS = ("dpkg-deb", "tar", "cpio", "zstd", "depmod", "modprobe")
STEP_TIMEOUT_S = 120
_UNUSED = (
    *("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/i18n", "./usr/share/zoneinfo"),
    *("./usr/share/perl*", "./usr/lib/*/perl*", "./usr/bin/perl*", "*/libperl.so*", "./usr/lib/*/gconv"),
)
_FOLDERS = (
    *("dev", "proc", "sys", "run", "tmp", "etc", "root", "var", "share"),
    *("python/fabrictune/rdma_bench", "python/fabrictune/foundation"),
)


@dataclass(frozen=True, kw_only=True)
class Image:
    """Kernel and root file system of a virtual machine."""

    folder: Path

    @property
    def kernel(self) -> Path:
        """The kernel's file."""
        return self.folder / "vmlinuz"

    @property
    def root(self) -> Path:
        """The root file system, a compressed cpio archive."""
        return self.folder / "root.cpio.zst"


def get_image(cache: Path | None = None) -> Image:
    """Return the image of the newest kernel, built if it is not in the cache; raises UnavailableError."""
    try:
        folder = cache or cache_folder("soft-roce")
        folder.mkdir(parents=True, exist_ok=True)
        return _get_newest(folder)
    except OSError as error:
        raise UnavailableError(Mistake(where=f"{WHERE}: its cache", found=f"cannot be filled ({error})")) from error


def _get_newest(cache: Path) -> Image:
    digest = _recipe_digest()
    try:
        apt, kernel = find_kernel(cache / "apt")
    except UnavailableError:  # no archive to ask: what was built when there was one will do
        if built := sorted(cache.glob(f"linux-image-*-{digest}")):
            return Image(folder=built[-1])
        raise
    image = Image(folder=cache / f"{kernel}-{digest}")
    if not image.folder.exists():
        places = require_programs(PROGRAMS)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=cache) as scratch:
            packages, new = Path(scratch, "packages"), Image(folder=Path(scratch, "image"))
            packages.mkdir()
            new.folder.mkdir()
            kernel_file, userland = download(apt, kernel, packages)
            _build(new, kernel_file, userland, Path(scratch), places)
            _put_in_place(new.folder, image.folder)
        _remove_older(cache, image)
    return image


def _recipe_digest() -> str:
    recipe = hashlib.sha256(repr((USERLAND, MODULES, _UNUSED, _FOLDERS)).encode())
    recipe.update((GUEST / "init").read_bytes())
    return recipe.hexdigest()[:12]


def _put_in_place(new: Path, place: Path) -> None:
    try:
        new.rename(place)
    except OSError:
        if not place.exists():  # else somebody else was faster
            raise


def _remove_older(cache: Path, image: Image) -> None:
    for folder in cache.glob("linux-image-*"):
        if folder != image.folder:
            shutil.rmtree(folder, ignore_errors=True)  # a machine that runs on it has it in memory


def _build(image: Image, kernel_file: Path, userland: Sequence[Path], scratch: Path, places: dict[str, str]) -> None:
    root, kernel_root = scratch / "root", scratch / "kernel"
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for package in userland:
        _unpack(package, root, ["--keep-directory-symlink", *(f"--exclude={name}" for name in _UNUSED)], places)
    kernel_root.mkdir()
    _unpack(kernel_file, kernel_root, [], places)
    _copy_modules(kernel_root, root, places)
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    if not (root / "usr" / "bin" / "sh").exists():
        (root / "usr" / "bin" / "sh").symlink_to("dash")
    _compile_python(root)
    shutil.copy(GUEST / "init", root / "init")
    (root / "init").chmod(0o755)
    (kernel,) = (kernel_root / "boot").glob("vmlinuz-*")
    shutil.copy(kernel, image.kernel)
    _pack(root, image.root, places)


def _unpack(package: Path, folder: Path, options: Sequence[str], places: dict[str, str]) -> None:
    archive = run_program([places["dpkg-deb"], "--fsys-tarfile", package], timeout_s=STEP_TIMEOUT_S)
    words: list[str | Path] = [places["tar"], "-C", folder, "--no-same-owner", *options, "-xf", "-"]
    run_program(words, timeout_s=STEP_TIMEOUT_S, stdin=archive)


def _copy_modules(kernel_root: Path, root: Path, places: dict[str, str]) -> None:
    """Copy the modules and what they depend on, and make their index."""
    (release,) = (folder.name for folder in (kernel_root / "lib" / "modules").iterdir())
    run_program([places["depmod"], "-b", kernel_root, release], timeout_s=STEP_TIMEOUT_S)
    for module in MODULES:
        words: list[str | Path] = [places["modprobe"], "-d", kernel_root, "-S", release, "--show-depends", module]
        for line in run_program(words, timeout_s=STEP_TIMEOUT_S).decode().splitlines():
            kind, _, place = line.partition(" ")
            if kind == "insmod":
                source = Path(place.split()[0])
                target = root / source.relative_to(kernel_root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(kernel_root / "lib" / "modules" / release / name, root / "lib" / "modules" / release / name)
    run_program([places["depmod"], "-b", root, release], timeout_s=STEP_TIMEOUT_S)


def _compile_python(root: Path) -> None:
    """Compile the userland's Python modules with its own Python: in emulation that takes 10 s of every start."""
    loader, libraries = root / "lib64" / "ld-linux-x86-64.so.2", root / "usr" / "lib" / "x86_64-linux-gnu"
    python: list[str | Path] = [loader, "--library-path", libraries, root / "usr" / "bin" / "python3", "-I"]
    options: list[str | Path] = ["-qq", "--invalidation-mode", "unchecked-hash", "-s", root, "-p", "/"]
    folders = sorted((root / "usr" / "lib").glob("python3*"))
    run_program([*python, "-m", "compileall", *options, *folders], timeout_s=STEP_TIMEOUT_S)


def _pack(root: Path, archive: Path, places: dict[str, str]) -> None:
    names = "\0".join(sorted(str(path.relative_to(root)) for path in [root, *root.rglob("*")]))
    words = [places["cpio"], "--null", "-o", "-H", "newc", "-R", "0:0", "--quiet"]
    packed = run_program(words, timeout_s=STEP_TIMEOUT_S, stdin=names.encode(), folder=root)
    with archive.open("wb") as file:
        subprocess.run(  # noqa: S603 - fixed words
            [places["zstd"], "-q", "-3"], input=packed, stdout=file, timeout=scaled(STEP_TIMEOUT_S), check=True
        )

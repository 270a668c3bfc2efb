"""Storages: a folder, and a bucket of a real server on the loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fsspec")

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.checkpoint.storage import Storage
from fabrictune.trainer_probe.checkpoint.storages import open_storage


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URL of an empty bucket, of a server in a thread of its own."""
    server_module = pytest.importorskip("moto.server", reason="moto, a server of S3's protocol, is not installed")
    pytest.importorskip("s3fs")
    import s3fs

    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem().mkdir("kept")
        yield "s3://kept/run"
    server.stop()


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    url = str(tmp_path / "run") if request.param == "folder" else request.getfixturevalue("bucket")
    return open_storage(url)


def test_a_storage_keeps_files_in_folders(storage: Storage) -> None:
    """Written in parts, read in ranges, replaced, listed with sizes, and removed with their folder."""
    assert storage.names() == ()
    assert storage.files("step-00000001.g1") == {}
    data = bytes(range(256)) * 2**10
    assert storage.write("step-00000001.g1/rank", (data[:1000], memoryview(data)[1000:])) == len(data)
    assert storage.write("step-00000001.g1/manifest.json", (b"{}",)) == 2
    assert storage.write("generation-00001.json", (b"1",)) == 1
    assert storage.write("generation-00001.json", (b"22",)) == 2
    assert storage.names() == ("generation-00001.json", "step-00000001.g1")
    assert storage.files("step-00000001.g1") == {"manifest.json": 2, "rank": len(data)}
    assert storage.read("step-00000001.g1/rank", 1000, 2000) == data[1000:2000]
    assert storage.read("step-00000001.g1/rank") == data
    assert storage.read("generation-00001.json", 0, 100) == b"22", "as much as there is"
    with pytest.raises(FileNotFoundError):
        storage.read("step-00000001.g1/other")
    storage.remove("step-00000001.g1", ["manifest.json", "gone", "rank"])
    assert storage.names() == ("generation-00001.json",)


def test_a_file_whose_content_fails_does_not_appear(storage: Storage) -> None:
    """Half of it had been written."""

    def content() -> Iterator[bytes]:
        yield b"half" * 2**20
        raise RuntimeError("no more")

    with pytest.raises((OSError, RuntimeError)):
        storage.write("step-00000002.g1/rank", content())
    assert storage.files("step-00000002.g1") == {}


def test_a_server_that_is_away_is_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens on port 1; what the library raises is OSError for all that use a storage."""
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        open_storage("s3://kept/run").write("step-00000001.g1/rank", (b"1",))
    s3fs.S3FileSystem.clear_instance_cache()


def test_an_unknown_kind_of_url_is_refused_without_its_secrets() -> None:
    """A password in a URL is in no message."""
    with pytest.raises(InputError) as raised:
        open_storage("teapot://user:secret@host/run", where="--checkpoint")
    assert str(raised.value) == (
        "--checkpoint: teapot://host/run: Protocol not known: teapot\n"
        "  allowed: a folder, or a URL of a kind that fsspec knows, its package installed"
    )
    assert open_storage("s3://key:secret@bucket/run?token=1").url == "s3://bucket/run"

"""A bucket of a real S3 server, which several processes write to."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from torch_geometric.data import Data

from enfa.batch.shards.folder import Folder

pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'enfa[scale]'")
pytest.importorskip("moto.server", reason="moto, the S3 server of the tests, is not installed: pip install 'moto[s3,server]'")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    import s3fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = subprocess.DEVNULL
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():  # fmt: skip
            patch.setenv(name, value)
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert server.poll() is None, "the server has ended"
                    time.sleep(0.1)
            name = f"enfa-{uuid.uuid4().hex[:12]}"
            s3fs.S3FileSystem().mkdir(name)
            yield f"s3://{name}"
        finally:
            server.terminate()
            server.wait()
            s3fs.S3FileSystem.clear_instance_cache()


def test_files_by_name(bucket: str) -> None:
    folder = Folder(f"{bucket}/some/where")
    assert folder.names() == [] and folder.shared
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    folder.write("b", [b"one", b"two"])
    folder.write("a", [b"y"])
    assert folder.names() == ["a", "b"] and folder.read("b") == b"onetwo"
    folder.remove("a")
    folder.remove("a")
    assert folder.names() == ["b"]


def test_shards_in_a_bucket(
    bucket: str, molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable
) -> None:
    url = f"{bucket}/shards"
    shards(iter(molecules), url, workers=2)
    folder = Folder(url)
    assert {name: folder.read(name) for name in folder.names()} == bytes_of(undisturbed)
    folder.write("shard-00002.enfa", [b"damaged"])
    shards(iter(molecules), url, workers=2)
    assert {name: folder.read(name) for name in folder.names()} == bytes_of(undisturbed)
    with pytest.raises(ValueError, match=f"{url} holds shards of something else"):
        shards(iter(molecules), url, shard_size=8)

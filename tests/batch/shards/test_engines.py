"""Workers that are killed, and whole compiles that are: what is written in the end is what it would have been."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data

from enfa.batch.shards import write
from enfa.batch.shards.engines import engine_of
from enfa.batch.shards.folder import Folder


def _square(value: int, seen: str) -> int:
    """Once, at 3, its process is killed."""
    if value == 3 and not os.path.exists(seen):
        Path(seen).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return value * value


def _dies(value: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return value


def _reads_ahead(engine: Callable, most: int) -> None:
    read = 0

    def numbers() -> Iterator[tuple[int, str]]:
        nonlocal read
        for read in range(40):
            yield read, "never"

    for count, _ in enumerate(engine(_twice, numbers())):
        assert read <= count + most


def _twice(value: int, _: str) -> int:
    return 2 * value


def test_what_a_killed_process_had_begun_is_done_again(tmp_path: Path) -> None:
    engine = engine_of(None, 2, Folder(tmp_path))
    found = engine(_square, ((i, str(tmp_path / "seen")) for i in range(12)))
    assert sorted(found) == [i * i for i in range(12)] and (tmp_path / "seen").exists()


def test_processes_that_always_die_are_given_up(tmp_path: Path) -> None:
    with pytest.raises(ChildProcessError, match="3 times in a row one that was killed"):
        list(engine_of("local", 2, Folder(tmp_path))(_dies, ((i,) for i in range(9))))


def test_the_stream_is_read_a_little_ahead(tmp_path: Path) -> None:
    _reads_ahead(engine_of(None, 2, Folder(tmp_path)), 4)
    _reads_ahead(engine_of(None, 1, Folder(tmp_path)), 1)


def _slowly(shards: Callable, graphs: list[Data], out: Path, begun: int) -> None:
    """In a process of its own: says when a shard is begun."""
    real = write.compile_checked

    def compile_checked(*args: Any, **options: Any) -> Any:
        os.write(begun, b"!")
        time.sleep(0.2)
        return real(*args, **options)

    write.compile_checked = compile_checked
    shards(iter(graphs), out, workers=2)


@pytest.mark.parametrize("shard", [1, 4])
def test_a_compile_that_was_killed_goes_on(
    shard: int, molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path
) -> None:
    """Its processes end with it, and what they had begun to write is no shard."""
    out, (read, begun) = tmp_path / "out", os.pipe()
    run = multiprocessing.get_context("fork").Process(target=_slowly, args=(shards, molecules, out, begun))
    run.start()
    for _ in range(shard):
        assert os.read(read, 1) == b"!"
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    workers = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    run.kill()
    run.join()
    end = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < end
        time.sleep(0.05)
    os.close(read)
    os.close(begun)
    assert not (out / "manifest.json").exists()
    shards(iter(molecules), out, workers=2)
    assert bytes_of(out) == bytes_of(undisturbed)


def test_dask(molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path) -> None:
    """A scheduler by its address, and a worker that is killed; and a client."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'enfa[scale]'")
    import dask

    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "fork", "distributed.nanny.environ": {}}),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
    ):
        with distributed.Client(cluster) as client:
            shards(iter(molecules), tmp_path / "client", workers=None, engine=client)
        assert bytes_of(tmp_path / "client") == bytes_of(undisturbed)
        with pytest.raises(ValueError, match="Expected no number of workers for the cluster"):
            engine_of(cluster.scheduler_address, 2, Folder(tmp_path))
        engine = engine_of(cluster.scheduler_address, None, Folder(tmp_path))
        found = engine(_square, ((i, str(tmp_path / "seen")) for i in range(8)))
        assert sorted(found) == [i * i for i in range(8)] and (tmp_path / "seen").exists()

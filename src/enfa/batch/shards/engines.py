"""Who compiles the shards: this process, processes of this machine, or a Dask cluster.

An engine takes a function and a stream of its arguments, and yields results as they come. It reads the stream only a little
ahead of its workers, and does again what a worker that has gone had begun.
"""

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import torch

from enfa.ahead import ready
from enfa.batch.shards.folder import Folder
from enfa.graphs.names import unknown
from enfa.graphs.numbers import whole

__all__ = ["engine_of"]

Engine = Callable[[Callable[..., Any], Iterator[tuple]], Generator[Any, None, None]]
_TRIES = 3  # how often workers may go without a single shard done in between


def engine_of(engine: Any, workers: int | None, folder: Folder) -> Engine:
    """None or "local": processes of this machine. "dask", the address of a scheduler or a ``distributed.Client``: Dask."""
    count = None if workers is None else whole("workers", workers, 1)
    if isinstance(engine, str) and engine not in ("local", "dask") and "://" not in engine:
        raise unknown("the engine", engine, ("local", "dask", "the address of a Dask scheduler"))
    if not folder.shared:
        if (engine is not None and engine != "local") or (count or 1) > 1:
            raise ValueError(f"Expected a folder that several processes see, got {folder.url}: use workers=1")
        count = 1
    if engine is None or engine == "local":
        count = count or os.cpu_count() or 1
        return _here if count == 1 else lambda work, tasks: _processes(work, tasks, count)
    if isinstance(engine, str) and engine != "dask" and workers is not None:
        raise ValueError(f"Expected no number of workers for the cluster of {engine}, which has its own, got {workers}")
    return lambda work, tasks: _dask(work, tasks, engine, count)


def _here(work: Callable[..., Any], tasks: Iterator[tuple]) -> Generator[Any, None, None]:
    for task in tasks:
        yield work(*task)


def _begin(parent: int) -> None:
    """In a forked process: one thread, Ctrl-C is the main process's affair, and its end is also ours, however it comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    torch.set_num_threads(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _processes(work: Callable[..., Any], tasks: Iterator[tuple], workers: int) -> Generator[Any, None, None]:
    """Forked, so that scripts need no guard around their main part. A pool of which one has been killed is made anew."""
    ready("rows", "file")  # the kernels, which all of them would compile
    context = multiprocessing.get_context("fork")
    waiting: dict[Future, tuple] = {}
    again: list[tuple] = []  # of workers that have gone
    failures = 0
    pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(),))
    try:
        while True:
            while len(waiting) < workers + 1:
                task = again.pop(0) if again else next(tasks, None)
                if task is None:
                    break
                try:
                    waiting[pool.submit(work, *task)] = task
                except BrokenProcessPool:
                    again.append(task)
                    break
            if not waiting and not again:
                pool.shutdown()
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            broken = not waiting
            for future in done:
                task = waiting.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool:
                    broken = True
                    again.append(task)
                else:
                    failures = 0
                    yield result
            if broken:
                failures += 1
                again += waiting.values()
                waiting.clear()
                pool.shutdown(wait=True, cancel_futures=True)
                if failures >= _TRIES:
                    raise ChildProcessError(
                        f"Expected processes to live until they have compiled a shard, got {_TRIES} times in a row one that "
                        f"was killed: is there too little memory for {workers} of them? Choose fewer workers, or smaller shards"
                    )
                pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(),))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _client(engine: Any, workers: int | None) -> Iterator[Any]:
    try:
        from distributed import Client
        from distributed.deploy.subprocess import SubprocessCluster
    except ImportError as error:
        raise ImportError("Compiling on a cluster needs dask: pip install 'enfa[scale]'") from error
    if isinstance(engine, Client):
        yield engine
    elif isinstance(engine, str) and engine != "dask":
        with Client(engine) as client:
            yield client
    elif engine == "dask":
        count = workers or os.cpu_count() or 1
        # processes of their own: those of a LocalCluster would import the user's script, which would start the next cluster
        cluster = SubprocessCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=30)
        with cluster, Client(cluster) as client:
            yield client
    else:
        raise TypeError(f"Expected engine to be 'local', 'dask', an address or a distributed.Client, got {engine!r}")


def _dask(work: Callable[..., Any], tasks: Iterator[tuple], engine: Any, workers: int | None) -> Generator[Any, None, None]:
    """The scheduler keeps the graphs of a shard until it is done, and gives them to another worker where one has gone."""
    with _client(engine, workers) as client:
        from distributed import wait as wait_for

        client.wait_for_workers(1)
        waiting: set[Any] = set()
        try:
            while True:
                room = 1 + sum(client.nthreads().values())
                while len(waiting) < room and (task := next(tasks, None)) is not None:
                    waiting.add(client.submit(work, *task, pure=False, retries=_TRIES))
                if not waiting:
                    return
                done = wait_for(waiting, return_when="FIRST_COMPLETED").done
                for future in done:
                    waiting.discard(future)
                    yield future.result()
        finally:
            client.cancel(list(waiting))

"""Life in a worker: forks, pools, many threads, limits and interrupts leave the bits right or a named error."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import posenc
from posenc import _rows, _threads
from posenc._load import core

HANGS_AFTER = 60  # seconds
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def batch(seed):
    """A batch of embeddings, large enough to be written in parallel."""
    rows = np.random.default_rng(seed).integers(-99, 99, (1, 512, 512))
    return np.broadcast_to(rows, (7, 512, 512)).astype(np.float32)


def encoded(seed):
    x = batch(seed)
    return posenc.add(x, start=seed, scale=22.6, out=x)


def expected(seed):
    return np.float32(22.6) * batch(seed) + posenc.table(512, 512, start=seed, threads=1)


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS_AFTER, check=False, env={**os.environ}
    )


# ---- processes -------------------------------------------------------------------------------------------------------


@forks
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("before", [False, True])
def test_workers(method, before):
    """Four workers that encode batches, as a DataLoader's do; the parent has made threads, or makes them meanwhile."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this platform")
    if before:
        posenc.add(batch(0), threads=2)
    with multiprocessing.get_context(method).Pool(4) as pool:
        results = [pool.apply_async(encoded, [seed]) for seed in range(8)]
        posenc.add(batch(0), threads=2)
        for seed, result in enumerate(results):
            assert (result.get(HANGS_AFTER) == expected(seed)).all()


@forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_fork_while_others_add():
    stop = threading.Event()
    x = batch(1)

    def keep_adding(threads):
        out = np.empty_like(x)
        while not stop.is_set():
            posenc.add(x, out=out, threads=threads)
            posenc.clear_cache()

    others = [threading.Thread(target=keep_adding, args=[threads]) for threads in (1, 2)]
    for other in others:
        other.start()
    try:
        for seed in range(3):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert (pool.apply_async(encoded, [seed]).get(HANGS_AFTER) == expected(seed)).all()
    finally:
        stop.set()
        for other in others:
            other.join()


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_threads_while_the_cache_evicts(monkeypatch):
    """32 threads, each with encodings of its own, and a cache that holds about one of them at a time."""
    monkeypatch.setattr(_rows.CACHE, "limit", 30_000)
    posenc.clear_cache()
    cases = [
        {"base": 10.0 + i, "layout": ("interleaved", "concatenated")[i % 2], "dtype": ("float32", "float64")[i % 3 == 0]}
        for i in range(32)
    ]
    want = [posenc.table(300, 30 + i, **case) for i, case in enumerate(cases)]
    start, wrong = threading.Barrier(32), []

    def work(number):
        rng = random.Random(number)
        try:
            start.wait(HANGS_AFTER)
            for step in range(6):
                i = number if step % 2 else rng.randrange(32)
                case = {name: value for name, value in cases[i].items() if name != "dtype"}
                zeros = np.zeros((2, 300, 30 + i), want[i].dtype)
                if (posenc.table(300, 30 + i, **cases[i]) != want[i]).any() or (posenc.add(zeros, **case) != want[i]).any():
                    wrong.append(i)
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=[number]) for number in range(32)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert _rows.CACHE.nbytes <= 30_000
    posenc.clear_cache()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_one_core(monkeypatch):
    """The same bits, and the end, on one core: by default a thread, and also with more threads than cores."""
    monkeypatch.delenv("POSENC_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert _threads.for_work(None, 1 << 30) == 1
        for threads in (None, 2, 5):
            assert (posenc.add(batch(3), start=3, scale=22.6, threads=threads) == expected(3)).all()
    finally:
        os.sched_setaffinity(0, cores)


# ---- limits ----------------------------------------------------------------------------------------------------------

LIMITED = """
import resource
import numpy as np, posenc

def limit(more):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.getrlimit(resource.RLIMIT_AS)[1]))

out = np.zeros((4096, 1024), np.float32)
want = posenc.table(4096, 1024, threads=1)
posenc.clear_cache()

def right():
    return all((row == wanted).all() for row, wanted in zip(out, want))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of a process is read in /proc")
@pytest.mark.parametrize("threads", [None, 1, 8])
def test_address_space(threads):
    """MemoryError for what does not fit, also if it is a thread's stack that does not: OpenMP would end the process."""
    code = f"""{LIMITED}
limit(4 << 20)
for call in (
    lambda: posenc.table(1 << 20, 1024, threads={threads}),
    lambda: posenc.add(out, threads={threads}),
    lambda: posenc.table(2, 1 << 24, threads={threads}),
    lambda: posenc.add(np.broadcast_to(out[:1], out.shape), threads={threads}),
):
    try:
        call()
        print("it fitted")
    except MemoryError:
        print("MemoryError")
for _ in range(2):
    posenc.table(4096, 1024, out=out, threads={threads})
    assert right()
out[:] = 0.0
posenc.add(out, out=out, threads={threads})
print(right())
"""
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == [*["MemoryError"] * 4, "True", ""]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of a process is read in /proc")
def test_no_address_space_at_all():
    """Whatever still fits, a call ends in the right table or in MemoryError."""
    code = f"""{LIMITED}
ends = set()
for more in [*range(0, 2 << 20, 32 << 10)]:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    posenc.clear_cache()
    limit(more)
    for call in (
        lambda: posenc.table(4096, 1024, out=out),
        lambda: posenc.add(np.broadcast_to(np.float32(0), out.shape), out=out),
    ):
        try:
            call()
            ends.add(right())
        except MemoryError:
            ends.add("MemoryError")
assert False not in ends, ends
print(True in ends)
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# ---- interrupts ------------------------------------------------------------------------------------------------------


def test_interrupt_between_slices_of_a_sum(interruptible, monkeypatch):
    monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    written = []

    class Interrupted(core.Sum):
        def write(self, *items):
            super().write(*items)
            written.append(items)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(core, "Sum", Interrupted)
    x = np.zeros((2 * core.CHUNK, 1024), np.float32)
    with pytest.raises(KeyboardInterrupt):
        posenc.add(x, out=x)
    assert len(written) == 1
    monkeypatch.undo()
    assert (x[: core.CHUNK] == posenc.table(core.CHUNK, 1024)).all()
    assert (x[core.CHUNK :] == 0.0).all()

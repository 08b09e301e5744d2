"""How many threads a call uses, forks, many threads at once, what importing does, the cache. Nothing is timed."""

import hashlib
import json
import math
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import posenc
from posenc import Encoding, _functions, _rows, _threads
from posenc._cache import Cache
from posenc._load import core

VARIABLES = ("POSENC_NUM_THREADS", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "POSENC_KERNEL")
VARIABLES += ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_DISPLAY_ENV")
HANGS_AFTER = 30  # seconds

needs_openmp = pytest.mark.skipif(not core.OPENMP, reason="this build has no OpenMP: every call is serial")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
# from 3.12 on a fork of a process with threads warns; what these tests are about is that it works
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    posenc.set_threads(None)
    yield
    posenc.set_threads(None)


def python(code: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a process in which only these variables are set."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES} | variables
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def value_of(expression: str, **variables: str) -> Any:
    """The JSON value of an expression about a posenc imported in such a process."""
    done = python(f"import json, os, sys, posenc\nprint(json.dumps({expression}))", **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- how many threads ------------------------------------------------------------------------------------------------


def test_order_of_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting in turn comes before all that were made until then."""
    monkeypatch.setattr(_threads, "core", SimpleNamespace(openmp_threads=lambda: 40, may_go_parallel=lambda: True))
    monkeypatch.setattr(_threads, "processors", lambda: 7)
    assert _threads.wanted() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "40")
    assert _threads.wanted() == 40
    monkeypatch.setenv("POSENC_NUM_THREADS", "39")
    assert _threads.wanted() == 39
    posenc.set_threads(38)
    assert _threads.wanted() == 38
    with posenc.threads(37):
        assert _threads.wanted() == 37
        assert _threads.wanted(36) == 36
        assert _threads.for_work(36, _threads.PARALLEL_BYTES) == 36
        assert _threads.for_work(None, _threads.PARALLEL_BYTES) == 37
        assert _threads.for_work(36, _threads.PARALLEL_BYTES - 1) == 1
    posenc.set_threads(None)
    assert _threads.wanted() == 39
    monkeypatch.setenv("POSENC_NUM_THREADS", "")
    assert _threads.wanted() == 40
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert _threads.wanted() == 7


@pytest.mark.parametrize(
    ("openmp", "affinity", "quota", "expected"),
    [(3, 64, 64, 3), (64, 5, 64, 5), (64, 64, 6, 6), (64, 64, None, 16), (64, 64, 64, 16), (2, 2, 1, 1), (1, 8, None, 1)],
)
def test_default(openmp: int, affinity: int, quota: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "core", SimpleNamespace(openmp_threads=lambda: openmp))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    monkeypatch.setattr(_threads, "cgroup_quota", lambda root: quota)
    assert _threads.wanted() == expected


def test_default_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "cgroup_quota", lambda root: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((12, 12), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert _threads.processors() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_affinity_of_the_process() -> None:
    expression = "(os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}), posenc.show_config('dicts')['threads'])[1]"
    assert value_of(expression) == 1


THREADS = "posenc.show_config('dicts')['threads']"


@needs_openmp
def test_variables() -> None:
    processors = value_of(THREADS)
    assert 1 <= processors <= 16
    assert value_of(THREADS, OMP_NUM_THREADS="33") == 33  # what the user asks for is not capped
    assert value_of(THREADS, POSENC_NUM_THREADS="34", OMP_NUM_THREADS="33") == 34
    assert value_of(THREADS, POSENC_NUM_THREADS="") == processors


@needs_openmp
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("setting", "call", "variables"),
    [
        ("", "", {"OMP_NUM_THREADS": "3"}),
        ("", "", {"POSENC_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}),
        ("posenc.set_threads(3)", "", {"POSENC_NUM_THREADS": "5"}),
        ("posenc.set_threads(5); posenc.threads(3).__enter__()", "", {}),
        ("posenc.threads(5).__enter__()", ", threads=3", {"POSENC_NUM_THREADS": "6"}),
        ("posenc.set_threads(5)", ", threads=1", {}),
    ],
)
def test_threads_that_are_there(setting: str, call: str, variables: dict[str, str]) -> None:
    """What was asked for is what the operating system sees after a large call; a small one makes none."""
    code = f"""if True:
        import os, posenc
        count = lambda: len(os.listdir("/proc/self/task"))
        before = count()
        {setting}
        posenc.table(16, 512{call})
        small = count()
        posenc.table(8192, 512{call})
        print(small - before, count() - before)"""
    done = python(code, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "0" if "1" in call else "2"]


@needs_openmp
def test_more_threads_than_there_can_be() -> None:
    """A call makes as many threads as it has work for, whatever it is allowed; OpenMP would end the process."""
    done = python("import posenc; print(posenc.table(1024, 1024, threads=2**31 - 1).shape)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "(1024, 1024)\n", "")


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " ", "2 ", "\u0662", "\u00b2", str(2**31), str(10**30)])
def test_wrong_variable(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_NUM_THREADS", value)
    with pytest.raises(ValueError, match="POSENC_NUM_THREADS") as info:
        _threads.wanted()
    assert repr(value) in str(info.value)
    assert _threads.wanted(2) == 2
    posenc.set_threads(3)
    assert _threads.wanted() == 3


def test_contexts() -> None:
    """They nest, end with their block however it ends, and may be used again, also within themselves."""
    outside = _threads.wanted()
    two = posenc.threads(2)
    with posenc.threads(3) as context:
        assert isinstance(context, posenc.threads)
        with two:
            assert _threads.wanted() == 2
            with context, two:
                assert _threads.wanted() == 2
            assert _threads.wanted() == 2
        assert _threads.wanted() == 3
        with pytest.raises(KeyError), two:
            raise KeyError
        assert _threads.wanted() == 3
        posenc.set_threads(9)
        assert _threads.wanted() == 3
    assert _threads.wanted() == 9
    posenc.set_threads(None)
    assert _threads.wanted() == outside
    with pytest.raises(ValueError, match="n is 0"):
        posenc.threads(0)
    with pytest.raises(TypeError, match="n must be"):
        posenc.set_threads("2")  # type: ignore[arg-type]
    assert _threads.wanted() == outside


def in_turn(*steps: list[Callable[[], None]]) -> None:
    """Run equally long lists of steps, each in a thread of its own: first all first steps, in order, then all second ones."""
    assert len(set(map(len, steps))) == 1
    baton, errors = threading.Barrier(len(steps)), []

    def run(number: int) -> None:
        try:
            for step in steps[number]:
                for turn in range(len(steps)):
                    if turn == number:
                        step()
                    baton.wait(HANGS_AFTER)
        except BaseException as error:  # that of the others is a BrokenBarrierError
            errors.append(error)
            baton.abort()

    workers = [threading.Thread(target=run, args=[number]) for number in range(len(steps))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []


def sees(n: int) -> Callable[[], None]:
    def step() -> None:
        assert _threads.wanted() == n

    return step


def leave(context: posenc.threads) -> Callable[[], None]:
    return lambda: context.__exit__(None, None, None)


def test_context_is_of_its_thread() -> None:
    posenc.set_threads(9)
    one, two = posenc.threads(1), posenc.threads(2)
    in_turn(
        [lambda: None, one.__enter__, sees(1), leave(one), sees(8)],  # type: ignore[list-item]
        [sees(9), two.__enter__, sees(2), sees(2), leave(two)],  # type: ignore[list-item]
        [sees(9), sees(9), sees(9), lambda: posenc.set_threads(8), sees(8)],
    )


def test_context_that_threads_share() -> None:
    """The first to enter is the first to leave."""
    posenc.set_threads(9)
    shared = posenc.threads(2)
    in_turn(
        [shared.__enter__, sees(2), leave(shared), sees(9), sees(9)],  # type: ignore[list-item]
        [shared.__enter__, sees(2), sees(2), leave(shared), sees(9)],  # type: ignore[list-item]
    )


# ---- quotas ----------------------------------------------------------------------------------------------------------

CPU = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/cpu"


def v1(quota: str, period: str = "100000", group: str = "") -> dict[str, str]:
    return {f"{V1}{group}/cpu.cfs_quota_us": f"{quota}\n", f"{V1}{group}/cpu.cfs_period_us": f"{period}\n"}


QUOTAS: dict[str, tuple[str, dict[str, str], int | None]] = {
    # name: (/proc/self/cgroup, the other files, the quota)
    "v2 whole": ("0::/\n", {f"{CPU}/cpu.max": "200000 100000\n"}, 2),
    "v2 rounded up": ("0::/\n", {f"{CPU}/cpu.max": "200001 100000\n"}, 3),
    "v2 below one": ("0::/\n", {f"{CPU}/cpu.max": "1000 100000\n"}, 1),
    "v2 zero": ("0::/\n", {f"{CPU}/cpu.max": "0 100000\n"}, 1),
    "v2 other period": ("0::/\n", {f"{CPU}/cpu.max": "200000 50000\n"}, 4),
    "v2 none": ("0::/\n", {f"{CPU}/cpu.max": "max 100000\n"}, None),
    "v2 group": ("0::/a/b\n", {f"{CPU}/a/b/cpu.max": "500000 100000\n"}, 5),
    "v2 parent smaller": (
        "0::/a/b\n",
        {f"{CPU}/a/b/cpu.max": "500000 100000\n", f"{CPU}/a/cpu.max": "300000 100000\n", f"{CPU}/cpu.max": "max 100000\n"},
        3,
    ),
    "v2 root smallest": (
        "0::/a/b\n",
        {f"{CPU}/a/b/cpu.max": "max 100000\n", f"{CPU}/a/cpu.max": "300000 100000\n", f"{CPU}/cpu.max": "200000 100000\n"},
        2,
    ),
    "v2 child smaller": ("0::/a\n", {f"{CPU}/a/cpu.max": "100000 100000\n", f"{CPU}/cpu.max": "300000 100000\n"}, 1),
    "v2 of other groups": ("0::/a\n", {f"{CPU}/b/cpu.max": "100000 100000\n", f"{CPU}/ab/cpu.max": "100000 100000\n"}, None),
    "v2 path of the host": ("0::/kubepods/pod1/x\n", {f"{CPU}/cpu.max": "400000 100000\n"}, 4),
    "v2 group beyond the namespace": ("0::/../../x\n", {f"{CPU}/cpu.max": "400000 100000\n"}, 4),
    "v2 colon in the path": ("0::/a:b\n", {f"{CPU}/a:b/cpu.max": "400000 100000\n"}, 4),
    "v1": ("5:cpu:/\n", v1("250000"), 3),
    "v1 with cpuacct": ("7:memory:/x\n5:cpuacct,cpu:/x\n", v1("250000", group="/x"), 3),
    "v1 none": ("5:cpu,cpuacct:/\n", v1("-1"), None),
    "v1 parent smaller": ("5:cpu,cpuacct:/a/b\n", v1("800000", group="/a/b") | v1("150000", group="/a"), 2),
    "v1 without its controller": ("5:cpuset:/\n4:cpuacct:/\n", v1("250000"), None),
    "v1 without a period": ("5:cpu:/\n", {f"{V1}/cpu.cfs_quota_us": "250000\n"}, None),
    "v1 without a quota": ("5:cpu:/\n", {f"{V1}/cpu.cfs_period_us": "100000\n"}, None),
    "both": ("5:cpu,cpuacct:/\n0::/\n", v1("600000") | {f"{CPU}/cpu.max": "700000 100000\n"}, 6),
    "nothing mounted": ("0::/a\n", {}, None),
    "no groups": ("", {f"{CPU}/cpu.max": "100000 100000\n"}, None),
    "groups malformed": ("0\n0:\n::\n\n1:cpu\nnonsense\n", {f"{CPU}/cpu.max": "100000 100000\n"}, None),
    **{
        f"v2 malformed: {text!r}": ("0::/\n", {f"{CPU}/cpu.max": text}, None)
        for text in (
            "",
            "\n",
            "100000",
            "max",
            "100000 0",
            "100000 -1",
            "-100000 100000",
            "1e5 1e5",
            "1.5 1",
            "a b",
            "\u00b2 1",
            "1 \u00b2",
        )
    },
    "v2 malformed, parent not": ("0::/a\n", {f"{CPU}/a/cpu.max": "?", f"{CPU}/cpu.max": "200000 100000"}, 2),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_quota(name: str, tmp_path: Path) -> None:
    groups, files, expected = QUOTAS[name]
    for path, text in {"proc/self/cgroup": groups, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert _threads.cgroup_quota(str(tmp_path)) == expected


def test_quota_that_cannot_be_read(tmp_path: Path) -> None:
    assert _threads.cgroup_quota(str(tmp_path / "missing")) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a\n")
    (tmp_path / CPU / "cpu.max").mkdir(parents=True)  # reading it is an OSError, also for root
    (tmp_path / CPU / "a").mkdir()
    (tmp_path / CPU / "a/cpu.max").write_bytes(b"\xff\xfe100000 100000")
    assert _threads.cgroup_quota(str(tmp_path)) is None
    other = tmp_path / "other"
    (other / "proc/self/cgroup").mkdir(parents=True)
    assert _threads.cgroup_quota(str(other)) is None


def test_quota_of_this_process() -> None:
    quota = _threads.cgroup_quota("/")
    assert quota is None or quota >= 1
    assert 1 <= _threads.processors() <= (quota or math.inf)


# ---- forks -----------------------------------------------------------------------------------------------------------

SHAPE = (2048, 512)  # 4 MiB: in parallel, where that may be


def digest(**keywords: Any) -> bytes:
    return hashlib.sha256(posenc.table(*SHAPE, **keywords)).digest()


def in_fork(work: Callable[[], bytes]) -> bytes:
    """What ``work`` returns in a forked child; one that hangs is killed."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        assert select.select([reader], [], [], HANGS_AFTER)[0], "the forked child hangs"
        return os.read(reader, 1 << 16)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@needs_fork
def test_fork() -> None:
    expected = digest(threads=1)
    assert digest(threads=2) == expected  # OpenMP's threads are there now, and not in the child
    assert in_fork(lambda: digest(threads=2)) == expected
    assert in_fork(digest) == expected
    assert in_fork(lambda: in_fork(lambda: digest(threads=2))) == expected
    assert digest(threads=2) == expected


@needs_fork
@needs_openmp
def test_forked_child_is_serial() -> None:
    def child() -> bytes:
        posenc.set_threads(2)
        counts = [_threads.for_work(n, 1 << 40) for n in (None, 2, 64)]
        return json.dumps([core.is_forked(), core.may_go_parallel(), counts]).encode()

    assert json.loads(in_fork(child)) == [True, False, [1, 1, 1]]
    assert core.may_go_parallel()
    assert not core.is_forked()
    assert _threads.for_work(64, 1 << 40) == 64


@needs_fork
def test_fork_while_another_thread_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the cache is held by a thread that the child does not have."""
    posenc.clear_cache()
    with _rows.CACHE._lock:
        got = in_fork(lambda: posenc.table(100, 8).tobytes())
    assert got == posenc.table(100, 8).tobytes()


@needs_fork
def test_fork_during_calls() -> None:
    """Other threads are in the midst of serial and parallel calls."""
    stop, expected = threading.Event(), digest(threads=1)
    started = threading.Barrier(3)

    def call(threads: int) -> None:
        started.wait(HANGS_AFTER)
        while not stop.is_set():
            posenc.table(*SHAPE, threads=threads)
            posenc.clear_cache()

    workers = [threading.Thread(target=call, args=[threads]) for threads in (1, 2)]
    for worker in workers:
        worker.start()
    try:
        started.wait(HANGS_AFTER)
        for _ in range(10):
            assert in_fork(lambda: digest(threads=2)) == expected
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def start_methods() -> list[Any]:
    available = multiprocessing.get_all_start_methods()
    return [
        pytest.param(method, marks=() if method in available else pytest.mark.skip(reason=f"no {method} on this platform"))
        for method in ("fork", "spawn", "forkserver")
    ]


@forks
@pytest.mark.parametrize("method", start_methods())
def test_pool(method: str) -> None:
    expected = posenc.table(*SHAPE, threads=1).tobytes()
    assert posenc.table(*SHAPE, threads=2).tobytes() == expected
    with multiprocessing.get_context(method).Pool(2) as pool:
        calls = [pool.apply_async(posenc.table, SHAPE, {"threads": threads}) for threads in (None, 1, 2, 2)]
        assert [call.get(HANGS_AFTER).tobytes() for call in calls] == [expected] * 4


@pytest.mark.parametrize(
    ("variables", "setting", "expected"),
    [
        ({}, None, 1),
        ({"POSENC_NUM_THREADS": "3"}, None, 3),
        ({"OMP_NUM_THREADS": "3"}, None, 3),
        ({"OMP_NUM_THREADS": "4"}, 3, 3),
        ({}, 3, 3),
    ],
)
def test_spawned_child(variables: dict[str, str], setting: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a pool uses one thread, as there are as many processes as processors, unless it was told a number."""
    if "OMP_NUM_THREADS" in variables and setting is None and not core.OPENMP:
        pytest.skip("this build has no OpenMP to read OMP_NUM_THREADS")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with multiprocessing.get_context("spawn").Pool(1, posenc.set_threads, [setting]) as pool:
        assert pool.apply_async(_threads.wanted).get(HANGS_AFTER) == expected


# ---- many threads at once --------------------------------------------------------------------------------------------

MANY: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((3000, 300), {}),
    ((3000, 300), {"layout": "concatenated"}),
    ((2000, 301), {"odd": "zero", "dtype": "float64"}),
    ((50, 64), {"base": 500.0, "start": 2**40}),
    ((5, 64), {"base": 500.0, "amplitude": 0.1}),
    ((1, 7), {"first": -3}),
    ((3000, 300), {"cos_first": True, "start": -1500}),
    ((3000, 300), {"threads": 2, "dtype": "float64", "base": 1e6}),
]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_at_once(threads: int) -> None:
    """Eight threads, each with another encoding, then the next one: the bits of serial calls."""
    expected = [posenc.table(*shape, **{**keywords, "threads": 1}).tobytes() for shape, keywords in MANY]
    start = threading.Barrier(len(MANY))
    wrong: list[Any] = []

    def call(number: int) -> None:
        try:
            start.wait(HANGS_AFTER)
            with posenc.threads(threads):
                for step in range(len(MANY)):
                    this = (number + step) % len(MANY)
                    shape, keywords = MANY[this]
                    if posenc.table(*shape, **keywords).tobytes() != expected[this]:
                        wrong.append(MANY[this])
                    if step % 3 == number % 3:
                        posenc.clear_cache()
        except BaseException as error:
            wrong.append(error)

    posenc.clear_cache()
    workers = [threading.Thread(target=call, args=[number]) for number in range(len(MANY))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_threads_run_during_a_call(dtype: str) -> None:
    """This thread sees a table whose first row is written and whose last is not: its writer has let go of the GIL."""
    seen = False
    for _ in range(200):
        out = np.full((8192, 1024) if dtype == "float32" else (8192, 512), 7.0, dtype)
        first, last = out[0], out[-1]
        worker = threading.Thread(target=posenc.table, args=out.shape, kwargs={"out": out, "threads": 1})
        worker.start()
        while worker.is_alive() and not seen:
            seen = first[0] != 7.0 and last[-1] == 7.0  # in this order
        worker.join()
        assert out[0, 0] != 7.0
        assert out[-1, -1] != 7.0
        if seen:
            break
    assert seen


# ---- what importing does ---------------------------------------------------------------------------------------------

POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
STATE = """{
    "here": {name: os.environ[name] for name in sorted(os.environ) if name in NAMES},
    "in a child": __import__("subprocess").run(
        [sys.executable, "-c", "import os; print(*[name for name in NAMES if name in os.environ])"],
        capture_output=True, text=True, check=True).stdout.split(),
    "policy": posenc.show_config("dicts")["wait_policy"]}""".replace("NAMES", repr(POLICIES))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OMP_WAIT_POLICY": "active"},
        {"OMP_WAIT_POLICY": "passive"},
        {"GOMP_SPINCOUNT": "100"},
        {"KMP_BLOCKTIME": "10"},
        {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "100"},
    ],
    ids=str,
)
def test_wait_policy(variables: dict[str, str]) -> None:
    """Idle threads wait passively, unless the user said how; the environment is as it was."""
    state = value_of(STATE.replace("\n", " "), **variables)
    assert state["here"] == variables
    assert state["in a child"] == [name for name in POLICIES if name in variables]
    said = " ".join(f"{name}={variables[name]}" for name in POLICIES if name in variables) or "passive"
    assert state["policy"] == (said if core.OPENMP else None)


@needs_openmp
@pytest.mark.parametrize(("variables", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE")])
def test_wait_policy_reaches_openmp(variables: dict[str, str], policy: str) -> None:
    done = python("import posenc", OMP_DISPLAY_ENV="true", **variables)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"OMP_WAIT_POLICY *= *'(\w+)'", done.stderr)
    if not shown:
        pytest.skip("this OpenMP does not show its variables")
    assert set(shown) == {policy}


@pytest.mark.parametrize("kernel", core.KERNELS)
def test_kernel(kernel: str) -> None:
    config = value_of("posenc.show_config('dicts')", POSENC_KERNEL=kernel)
    assert config["kernel"] == kernel
    assert config["kernels"] == list(core.KERNELS)


def test_best_kernel() -> None:
    for variables in ({}, {"POSENC_KERNEL": ""}):
        assert value_of("posenc.show_config('dicts')['kernel']", **variables) == core.KERNELS[-1]


@pytest.mark.parametrize("kernel", ["fastest", "AVX2", " ", "baseline "])
def test_unknown_kernel(kernel: str) -> None:
    code = """if True:
        import os
        try:
            import posenc
        except ImportError as error:
            print(type(error) is ImportError, error)
        print("OMP_WAIT_POLICY" in os.environ)"""
    done = python(code, POSENC_KERNEL=kernel)
    assert (done.returncode, done.stderr) == (0, "")
    message = f"POSENC_KERNEL is {kernel!r}; the kernels that run here are {', '.join(core.KERNELS)}"
    assert done.stdout == f"True {message}\nFalse\n"


HEAVY = ["torch", "dask", "ml_dtypes", "matplotlib", "pandas", "scipy", "decimal", "fractions", "multiprocessing", "asyncio"]
HEAVY += ["argparse", "concurrent", "ctypes", "email", "gmpy2", "http", "inspect", "logging", "mpmath", "shutil", "subprocess"]


def test_import_is_light() -> None:
    """Importing and using posenc brings in nothing but itself and light parts of the standard library."""
    code = """if True:
        import json, sys, numpy, numpy.typing
        before = set(sys.modules)
        import posenc
        posenc.table(100, 5)
        posenc.Encoding(4, base=3.0).frequencies
        posenc.show_config()
        print(json.dumps(sorted(set(sys.modules) - before)))"""
    done = python(code, "-W", "error")
    assert (done.returncode, done.stderr) == (0, "")
    brought = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert "posenc" in brought
    assert brought & set(HEAVY) == set()
    theirs = {name for name in brought if name.startswith("_cython") or name == "cython_runtime"}
    assert brought - theirs - {"posenc", "numpy"} <= sys.stdlib_module_names


# ---- the cache -------------------------------------------------------------------------------------------------------


def entry(nbytes: int) -> Any:
    return SimpleNamespace(nbytes=nbytes)


def kept(cache: Cache) -> list[Any]:
    return list(cache._entries)


def unexpected() -> Any:
    pytest.fail("it was kept, and is made again")


def test_cache_keeps() -> None:
    cache, one = Cache(100), entry(60)
    assert cache.get("one", lambda: one) is one
    assert cache.get("one", unexpected) is one
    assert (kept(cache), cache.nbytes) == (["one"], 60)
    with pytest.raises(KeyError):
        cache.get("two", lambda: {}["missing"])
    assert (kept(cache), cache.nbytes) == (["one"], 60)
    cache.clear()
    assert (kept(cache), cache.nbytes) == ([], 0)
    assert cache.get("one", lambda: entry(1)) is not one


def test_cache_is_bounded_in_bytes() -> None:
    """What was stored first goes first, and no more than must."""
    cache = Cache(100)
    for name, nbytes in (("a", 50), ("b", 30), ("c", 20)):
        cache.get(name, lambda nbytes=nbytes: entry(nbytes))
    assert (kept(cache), cache.nbytes) == (["a", "b", "c"], 100)
    cache.get("d", lambda: entry(1))
    assert (kept(cache), cache.nbytes) == (["b", "c", "d"], 51)
    cache.get("e", lambda: entry(60))
    assert (kept(cache), cache.nbytes) == (["c", "d", "e"], 81)
    cache.get("f", lambda: entry(100))
    assert (kept(cache), cache.nbytes) == (["f"], 100)
    cache.get("g", lambda: entry(0))
    assert (kept(cache), cache.nbytes) == (["f", "g"], 100)


def test_cache_does_not_keep_what_is_larger() -> None:
    cache, large = Cache(100), entry(101)
    cache.get("small", lambda: entry(100))
    assert cache.get("large", lambda: large) is large
    assert (kept(cache), cache.nbytes) == (["small"], 100)
    assert cache.get("large", lambda: entry(102)) is not large


def test_cache_keeps_the_first_of_two_made_at_once() -> None:
    cache, both_make = Cache(100), threading.Barrier(2)
    got = []

    def make() -> Any:
        both_make.wait(HANGS_AFTER)
        return entry(40)

    workers = [threading.Thread(target=lambda: got.append(cache.get("key", make))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(got) == 2
    assert got[0] is got[1] is cache.get("key", unexpected)
    assert cache.nbytes == 40


def test_cache_with_many_threads() -> None:
    cache, errors = Cache(500), []
    interval = sys.getswitchinterval()

    def use(seed: int) -> None:
        try:
            for key in np.random.default_rng(seed).integers(1, 60, 2000).tolist():
                if cache.get(key, lambda key=key: entry(key)).nbytes != key:
                    errors.append(key)
                if key == 59:
                    cache.clear()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=use, args=[seed]) for seed in range(8)]
    try:
        sys.setswitchinterval(1e-6)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert cache.nbytes == sum(cached.nbytes for cached in cache._entries.values()) <= 500


@needs_fork
def test_cache_after_a_fork() -> None:
    """The child begins with an empty cache and a free lock."""
    cache = Cache(100)
    cache.get("key", lambda: entry(40))
    with cache._lock:
        said = in_fork(lambda: json.dumps([kept(cache), cache.get("key", lambda: entry(1)).nbytes, cache.nbytes]).encode())
    assert json.loads(said) == [[], 1, 1]
    assert (kept(cache), cache.nbytes) == (["key"], 40)


def test_clear_cache() -> None:
    posenc.table(100, 64)
    assert _rows.CACHE.nbytes > 0
    assert _functions._cached.cache_info().currsize > 0
    posenc.clear_cache()
    assert (kept(_rows.CACHE), _rows.CACHE.nbytes) == ([], 0)
    assert _functions._cached.cache_info().currsize == 0


def test_cache_of_encodings_is_bounded() -> None:
    limit = _rows.CACHE.limit
    assert limit <= 32 << 20
    posenc.clear_cache()
    assert Encoding(8).table(30).tobytes() == posenc.table(30, 8).tobytes()
    small = _rows.CACHE.nbytes
    for base in range(2, 60):
        posenc.table(24, 32768, base=base)
        assert small < _rows.CACHE.nbytes <= limit
    assert _functions._cached.cache_info().maxsize is not None
    posenc.clear_cache()

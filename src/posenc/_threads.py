"""How many threads a call uses: one place decides."""

import math
import os
import sys
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import Self

from posenc import _check
from posenc._load import core

#: Output below this many bytes is written by one thread: there the call that makes the threads took twice as long as a serial
#: one (bench: first call, 2048x512), for a gain of some tenths of a millisecond.
PARALLEL_BYTES = 6 << 20
#: Threads used by default at the most: memory is saturated well before.
MOST = 16

_Entered = tuple[int, "_Entered | None"]  # a context's number, and what was there before

_context: ContextVar["_Entered | None"] = ContextVar("posenc_threads", default=None)
_process: int | None = None


def set_threads(n: int | None) -> None:
    """Set how many threads calls use in this process.

    A call's ``threads=`` and the context manager `threads` come before it.

    Parameters
    ----------
    n : int or None
        At least 1. None goes back to the default: POSENC_NUM_THREADS, then OMP_NUM_THREADS, then the processors that this
        process may use (by affinity and cgroup quota), at most 16.

    Raises
    ------
    TypeError, ValueError
        If ``n`` is neither None nor a positive int.

    Examples
    --------
    >>> import posenc
    >>> posenc.set_threads(2)
    >>> posenc.set_threads(None)
    """
    global _process
    _process = None if n is None else checked("n", n)


class threads:
    """Context manager: calls made inside, in this thread, use ``n`` threads.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    TypeError, ValueError
        If ``n`` is not a positive int.

    Examples
    --------
    >>> import posenc
    >>> with posenc.threads(1):
    ...     posenc.table(2, 4).shape
    (2, 4)
    """

    def __init__(self, n: int) -> None:
        self._n = checked("n", n)

    def __enter__(self) -> Self:
        _context.set((self._n, _context.get()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        entered = _context.get()
        _context.set(entered and entered[1])


def checked(name: str, n: int) -> int:
    """A number of threads as an int, or the error that names it."""
    return _check.integer(name, n, least=1, most=2**31 - 1)


def wanted(explicit: int | None = None) -> int:
    """The threads that a call with ``threads=explicit`` asks for."""
    if explicit is not None:
        return explicit
    entered = _context.get()
    if entered is not None:
        return entered[0]
    if _process is not None:
        return _process
    variable = os.environ.get("POSENC_NUM_THREADS")
    if variable:
        if not variable.isascii() or not variable.isdigit() or not 1 <= int(variable) < 2**31:
            raise ValueError(f"POSENC_NUM_THREADS is {variable!r}; it must be a positive integer")
        return int(variable)
    if "OMP_NUM_THREADS" in os.environ:
        return core.openmp_threads()
    if _is_multiprocessing_child():
        return 1
    return min(core.openmp_threads(), processors(), MOST)


def for_work(explicit: int | None, nbytes: int) -> int:
    """The threads that a call that writes ``nbytes`` uses."""
    if nbytes < PARALLEL_BYTES or not core.may_go_parallel():
        return 1
    return wanted(explicit)


def processors() -> int:
    """Processors that this process may use: by affinity, and by cgroup quota rounded up."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, cgroup_quota("/") or available)


def _is_multiprocessing_child() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


@lru_cache(maxsize=8)
def cgroup_quota(root: str) -> int | None:
    """Processors by the cgroup's CPU quota (v2, else v1), rounded up; None where there is none or it cannot be read."""
    quotas = []
    for line in _read(root, "proc/self/cgroup").splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if group and controllers == "":
            mount, parse = "sys/fs/cgroup", _quota_v2
        elif group and "cpu" in controllers.split(","):
            mount, parse = "sys/fs/cgroup/cpu", _quota_v1
        else:
            continue
        # the quota of every level counts, and a container may see its own group as the root of the mount
        names = group.strip("/").split("/")
        quotas += [parse(os.path.join(root, mount, *names[:depth])) for depth in range(len(names) + 1)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_v2(group: str) -> int | None:
    return _processors_of(*_read(group, "cpu.max").split())


def _quota_v1(group: str) -> int | None:
    return _processors_of(*_read(group, "cpu.cfs_quota_us").split(), *_read(group, "cpu.cfs_period_us").split())


def _processors_of(quota: str = "", period: str = "", *_: str) -> int | None:
    if not all(number.isascii() and number.isdigit() for number in (quota, period)) or int(period) == 0:
        return None  # "max", -1, missing
    return max(1, math.ceil(int(quota) / int(period)))


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except (OSError, ValueError):
        return ""

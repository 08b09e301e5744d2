"""A cache bounded in bytes, for things that are expensive to make and never change."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """What the cache holds."""

    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class Cache:
    """Least recently used entries go first. Safe to use from many threads, and in a forked child.

    The lock is held for the look-up alone: two threads may make the same thing at once, and the first one stored is kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._start()
        if hasattr(os, "register_at_fork"):  # a thread that is not in the child may hold the lock
            os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self.nbytes = 0

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The entry of ``key``; if there is none, ``make()``, which has an ``nbytes``."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]  # type: ignore[no-any-return]
        value = make()
        with self._lock:
            if key in self._entries:
                return self._entries[key]  # type: ignore[no-any-return]
            if value.nbytes <= self.limit:
                self._entries[key] = value
                self.nbytes += value.nbytes
                while self.nbytes > self.limit:
                    self.nbytes -= self._entries.popitem(last=False)[1].nbytes
        return value

"""A cache bounded in bytes, for things that are expensive to make and never change."""

import os
from _thread import allocate_lock  # threading itself takes a millisecond to import
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """What the cache holds."""

    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class Cache:
    """What was stored first goes first. Safe to use from many threads, and in a forked child.

    A look-up takes no lock; two threads may make the same thing at once, and the first one stored is kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._start()
        if hasattr(os, "register_at_fork"):  # a thread that is not in the child may hold the lock
            os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._lock = allocate_lock()
        self._entries: dict[Hashable, Any] = {}
        self.nbytes = 0

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The entry of ``key``; if there is none, ``make()``, kept unless it is larger than the limit."""
        value: T | None = self._entries.get(key)
        return value if value is not None else self._store(key, make())

    def _store(self, key: Hashable, value: T) -> T:
        with self._lock:
            if key in self._entries:
                return self._entries[key]  # type: ignore[no-any-return]
            if value.nbytes <= self.limit:
                self._entries[key] = value
                self.nbytes += value.nbytes
                while self.nbytes > self.limit:
                    self.nbytes -= self._entries.pop(next(iter(self._entries))).nbytes
        return value

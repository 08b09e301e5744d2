from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

class Format(Protocol):
    @property
    def code(self) -> int: ...

Points = int | range | NDArray[np.int64] | NDArray[np.float64]

KERNELS: tuple[str, ...]
OPENMP: int

CHUNK: int
FLOAT32: int
FLOAT64: int
FLOAT16: int
BFLOAT16: int

def use_kernel(name: str) -> None: ...
def kernel() -> str: ...
def geometric(first: bytes, first_exponent: int, ratio: bytes, ratio_exponent: int, series: NDArray[np.float64]) -> None: ...

class Waves:
    nbytes: int
    def __init__(self, series: NDArray[np.float64], exact: bool) -> None: ...

def shift_of(out: NDArray[Any]) -> int: ...
def rotations_nbytes(n: int, interleaved: bool, dtype: int) -> int: ...

class Rotations:
    nbytes: int
    def __init__(self, waves: Waves, interleaved: bool, dtype: int, shift: int) -> None: ...

class Layout:
    def __init__(self, interleaved: bool, cos_first: bool, columns: int, amplitude: float, scale: float) -> None: ...

def fill(
    out: NDArray[Any],
    points: Points,
    form: Format,
    waves: Waves,
    rotations: Rotations | None,
    layout: Layout,
    threads: int,
    stream: bool,
    entry: Callable[[Any, float, int], float],
    fast_bound: float = 0.0,
    accurate_bound: float = 0.0,
    where: NDArray[np.bool_] | None = None,
    second: NDArray[Any] | None = None,
) -> None: ...

class Sum:
    items: int
    def __init__(
        self,
        x: NDArray[Any],
        out: NDArray[Any],
        where: NDArray[np.bool_] | None,
        points: Points,
        rows: list[tuple[int, int, int, int]],
        batch: list[tuple[int, int, int, int]],
        dtype: int,
        scale: float,
        form: Format,
        waves: Waves,
        rotations: Rotations | None,
        layout: Layout,
        stream: bool,
        entry: Callable[[Any, float, int], float],
        fast_bound: float = 0.0,
        accurate_bound: float = 0.0,
        pairs: tuple[bool, bool] | None = None,
    ) -> None: ...
    def write(self, begin: int, end: int, threads: int) -> None: ...

def spread(out: NDArray[Any], pieces: list[tuple[int, int, int]], begin: int, end: int, threads: int, stream: bool) -> None: ...

class Lent:
    address: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    flags: int | None
    def __init__(self, capsule: object) -> None: ...

class DefaultArithmetic:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

def openmp_threads() -> int: ...
def may_go_parallel() -> bool: ...
def is_forked() -> bool: ...

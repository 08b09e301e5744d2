"""`Rows`: the rows of an encoding, written by the core."""

import math
import sys
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays, _exact, _positions, _sums
from posenc._cache import Cache
from posenc._load import core
from posenc.frequencies import Frequencies

CACHE = Cache(32 << 20)  # frequencies and rotations
_ROTATIONS_FROM = 24  # rows; fewer are evaluated directly
_EXTREME = 2.0**500  # amplitudes beyond it, or below 1 / it, are scaled at the end
SLICE_BYTES = 256 << 20  # of output written in one go: a fraction of a second
_LOG2_LARGEST_ANGLE = 64


Duplicate = Literal["halves", "pairs"]
Points = int | range | _positions.Points  # of rows: the first of consecutive positions, or all, contiguous


class Rows:
    """What stands in a row, ``dim`` wide: sines and cosines in the first ``columns``, zeros in the rest. Trusts its caller.

    With ``duplicate`` each frequency counts as two: as neighbours, or all again behind all.
    """

    __slots__ = ("_duplicate", "_key", "_layout", "_n", "amplitude", "cos_first", "dim", "frequencies", "interleaved")

    def __init__(
        self,
        frequencies: Frequencies,
        dim: int,
        columns: int,
        *,
        interleaved: bool,
        cos_first: bool,
        amplitude: float,
        duplicate: Duplicate | None = None,
    ) -> None:
        self._duplicate = duplicate
        self._key = frequencies.key if duplicate is None else (frequencies.key, duplicate)
        self._n = len(frequencies) * (1 if duplicate is None else 2)
        self.frequencies = frequencies
        self.dim = dim
        self.interleaved = interleaved
        self.cos_first = cos_first
        self.amplitude = amplitude
        self._layout = core.Layout(interleaved, cos_first, min(columns, sys.maxsize), *_scaled(amplitude))

    def check_domain(self, kind: np.dtype[Any], farthest: float) -> None:
        """Raise unless entries of that dtype, for positions as far from 0 as that, are defined."""
        if abs(self.amplitude) >= _arrays.FORMATS[kind].overflow:
            raise ValueError(f"amplitude is {self.amplitude!r}; it overflows {kind}")
        largest = self.frequencies.log2_largest
        if farthest and math.log2(farthest) + largest > _LOG2_LARGEST_ANGLE:
            raise ValueError(
                f"the farthest position is {farthest} from 0, and the largest frequency 2**{largest:.1f}; "
                f"position * frequency must be at most 2**{_LOG2_LARGEST_ANGLE}"
            )

    def write(
        self,
        out: NDArray[Any],
        points: Points,
        threads: int,
        form: _arrays.Format | None = None,
        where: NDArray[np.bool_] | None = None,
        stream: bool = False,
        fast_bound: float = 0.0,
        accurate_bound: float = 0.0,
        second: NDArray[Any] | None = None,
    ) -> None:
        """Fill ``out``, rows and columns; with ``second``, of the same strides, with sines and that with cosines.

        ``stream``: write past the caches. Tests put bounds in the place of the proven ones.
        """
        form = form or _arrays.FORMATS[out.dtype]
        length, nbytes = len(out), out.nbytes
        waves = CACHE.get(self._key, self._waves)
        buffer = out.view(np.uint16) if form.code == core.BFLOAT16 else out  # nothing that buffers know
        turns = length >= _ROTATIONS_FROM and _has_runs(points)
        rotations = self._rotations(waves, form, core.shift_of(buffer)) if turns else None
        how = form, waves, rotations, self._layout, threads, stream, self.entry, fast_bound, accurate_bound
        if second is not None and form.code == core.BFLOAT16:
            second = second.view(np.uint16)
        if nbytes <= SLICE_BYTES:
            core.fill(buffer, points, *how, where, second)
            return
        rows = max(1, SLICE_BYTES // (self.dim * out.itemsize * core.CHUNK)) * core.CHUNK
        for begin in range(0, length, rows):  # between two calls Python sees to signals
            part = slice(begin, begin + rows)
            some = points + begin if isinstance(points, int) else points[part]
            mask = None if where is None else where[part]
            half = None if second is None else second[part]
            core.fill(buffer[part], some, *how, mask, half)

    def _waves(self) -> core.Waves:
        if self._duplicate is None:
            return self.frequencies.waves()
        return self.frequencies.waves(np.array([self._once(k) for k in range(self._n)], np.intp))

    def _rotations(self, waves: core.Waves, form: _arrays.Format, shift: int) -> core.Rotations | None:
        """The rotations for rows that begin ``shift`` elements into a line; None if they are too large to be kept."""
        if core.rotations_nbytes(self._n, self.interleaved, form.code) > CACHE.limit:
            return None
        kind = self.interleaved, form.code, shift
        return CACHE.get((self._key, kind), lambda: core.Rotations(waves, *kind))

    def entry(self, form: _arrays.Format, position: float, column: int) -> float:
        """An entry by exact arithmetic, for what the core cannot prove."""
        k, is_cosine = self._at(column)
        turns, rational = partial(self.frequencies.turns, k), self.frequencies.rational_turns(k)
        return _exact.entry(turns, rational, position, is_cosine, self.amplitude, form.precision, form.smallest)

    def _at(self, column: int) -> tuple[int, bool]:
        """The frequency that stands in a column, and whether as its cosine."""
        if self.interleaved:
            k, second = divmod(column, 2)
        else:
            second, k = divmod(column, self._n)
        return self._once(k), bool(second) != self.cos_first

    def _once(self, k: int) -> int:
        """The number of a frequency, not counting duplicates."""
        return k if self._duplicate is None else k // 2 if self._duplicate == "pairs" else k % len(self.frequencies)

    def add(
        self,
        x: NDArray[Any],
        out: NDArray[Any],
        where: NDArray[np.bool_] | None,
        points: Points,
        varies: list[bool],
        scale: float,
        form: _arrays.Format,
        threads: int,
        stream: bool = False,
        fast_bound: float = 0.0,
        accurate_bound: float = 0.0,
        pairs: tuple[bool, bool] | None = None,
    ) -> None:
        """Write the sum into ``out`` or, with ``pairs`` (interleaved, cos_first), x rotated by concatenated rows.

        Everything is known to be right; the other defaults are for tests, as in `write`.
        """
        waves = CACHE.get(self._key, self._waves)
        rows, batch = _sums.axes(varies, x, out, where)
        length = math.prod(axis[0] for axis in rows)
        by_rotation = length >= _ROTATIONS_FROM and _has_runs(points)
        x_form = _arrays.FORMATS[x.dtype]
        if x_form.code == core.BFLOAT16:
            x, out = x.view(np.uint16), out.view(np.uint16)
        work = core.Sum(
            *(x, out, where, points, rows, batch, x_form.code, scale, form, waves),
            self._rotations(waves, form, core.shift_of(out) if x_form is form else 0) if by_rotation else None,
            self._layout,
            stream,
            self.entry,
            *(fast_bound, accurate_bound, pairs),
        )
        step = max(1, work.items * SLICE_BYTES // out.nbytes)
        for begin in range(0, work.items, step):  # between two calls Python sees to signals
            work.write(begin, min(begin + step, work.items), threads)


def _has_runs(points: Points) -> bool:
    """Whether some of the positions may be consecutive."""
    return isinstance(points, int) or (isinstance(points, np.ndarray) and points.dtype == np.int64)


def _scaled(amplitude: float) -> tuple[float, float]:
    """The amplitude as a factor and a power of two that is 1 unless it is extreme."""
    if 1.0 / _EXTREME <= abs(amplitude) <= _EXTREME:
        return amplitude, 1.0
    mantissa, exponent = math.frexp(amplitude)
    return 2.0 * mantissa, math.ldexp(1.0, exponent - 1)

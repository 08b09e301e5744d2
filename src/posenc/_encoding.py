"""`Encoding`: check once, allocate or take ``out``, call the core."""

import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arrays, _check, _foreign, _pairs, _positions, _sums, _threads
from posenc._rows import Duplicate, Rows
from posenc.frequencies import Frequencies, paper_pairs

Layout = Literal["interleaved", "concatenated"]
Odd = Literal["truncate", "zero", "error"]

_LAYOUTS = ("interleaved", "concatenated")
_ODD = ("truncate", "zero", "error")


class Encoding:
    """A sinusoidal positional encoding: frequencies, and where their sines and cosines stand in a row.

    Entry ``amplitude * sin(p * w_k)`` or ``amplitude * cos(p * w_k)`` of position ``p``, correctly rounded. Immutable.

    Parameters
    ----------
    dim : int
        Width of a row, at least 1.
    base : float, default 10000.0
        The frequencies are ``base**(-2 k / dim)`` radians per position, as in the paper. Positive; its exact binary value.
    frequencies : Frequencies, optional
        Other frequencies, from a rule of `posenc.frequencies`, in place of ``base``. As many as pairs in a row.
    layout : {"interleaved", "concatenated"}, default "interleaved"
        s0 c0 s1 c1 ..., or all sines, then all cosines.
    cos_first : bool, default False
        Put each cosine where its sine would stand, and the other way round.
    odd : {"truncate", "zero", "error"}, default "truncate"
        What an odd ``dim`` means: a row of dim + 1 without its last column; a row of dim - 1 and a column of zeros; ValueError.
    amplitude : float, default 1.0
        Finite, not 0; its exact binary value.
    first : int, default 0
        Position of a table's first row.

    Raises
    ------
    TypeError
        If an argument is of the wrong type, or ``base`` and ``frequencies`` are both given.
    ValueError
        If an argument's value is not as above.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.5. https://arxiv.org/abs/1706.03762

    Examples
    --------
    >>> import posenc
    >>> e = posenc.Encoding(4, base=100.0, layout="concatenated")
    >>> e.table(2)
    array([[0.        , 0.        , 1.        , 1.        ],
           [0.84147096, 0.09983341, 0.5403023 , 0.9950042 ]], dtype=float32)
    """

    __slots__ = (
        "_dim",
        "_first",
        "_is_unusual",
        "_odd",
        "_rows",
        "_rule",
    )
    _dim: int
    _rule: float | None
    _odd: Odd
    _first: int
    _rows: Rows
    _is_unusual: bool  # frequencies or amplitude leave a table's domain to be checked

    def __init__(
        self,
        dim: int,
        *,
        base: float | None = None,
        frequencies: Frequencies | None = None,
        layout: Layout = "interleaved",
        cos_first: bool = False,
        odd: Odd = "truncate",
        amplitude: float = 1.0,
        first: int = 0,
    ) -> None:
        dim = _check.integer("dim", dim, least=1, most=sys.maxsize)
        interleaved = _check.choice("layout", layout, _LAYOUTS) == "interleaved"
        odd_name = _check.choice("odd", odd, _ODD)
        if dim % 2 and odd_name == "error":
            raise ValueError(f"dim is {dim}; with odd='error' it must be even")
        pairs = (dim + 1) // 2 if odd_name == "truncate" else dim // 2
        amplitude = _check.real("amplitude", amplitude)
        if amplitude == 0.0:
            raise ValueError("amplitude is 0.0; it must not be 0")
        rule, frequencies = _chosen_frequencies(dim, pairs, odd_name, base, frequencies)
        cos_first = _check.flag("cos_first", cos_first)
        columns = 2 * pairs if odd_name == "zero" else dim
        fields: dict[str, Any] = {
            "_dim": dim,
            "_rule": rule,
            "_odd": odd_name,
            "_first": _check.integer("first", first),
            "_rows": Rows(frequencies, dim, columns, interleaved=interleaved, cos_first=cos_first, amplitude=amplitude),
            "_is_unusual": frequencies.log2_largest > 0.0 or abs(amplitude) > 1.0,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    # ---- a value -----------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Encoding is immutable; replace({name}=...) makes another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an Encoding is immutable")

    def _parameters(self) -> dict[str, Any]:
        return {
            "dim": self._dim,
            **({"frequencies": self._rows.frequencies} if self._rule is None else {"base": self._rule}),
            "layout": self.layout,
            "cos_first": self._rows.cos_first,
            "odd": self._odd,
            "amplitude": self._rows.amplitude,
            "first": self._first,
        }

    def _identity(self) -> tuple[Any, ...]:
        rows = self._rows
        return self._dim, rows.frequencies, rows.interleaved, rows.cos_first, self._odd, rows.amplitude, self._first

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Encoding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        dim, *rest = self._parameters().items()
        return f"Encoding({', '.join([str(dim[1]), *(f'{name}={value!r}' for name, value in rest)])})"

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        return _rebuilt, (self._parameters(),)

    def replace(self, **changes: Any) -> "Encoding":
        """Another encoding with some parameters changed.

        Parameters
        ----------
        **changes
            Parameters of `Encoding`. ``base`` takes the place of ``frequencies``, and the other way round.

        Returns
        -------
        Encoding

        Raises
        ------
        TypeError, ValueError
            As `Encoding` does.

        Examples
        --------
        >>> import posenc
        >>> posenc.Encoding(4).replace(amplitude=2.0).table(1)
        array([[0., 2., 0., 2.]], dtype=float32)
        """
        parameters = self._parameters()
        if "base" in changes or "frequencies" in changes:
            parameters.pop("base", None)
            parameters.pop("frequencies", None)
        return Encoding(**parameters | changes)

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self._dim

    @property
    def layout(self) -> Layout:
        """Either "interleaved" or "concatenated"."""
        return "interleaved" if self._rows.interleaved else "concatenated"

    @property
    def cos_first(self) -> bool:
        """Whether cosines stand where sines would."""
        return self._rows.cos_first

    @property
    def odd(self) -> Odd:
        """What an odd width means: "truncate", "zero" or "error"."""
        return self._odd

    @property
    def amplitude(self) -> float:
        """What sines and cosines are multiplied by."""
        return self._rows.amplitude

    @property
    def first(self) -> int:
        """Position of a table's first row."""
        return self._first

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Radians per position, float64, one for each pair, shape (pairs,): the doubles nearest to the exact ones."""
        return self._rows.frequencies.values

    @property
    def wavelengths(self) -> NDArray[np.float64]:
        """Positions per turn, 2 pi / frequency, float64, shape (pairs,): the doubles nearest to the exact ones."""
        return self._rows.frequencies.wavelengths

    # ---- tables ------------------------------------------------------------------------------------------------------

    def table(
        self,
        length: int,
        *,
        start: int | None = None,
        dtype: DTypeLike | None = None,
        out: _foreign.Out | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """The encodings of ``length`` consecutive positions, each entry correctly rounded.

        Parameters, result and errors are those of `posenc.table`, with this encoding in the place of ``dim`` and keywords.

        Returns
        -------
        ndarray, shape (length, dim)
            ``out``, or a new array.

        See Also
        --------
        posenc.table : the same, for an encoding by its keywords.

        Examples
        --------
        >>> import posenc
        >>> posenc.Encoding(4).table(2, start=1)
        array([[ 0.84147096,  0.5403023 ,  0.00999983,  0.99995   ],
               [ 0.9092974 , -0.41614684,  0.01999867,  0.9998    ]],
              dtype=float32)
        """
        length, start = self._checked_range(length, start)
        if threads is not None:
            threads = _threads.checked("threads", threads)
        given: Any = out
        if out is not None:
            out = _foreign.as_out(out)
        if dtype is None and out is None:
            kind, form = _arrays.FLOAT32, _arrays.FLOAT32_FORMAT
        else:
            kind = _arrays.checked_dtype(dtype, out)
            form = _arrays.FORMATS[kind]
        if self._is_unusual:
            self._rows.check_domain(kind, farthest(start, length))
        shape = (length, self._dim)
        nbytes = length * self._dim * kind.itemsize
        stream = False
        if out is not None:
            _arrays.check_out(out, shape)
            stream = _arrays.streams(nbytes, new=False)
        elif 0 < nbytes < _arrays.ALIGN_FROM:
            out = np.empty(shape, kind)
        else:
            out = _arrays.fresh(shape, kind)
        if length:
            used = 1 if nbytes < _threads.PARALLEL_BYTES else _threads.for_work(threads, nbytes)
            self._rows.write(out, start, used, form, stream=stream)
        return out if given is None else given

    def encode(
        self,
        positions: ArrayLike | range,
        *,
        where: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
        out: _foreign.Out | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """The encodings of any positions, each entry correctly rounded.

        Parameters, result and errors are those of `posenc.encode`, with this encoding in the place of ``dim`` and keywords.

        Returns
        -------
        ndarray, shape positions.shape + (dim,)
            ``out``, or a new array.

        See Also
        --------
        posenc.encode : the same, for an encoding by its keywords.

        Examples
        --------
        >>> import posenc
        >>> posenc.Encoding(2).encode([[0, -7], [0.5, 7]], dtype="float64").round(3).tolist()
        [[[0.0, 1.0], [-0.657, 0.754]], [[0.479, 0.878], [0.657, 0.754]]]
        """
        points, lead, mask = self._checked_points(positions, where)
        given: Any = out
        if out is not None:
            out = _foreign.as_out(out)
        kind = _arrays.checked_dtype(dtype, out)
        if threads is not None:
            threads = _threads.checked("threads", threads)
        self._rows.check_domain(kind, _positions.farthest(points))
        shape = (*lead, self._dim)
        if out is None:
            out = _arrays.fresh(shape, kind)
        else:
            _arrays.check_out(out, shape)
            mask = None if mask is None else _sums.apart(mask, out)
            points = points if isinstance(points, range) else _sums.apart(points, out)
        used, stream = _threads.for_work(threads, out.nbytes), _arrays.streams(out.nbytes, new=given is None)
        for part, rows in _arrays.even_rows(out):
            flat = points if isinstance(points, range) else points[part].ravel()
            masked = None if mask is None else np.ascontiguousarray(mask[part]).ravel()
            if isinstance(flat, range) and flat.step == 1:
                self._rows.write(rows, flat.start, used, where=masked, stream=stream)
            elif isinstance(flat, range) and flat.step == -1:
                masked = None if masked is None else masked[::-1].copy()
                self._rows.write(rows[::-1], flat[-1], used, where=masked, stream=stream)
            else:
                self._rows.write(rows, flat, used, where=masked, stream=stream)
        return out if given is None else given

    def add(
        self,
        x: ArrayLike,
        *,
        positions: ArrayLike | range | None = None,
        start: int | None = None,
        axis: int = -2,
        scale: float = 1.0,
        where: ArrayLike | None = None,
        out: _foreign.Out | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """``scale * x + encodings`` in one pass: no table is made.

        Parameters, result and errors are those of `posenc.add`, with this encoding in the place of the keywords.

        Returns
        -------
        ndarray, the shape and dtype of ``x``
            ``out``, or a new array.

        See Also
        --------
        posenc.add : the same, for an encoding by its keywords.

        Examples
        --------
        >>> import numpy as np
        >>> import posenc
        >>> posenc.Encoding(4).add(np.ones((1, 2, 4)), scale=2.0).round(3)
        array([[[2.   , 3.   , 2.   , 3.   ],
                [2.841, 2.54 , 2.01 , 3.   ]]])
        """
        x = _arrays.checked_x(x)
        if x.shape[-1] != self._dim:
            raise ValueError(f"x has shape {x.shape}; its last axis must be the encoding's dim, {self._dim}")
        kind = x.dtype if x.dtype == np.float64 else _arrays.FLOAT32
        scale = _sums.checked_scale(scale, _arrays.FORMATS[kind])
        lead = x.shape[:-1]
        mask = None if where is None else _positions.checked_where(where, lead)
        if threads is not None:
            threads = _threads.checked("threads", threads)
        points: int | _positions.Points
        if positions is None:
            along = _sums.checked_axis(axis, x.ndim)
            length, points = self._checked_range(lead[along], start)
            reach: float = farthest(points, length)
            varies = [i == along for i in range(len(lead))]
        else:
            if start is not None or axis != -2:
                raise TypeError(f"positions is given with start={start} and axis={axis}; they exclude it")
            array = _positions.as_array(positions)
            _positions.check_broadcast("positions", array.shape, lead)
            points = _positions.checked(array, mask)
            reach = _positions.farthest(points)
            varies = _sums.varying(points, lead)
        self._rows.check_domain(kind, reach)
        given: Any = out
        if out is None:
            out, stream = _arrays.fresh(x.shape, x.dtype), _arrays.streams(x.nbytes, new=True)
        else:
            out = _foreign.as_out(out)
            _arrays.check_sum(out, x)
            x = _sums.apart(x, out)
            stream = _arrays.streams(x.nbytes, new=False) and not _sums.is_same(x, out)
            mask = None if mask is None else _sums.apart(mask, out)
            points = points if isinstance(points, int) else _sums.apart(points, out)
        if out.size:
            used = _threads.for_work(threads, out.nbytes)
            self._rows.add(x, out, mask, points, varies, scale, _arrays.FORMATS[kind], used, stream)
        return out if given is None else given

    # ---- pairs -------------------------------------------------------------------------------------------------------

    def sincos(
        self,
        positions: ArrayLike | range,
        *,
        duplicate: Duplicate | None = None,
        dtype: DTypeLike | None = None,
        out: tuple[_foreign.Out, _foreign.Out] | None = None,
        threads: int | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sines and cosines of the angles, each entry correctly rounded; layout and odd widths do not matter.

        Parameters, results and errors are those of `posenc.sincos`, with this encoding in the place of ``dim`` and keywords.

        Returns
        -------
        (ndarray, ndarray), each of shape positions.shape + (pairs,)
            Sines and cosines.

        See Also
        --------
        posenc.sincos : the same, for an encoding by its keywords.

        Examples
        --------
        >>> import posenc
        >>> sines, cosines = posenc.Encoding(4).sincos([0, 1])
        >>> sines
        array([[0.        , 0.        ],
               [0.84147096, 0.00999983]], dtype=float32)
        """
        points, lead, _ = self._checked_points(positions, None)
        if duplicate is not None:
            _check.choice("duplicate", duplicate, ("halves", "pairs"))
        shape = (*lead, len(self._rows.frequencies) * (1 if duplicate is None else 2))
        given: Any = out
        kind, arrays = _pairs.checked_out(given, shape, dtype)
        if threads is not None:
            threads = _threads.checked("threads", threads)
        self._rows.check_domain(kind, _positions.farthest(points))
        rows = _pairs.concatenated(self._rows, duplicate=duplicate)
        results = _pairs.sines_and_cosines(rows, points, lead, kind, threads)
        if given is None:
            return results
        for array, values in zip(arrays, results, strict=True):
            array[...] = values
        return given[0], given[1]

    def rotate(
        self,
        x: ArrayLike,
        positions: ArrayLike | range,
        *,
        out: _foreign.Out | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Each pair of ``x`` turned by the angles of its position.

        Parameters, result and errors are those of `posenc.rotate`, with this encoding in the place of the keywords.

        Returns
        -------
        ndarray, the shape and dtype of ``x``
            ``out``, or a new array.

        See Also
        --------
        posenc.rotate : the same, for an encoding by its keywords.

        Examples
        --------
        The encoding of position 3, turned by 4, is that of position 7:

        >>> import posenc
        >>> e = posenc.Encoding(4)
        >>> e.rotate(e.encode(3, dtype="float64"), 4).round(6) == e.encode(7, dtype="float64").round(6)
        array([ True,  True,  True,  True])
        """
        x = _arrays.checked_x(x)
        if x.shape[-1] < self._dim:
            raise ValueError(f"x has shape {x.shape}; its last axis must be at least the encoding's dim, {self._dim}")
        self._check_pairs("the last sine has no cosine to rotate with")
        lead = x.shape[:-1]
        array = _positions.as_array(positions)
        _positions.check_broadcast("positions", array.shape, lead)
        points = _positions.checked(array, None)
        if threads is not None:
            threads = _threads.checked("threads", threads)
        self._rows.check_domain(np.dtype(np.float64), _positions.farthest(points))
        given: Any = out
        if out is None:
            out, stream = _arrays.fresh(x.shape, x.dtype), _arrays.streams(x.nbytes, new=True)
        else:
            out = _foreign.as_out(out)
            _arrays.check_sum(out, x)
            x, points = _sums.apart(x, out), _sums.apart(points, out)
            stream = _arrays.streams(x.nbytes, new=False) and not _sums.is_same(x, out)
        if len(self._rows.frequencies) == 0:
            out[...] = x
        elif out.size:
            form, used = _arrays.FORMATS[np.dtype(np.float64)], _threads.for_work(threads, out.nbytes)
            varies, pairs = _sums.varying(points, lead), (self._rows.interleaved, self._rows.cos_first)
            _pairs.concatenated(self._rows).add(x, out, None, points, varies, 1.0, form, used, stream, pairs=pairs)
        return out if given is None else given

    def similarity(self, offsets: ArrayLike | range) -> NDArray[np.float64]:
        """The dot product of two encodings at that distance, ``amplitude**2 * sum_k cos(w_k * offset)``.

        Result and errors are those of `posenc.similarity`, with this encoding in the place of ``dim`` and keywords.

        Returns
        -------
        ndarray of float64, the shape of ``offsets``

        See Also
        --------
        posenc.similarity : the same, for an encoding by its keywords.

        Examples
        --------
        >>> import posenc
        >>> posenc.Encoding(4).similarity([0, 1, -1]).round(4)
        array([2.    , 1.5403, 1.5403])
        """
        points, lead, _ = self._checked_points(offsets, None, "offsets")
        self._check_pairs("the dot product of two encodings then depends on their positions")
        self._rows.check_domain(np.dtype(np.float64), _positions.farthest(points))
        return _pairs.similarity(_pairs.concatenated(self._rows, amplitude=1.0), points, lead, self._rows.amplitude)

    def shift_matrix(self, delta: float) -> NDArray[np.float64]:
        """The matrix T of a shift: T @ encode(t) = encode(t + delta), whatever t.

        Parameters
        ----------
        delta : int or float
            The distance, as a position of `encode`.

        Returns
        -------
        ndarray of float64, shape (dim, dim)
            Its entries are correctly rounded sines and cosines of the angles, without the amplitude; a zero column is kept.

        Raises
        ------
        TypeError
            If ``delta`` is no number that a position may be.
        ValueError
            If ``delta`` is not one number or beyond what a position may be, or ``dim`` is odd and truncated: the last sine
            then has no cosine.

        Examples
        --------
        >>> import numpy as np
        >>> import posenc
        >>> e = posenc.Encoding(2)
        >>> e.shift_matrix(0.5).round(3)
        array([[ 0.878,  0.479],
               [-0.479,  0.878]])
        """
        points, lead, _ = self._checked_points(delta, None, "delta")
        if lead != ():
            raise ValueError(f"delta has shape {lead}; it must be a single number")
        self._check_pairs("no matrix shifts a sine without its cosine")
        self._rows.check_domain(np.dtype(np.float64), _positions.farthest(points))
        return _pairs.shift_matrix(self._rows, np.asarray(points))

    def _check_pairs(self, reason: str) -> None:
        if self._dim % 2 and self._odd == "truncate":
            raise ValueError(f"dim is {self._dim} and odd='truncate'; {reason}: dim must be even, or odd='zero'")

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def _checked_points(
        self, positions: Any, where: ArrayLike | None, name: str = "positions"
    ) -> tuple[range | _positions.Points, tuple[int, ...], NDArray[np.bool_] | None]:
        """Positions, their shape, and ``where`` as booleans of that shape."""
        if isinstance(positions, range):
            points = _positions.checked_range(positions, name)
            mask = None if where is None else _positions.checked_where(where, (len(points),))
            return points, (len(points),), mask
        array = _positions.as_array(positions, name)
        mask = None if where is None else _positions.checked_where(where, array.shape)
        return _positions.checked(array, mask, name), array.shape, mask

    def _checked_range(self, length: int, start: int | None) -> tuple[int, int]:
        """A table's length and first position."""
        if type(length) is not int or not 0 <= length <= sys.maxsize:  # else there is nothing to check
            length = _check.integer("length", length, least=0, most=sys.maxsize)
        start = self._first if start is None else _check.integer("start", start)
        if start + length - 1 > _check.INT64_MAX:
            raise ValueError(f"start is {start} and length {length}; the last position, start + length - 1, must be an int64")
        return length, start


def farthest(start: int, length: int) -> int:
    """The largest size of the positions start, start + 1, ...; 0 if there is none."""
    return max(abs(start), abs(start + length - 1)) if length else 0


def _chosen_frequencies(
    dim: int, pairs: int, odd: str, base: float | None, frequencies: Frequencies | None
) -> tuple[float | None, Frequencies]:
    """The base, None if ``frequencies`` are given, and the frequencies."""
    if frequencies is None:
        base = 10000.0 if base is None else _check.positive("base", base)
        return base, paper_pairs(pairs, dim, base)
    if base is not None:
        both = f"base={_check.shown(base)} and frequencies={_check.shown(frequencies)}"
        raise TypeError(f"{both} are both given; give one of them")
    if not isinstance(frequencies, Frequencies):
        kind = type(frequencies).__name__
        raise TypeError(f"frequencies must be made by a rule of posenc.frequencies, not {kind} {_check.shown(frequencies)}")
    if len(frequencies) != pairs:
        raise ValueError(f"frequencies has {len(frequencies)} of them; dim={dim} with odd={odd!r} needs {pairs}")
    return None, frequencies


def _rebuilt(parameters: dict[str, Any]) -> Encoding:
    return Encoding(**parameters)

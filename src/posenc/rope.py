"""Rotary schedules: what stretches rotary position embeddings to longer texts, as frequencies and an amplitude.

Each function makes a `Schedule` of its arguments alone: nothing is remembered between calls. ``dim`` is the width of a head.
All but `default` begin with w_k = base**(-2 k / dim), each the nearest float64, and go on in float64, operation by operation in
the order said, with logarithms and powers rounded from exact ones; so they are the same everywhere. An encoding takes the
resulting float64 for exact.

What others call these functions' arguments. Those of transformers' configurations have the same names here; `from_config` takes
the configuration, or its ``rope_scaling`` or ``rope_parameters`` alone.

================================================  ======================================================================
transformers: `rope_type`, or once `type`         here
================================================  ======================================================================
"default", "mrope" (sections are the caller's)    `default(head_dim, base=rope_theta)`
"linear"                                          `linear(head_dim, factor)`
"dynamic"                                         `dynamic(head_dim, factor, max_position_embeddings, length=n)`
"yarn" (DeepSeek's `mscale`, `mscale_all_dim`)    `yarn(head_dim, factor, original_max_position_embeddings, ...)`
"longrope", "su"                                  `longrope(head_dim, short_factor, long_factor, ..., length=n)`
"llama3"                                          `llama3(head_dim, factor, original_max_position_embeddings, ...)`
"proportional"                                    `proportional(head_dim, partial_rotary_factor=...)`
`rotary_pct` of GPT-NeoX                          `partial_rotary_factor`
`rotary_dim` of GPT-J                             ``dim``
================================================  ======================================================================

======================================================  ======================================================================
elsewhere                                               here
======================================================  ======================================================================
`precompute_freqs_cis(d, n, theta)` of Meta             `cache(n, default(d, base=theta), layout="complex")`
... with `use_scaled_rope`                              `cache(n, llama3(d, 8.0, 8192, base=theta), layout="complex")`
`RotaryPositionalEmbeddings(d, n, base)` of torchtune   `cache(n, default(d, base=base), layout="stacked")`
`get_1d_rotary_pos_embed(d, n, theta)` of diffusers     `cache(n, default(d, base=theta), layout="complex")`
... with `linear_factor`, `ntk_factor`                  `linear(d, linear_factor, base=theta * ntk_factor)` as the schedule
... with `use_real`                                     layout="pairs", and with `repeat_interleave_real=False` "halves"
`RotaryEmbedding(d, base, interleaved)` of flash-attn   `cache(n, default(d, base=base), layout="split")`
RotaryEmbedding of ONNX                                 the same
`cos_sin_cache` of vLLM                                 `cache(n, ..., layout="row")`
======================================================  ======================================================================
"""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _arrays, _check
from posenc._rope_config import from_config
from posenc._schedules import Schedule, default, dynamic, linear, llama3, longrope, ntk, proportional, yarn

__all__ = [
    "Schedule",
    "cache",
    "default",
    "dynamic",
    "from_config",
    "linear",
    "llama3",
    "longrope",
    "ntk",
    "proportional",
    "yarn",
]

Two = Literal["split", "halves", "pairs"]
One = Literal["row", "stacked", "complex"]


@overload
def cache(
    length: int, schedule: Schedule, *, layout: Two, start: int = 0, dtype: DTypeLike | None = None, threads: int | None = None
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def cache(
    length: int, schedule: Schedule, *, layout: One, start: int = 0, dtype: DTypeLike | None = None, threads: int | None = None
) -> NDArray[Any]: ...
def cache(
    length: int,
    schedule: Schedule,
    *,
    layout: Two | One,
    start: int = 0,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]] | NDArray[Any]:
    """Cosines and sines of consecutive positions as rotary caches have them, each entry correctly rounded.

    Parameters
    ----------
    length : int
        Positions, at least 0.
    schedule : Schedule
        Of n frequencies.
    layout : {"split", "halves", "pairs", "row", "stacked", "complex"}
        ========== ============================================ =================================
        layout     result                                       as in
        ========== ============================================ =================================
        "split"    (cos, sin), each (length, n)                 flash-attn, ONNX
        "halves"   (cos, sin), each (length, 2 n): [c .. c ..]  Hugging Face's models, GPT-NeoX
        "pairs"    (cos, sin), each (length, 2 n): c0 c0 c1 ..  GPT-J, Flux
        "row"      (length, 2 n): [c .. s ..]                   vLLM
        "stacked"  (length, n, 2): c and s                      torchtune
        "complex"  (length, n): c + i s                         Meta's LLaMA, torchtitan
        ========== ============================================ =================================
    start : int, default 0
        The first position.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        float32 by default. "complex" has complex64 for float32 and complex128 for float64, and no other.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.

    Returns
    -------
    (ndarray, ndarray) or ndarray
        As above; in two arrays the cosines come first.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.
    MemoryError
        If the cache does not fit in memory.

    See Also
    --------
    posenc.Encoding.rotate : needs no cache.
    posenc.Encoding.sincos : any positions.

    Examples
    --------
    >>> import posenc
    >>> cosines, sines = posenc.rope.cache(2, posenc.rope.default(4), layout="halves")
    >>> sines
    array([[0.        , 0.        , 0.        , 0.        ],
           [0.84147096, 0.00999983, 0.84147096, 0.00999983]], dtype=float32)
    >>> posenc.rope.cache(2, posenc.rope.default(4), layout="complex").round(3)
    array([[1.  +0.j   , 1.  +0.j   ],
           [0.54+0.841j, 1.  +0.01j ]], dtype=complex64)
    """
    if not isinstance(schedule, Schedule):
        raise TypeError(f"schedule must be a Schedule, as rope.default(dim) and others make it, not {type(schedule).__name__}")
    _check.choice("layout", layout, ("split", "halves", "pairs", "row", "stacked", "complex"))
    start = _check.integer("start", start)
    encoding = schedule.encoding("interleaved" if layout in ("stacked", "complex") else "concatenated")
    if layout in ("split", "halves", "pairs"):
        length = _check.integer("length", length, least=0)
        if start + length - 1 > _check.INT64_MAX:
            raise ValueError(f"start is {start} and length {length}; the last position must be an int64")
        duplicate: Any = None if layout == "split" else layout
        sines, cosines = encoding.sincos(range(start, start + length), duplicate=duplicate, dtype=dtype, threads=threads)
        return cosines, sines
    if layout == "complex":
        kind = _arrays.checked_dtype(dtype, None)
        if kind.itemsize < 4:
            raise TypeError(f"dtype is {dtype!r}; with layout='complex' it must be float32 or float64")
    rows = encoding.table(length, start=start, dtype=dtype, threads=threads)
    if layout == "row":
        return rows
    if layout == "stacked":
        return rows.reshape(len(rows), len(schedule.frequencies), 2)
    return rows.view(np.result_type(rows.dtype, np.complex64))

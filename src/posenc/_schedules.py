"""Rotary schedules, each a function of its arguments alone. `posenc.rope` says what others call them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _check, _exact
from posenc._encoding import Encoding, Layout
from posenc._load import core
from posenc.frequencies import Frequencies, exact_doubles, given, paper

_BITS = 400  # of logarithms and powers before they are rounded

Doubles = NDArray[np.float64]


class Schedule(NamedTuple):
    """Frequencies, and what sines and cosines are multiplied by: `Encoding`'s parameters of these names.

    Parameters
    ----------
    frequencies : Frequencies
        One for each pair that is rotated.
    amplitude : float
        The attention factor: of a rotated query and its key, the dot product grows by its square.

    Examples
    --------
    >>> import posenc
    >>> frequencies, amplitude = posenc.rope.yarn(8, 4.0, 2048)
    >>> frequencies.values.round(5), round(amplitude, 5)
    (array([1.00e+00, 1.00e-01, 6.25e-03, 2.50e-04]), 1.13863)
    """

    frequencies: Frequencies
    amplitude: float = 1.0

    def encoding(self, layout: Layout = "concatenated") -> Encoding:
        """The encoding that rotates by this schedule, cosines first.

        Parameters
        ----------
        layout : {"concatenated", "interleaved"}, default "concatenated"
            Pairs are (i, i + n), as in Hugging Face's models and GPT-NeoX, or (2 i, 2 i + 1), as in Meta's and GPT-J.

        Returns
        -------
        Encoding
            Twice as wide as there are frequencies. Its ``rotate`` leaves the rest of a wider head as it is.

        Raises
        ------
        TypeError, ValueError
            If ``layout`` is not as above.

        Examples
        --------
        >>> import numpy as np
        >>> import posenc
        >>> heads = np.ones((2, 3, 8))
        >>> posenc.rope.linear(8, 4.0).encoding().rotate(heads, np.arange(3)).shape
        (2, 3, 8)
        """
        frequencies: Any = self.frequencies  # of a tuple that anybody may make
        if not isinstance(frequencies, Frequencies) or len(frequencies) == 0:
            raise TypeError(f"frequencies of the schedule must be Frequencies, one or more, not {type(frequencies).__name__}")
        width = 2 * len(frequencies)
        return Encoding(width, frequencies=frequencies, amplitude=self.amplitude, layout=layout, cos_first=True)


# ---- schedules -------------------------------------------------------------------------------------------------------


def default(dim: int, *, base: float = 10000.0, partial_rotary_factor: float = 1.0) -> Schedule:
    """The frequencies of RoFormer and LLaMA, base**(-2 k / d), as exact real numbers.

    Parameters
    ----------
    dim : int
        Width of a head.
    base : float, default 10000.0
        Positive; its exact binary value.
    partial_rotary_factor : float, default 1.0
        d is the integer part of ``dim * partial_rotary_factor``: the rest of a head is not rotated.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021. https://arxiv.org/abs/2104.09864

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.default(16, partial_rotary_factor=0.5).frequencies.values
    array([1.   , 0.1  , 0.01 , 0.001])
    """
    return Schedule(paper(_width(dim, partial_rotary_factor), base))


def linear(dim: int, factor: float, *, base: float = 10000.0, partial_rotary_factor: float = 1.0) -> Schedule:
    """Positions interpolated: w / factor.

    Parameters
    ----------
    dim : int
        Width of a head.
    factor : float
        How much longer texts become; positive.
    base, partial_rotary_factor : float
        As in `default`.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Chen et al., "Extending Context Window of Large Language Models via Positional Interpolation", 2023.
    https://arxiv.org/abs/2306.15595

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.linear(8, 4.0).frequencies.values
    array([0.25   , 0.025  , 0.0025 , 0.00025])
    """
    factor = _moderate("factor", factor)
    return _schedule("linear", _width(dim, partial_rotary_factor), base, lambda w: w / factor)


def ntk(dim: int, factor: float, *, base: float = 10000.0, partial_rotary_factor: float = 1.0) -> Schedule:
    """The base stretched, "NTK-aware": base * factor**(d / (d - 2)), so that the last frequency is divided by ``factor``.

    Parameters
    ----------
    dim : int
        Width of a head.
    factor : float
        How much longer texts become; positive.
    base, partial_rotary_factor : float
        As in `default`. d must be above 2.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023, have its history.
    https://arxiv.org/abs/2309.00071

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.ntk(8, 4.0).frequencies.values.round(5)
    array([1.00e+00, 6.30e-02, 3.97e-03, 2.50e-04])
    """
    width = _width(dim, partial_rotary_factor)
    return _schedule("ntk", width, _stretched(width, base, _moderate("factor", factor)))


def dynamic(
    dim: int,
    factor: float,
    max_position_embeddings: int,
    *,
    length: int | None = None,
    base: float = 10000.0,
    partial_rotary_factor: float = 1.0,
) -> Schedule:
    """The base stretched as the text grows, "dynamic NTK": base * (factor * L / Lmax - (factor - 1))**(d / (d - 2)).

    Parameters
    ----------
    dim : int
        Width of a head.
    factor : float
        How much longer texts become; positive.
    max_position_embeddings : int
        Lmax, the length up to which nothing changes.
    length : int, optional
        L, that of this text, but at least Lmax; Lmax by default. It is not remembered: shorter texts after longer ones have
        their own frequencies.
    base, partial_rotary_factor : float
        As in `default`. d must be above 2.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023, have its history.
    https://arxiv.org/abs/2309.00071

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.dynamic(8, 2.0, 2048, length=4096).frequencies.values.round(5)
    array([1.000e+00, 6.934e-02, 4.810e-03, 3.300e-04])
    """
    factor, longest = _moderate("factor", factor), _length("max_position_embeddings", max_position_embeddings)
    longer = longest if length is None else max(longest, _length("length", length))
    width = _width(dim, partial_rotary_factor)
    with core.DefaultArithmetic():
        stretch = factor * longer / longest - (factor - 1.0)
    if not stretch > 0.0:  # in float64, for a factor of 2**53 and more
        raise ValueError(f"factor is {factor!r}; it would stretch the base by {stretch}, which must be positive")
    return _schedule("dynamic", width, _stretched(width, base, stretch))


def yarn(
    dim: int,
    factor: float,
    original_max_position_embeddings: int,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
    truncate: bool = True,
    base: float = 10000.0,
    partial_rotary_factor: float = 1.0,
) -> Schedule:
    """YaRN: slow waves interpolated, fast ones as they are, those between on a ramp.

    w / factor * ramp + w * (1 - ramp), ramp_k = (k - low) / (high - low) between 0 and 1, where low and high are the numbers k
    at which a wave turns ``beta_fast`` and ``beta_slow`` times in the original length.

    Parameters
    ----------
    dim : int
        Width of a head.
    factor : float
        How much longer texts become; positive.
    original_max_position_embeddings : int
        The length that the model was trained for.
    beta_fast, beta_slow : float, default 32.0 and 1.0
        Turns; positive.
    attention_factor : float, optional
        The amplitude. By default 0.1 ln(factor) + 1, or 1 if ``factor`` is at most 1.
    mscale, mscale_all_dim : float, optional
        DeepSeek's: with both, not 0, the amplitude is the quotient (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor)
        + 1).
    truncate : bool, default True
        Round low down and high up to integers.
    base, partial_rotary_factor : float
        As in `default`. The base must not be 1.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023. https://arxiv.org/abs/2309.00071

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.yarn(8, 4.0, 2048).frequencies.values.round(5)
    array([1.00e+00, 1.00e-01, 6.25e-03, 2.50e-04])
    >>> posenc.rope.yarn(64, 40.0, 4096, mscale=0.707, mscale_all_dim=0.707).amplitude
    1.0
    """
    factor, original = _moderate("factor", factor), _original(original_max_position_embeddings)
    fast, slow = _moderate("beta_fast", beta_fast), _moderate("beta_slow", beta_slow)
    is_truncated = _check.flag("truncate", truncate)
    mscale = None if mscale is None else _check.real("mscale", mscale)
    mscale_all_dim = None if mscale_all_dim is None else _check.real("mscale_all_dim", mscale_all_dim)
    width, base = _width(dim, partial_rotary_factor), _check.positive("base", base)
    if base == 1.0:
        raise ValueError("base is 1.0; it must not be 1 here: all waves would turn as often")

    def place(turns: float) -> float:
        return width * _log(original / (turns * 2.0 * math.pi)) / (2.0 * _log(base))

    def stretched(w: Doubles) -> Doubles:
        low, high = place(fast), place(slow)
        if is_truncated:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001
        ramp = np.clip((np.arange(len(w)) - low) / (high - low), 0.0, 1.0)
        changed: Doubles = w / factor * ramp + w * (1.0 - ramp)
        return changed

    with core.DefaultArithmetic():
        if attention_factor is not None:
            amplitude = _not_0("attention_factor", _check.real("attention_factor", attention_factor))
        elif mscale and mscale_all_dim:
            below = _not_0("amplitude that mscale_all_dim makes", _mscale(factor, "mscale_all_dim", mscale_all_dim))
            amplitude = _not_0("amplitude", _mscale(factor, "mscale", mscale) / below)
        else:
            amplitude = _mscale(factor, "mscale", 1.0)
    return _schedule("yarn", width, base, stretched, amplitude)


def longrope(
    dim: int,
    short_factor: ArrayLike,
    long_factor: ArrayLike,
    original_max_position_embeddings: int,
    *,
    length: int | None = None,
    factor: float | None = None,
    attention_factor: float | None = None,
    base: float = 10000.0,
    partial_rotary_factor: float = 1.0,
) -> Schedule:
    """LongRoPE: each wave with a factor of its own, w_k / factor_k, from the list for short texts or that for long ones.

    Parameters
    ----------
    dim : int
        Width of a head.
    short_factor, long_factor : array_like of float
        One factor for each frequency; positive.
    original_max_position_embeddings : int
        The length that the model was trained for.
    length : int, optional
        That of this text: above the original one, ``long_factor`` is taken, else, and by default, ``short_factor``.
    factor : float, optional
        How much longer texts become: the amplitude is sqrt(1 + ln(factor) / ln(original)), or 1 if ``factor`` is at most 1.
    attention_factor : float, optional
        The amplitude itself. One of the two must be given.
    base, partial_rotary_factor : float
        As in `default`.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", 2024. https://arxiv.org/abs/2402.13753

    Examples
    --------
    >>> import posenc
    >>> lists = [1.0, 1.0, 1.5, 2.0], [1.0, 2.0, 20.0, 40.0]
    >>> posenc.rope.longrope(8, *lists, 4096, length=131072, factor=32.0).frequencies.values
    array([1.0e+00, 5.0e-02, 5.0e-04, 2.5e-05])
    """
    original = _original(original_max_position_embeddings)
    width = _width(dim, partial_rotary_factor)
    lists = _factors("short_factor", short_factor, width), _factors("long_factor", long_factor, width)
    factors = lists[length is not None and _length("length", length) > original]
    with core.DefaultArithmetic():
        if attention_factor is not None:
            amplitude = _not_0("attention_factor", _check.real("attention_factor", attention_factor))
        elif factor is None:
            raise TypeError("factor and attention_factor are both None; give one of them, for the amplitude")
        elif (factor := _moderate("factor", factor)) <= 1.0:
            amplitude = 1.0
        elif original == 1:
            raise ValueError("original_max_position_embeddings is 1; it must be above 1, or attention_factor be given")
        else:
            amplitude = math.sqrt(1.0 + _log(factor) / _log(original))
    return _schedule("longrope", width, base, lambda w: w / factors, amplitude)


def llama3(
    dim: int,
    factor: float,
    original_max_position_embeddings: int,
    *,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    base: float = 10000.0,
    partial_rotary_factor: float = 1.0,
) -> Schedule:
    """LLaMA 3.1: waves longer than L / low are divided by ``factor``, those shorter than L / high are not, between in part.

    (1 - smooth) * w / factor + smooth * w, smooth = (L / wavelength - low) / (high - low).

    Parameters
    ----------
    dim : int
        Width of a head.
    factor : float
        How much longer texts become; positive.
    original_max_position_embeddings : int
        L, the length that the model was trained for.
    low_freq_factor, high_freq_factor : float, default 1.0 and 4.0
        Turns in that length; positive and not the same.
    base, partial_rotary_factor : float
        As in `default`. LLaMA 3 has base 500000.0.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Grattafiori et al., "The Llama 3 Herd of Models", 2024. https://arxiv.org/abs/2407.21783; the formula is in Meta's code.

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.llama3(8, 8.0, 8192, base=500000.0).frequencies.values.round(7)
    array([1.0000e+00, 3.7606e-02, 5.2480e-04, 6.6000e-06])
    """
    factor, original = _moderate("factor", factor), _original(original_max_position_embeddings)
    low, high = _moderate("low_freq_factor", low_freq_factor), _moderate("high_freq_factor", high_freq_factor)
    if low == high:
        raise ValueError(f"low_freq_factor and high_freq_factor are both {low}; they must not be the same")

    def stretched(w: Doubles) -> Doubles:
        wavelengths = 2.0 * math.pi / w
        smooth = (original / wavelengths - low) / (high - low)
        between = (1.0 - smooth) * w / factor + smooth * w
        changed: Doubles = np.where(wavelengths < original / high, w, between)
        return np.where(wavelengths > original / low, w / factor, changed)

    return _schedule("llama3", _width(dim, partial_rotary_factor), base, stretched)


def proportional(dim: int, *, factor: float = 1.0, base: float = 10000.0, partial_rotary_factor: float = 1.0) -> Schedule:
    """A part of a head rotated by the frequencies of the whole, the rest by none: base**(-2 k / dim) / factor, then zeros.

    Parameters
    ----------
    dim : int
        Width of a head, even.
    factor : float, default 1.0
        What frequencies are divided by; positive.
    base : float, default 10000.0
        As in `default`.
    partial_rotary_factor : float, default 1.0
        The first ``partial_rotary_factor * dim // 2`` frequencies are kept.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    References
    ----------
    Hugging Face's transformers has it for Gemma 4.

    Examples
    --------
    >>> import posenc
    >>> posenc.rope.proportional(8, partial_rotary_factor=0.5).frequencies.values
    array([1. , 0.1, 0. , 0. ])
    """
    factor = _moderate("factor", factor)
    part, width = _part(partial_rotary_factor), _width(dim, 1.0)
    if width % 2:
        raise ValueError(f"dim is {width}; it must be even")

    def cut(w: Doubles) -> Doubles:
        return w / factor * (np.arange(len(w)) < part * width // 2)

    return _schedule("proportional", width, base, cut)


# ---- arithmetic and arguments ----------------------------------------------------------------------------------------


def _schedule(
    name: str, width: int, base: float, change: Callable[[Doubles], Doubles] | None = None, amplitude: float = 1.0
) -> Schedule:
    """Of the changed frequencies, in float64."""
    values = paper(width, base).values
    if change is not None:
        with core.DefaultArithmetic(), np.errstate(all="ignore"):
            values = change(values)
    try:
        return Schedule(given(values), amplitude)
    except ValueError as error:
        raise ValueError(f"rope.{name}: a frequency is out of range: {error}") from None


def _stretched(width: int, base: float, stretch: float) -> float:
    """Base * stretch**(width / (width - 2))."""
    base = _check.positive("base", base)
    if width <= 2:
        raise ValueError(f"dim is {width}, as far as it is rotated; it must be above 2 here, the exponent is dim / (dim - 2)")
    with core.DefaultArithmetic():
        power = _exact.nearest(_exact.power(_exact.ratio_of(stretch), width, width - 2, _BITS), _BITS)
        stretched = base * power
    if not 0.0 < stretched < math.inf:
        raise ValueError(f"base is {base!r}, and would become {stretched}; it must be a positive float64 when stretched, too")
    return stretched


def _log(x: float) -> float:
    """Ln x for x > 0, the nearest float64."""
    return _exact.nearest(_exact.log(_exact.ratio_of(x), _BITS), _BITS)


def _mscale(factor: float, name: str, mscale: float) -> float:
    mscale = _check.real(name, mscale)
    return 1.0 if factor <= 1.0 else 0.1 * mscale * _log(factor) + 1.0


def _width(dim: int, partial_rotary_factor: float) -> int:
    """How much of a head is rotated."""
    dim = _check.integer("dim", dim, least=1)
    part = _part(partial_rotary_factor)
    with core.DefaultArithmetic():
        width = int(dim * part)
    if width < 1:
        raise ValueError(f"partial_rotary_factor is {part} and dim {dim}; together they must leave something to rotate")
    return width


def _part(partial_rotary_factor: float) -> float:
    part = _check.real("partial_rotary_factor", partial_rotary_factor)
    if not 0.0 < part <= 1.0:
        raise ValueError(f"partial_rotary_factor is {part}; it must be above 0 and at most 1")
    return part


def _moderate(name: str, value: float) -> float:
    """A float that no formula here takes out of range."""
    value = _check.real(name, value)
    if not 2.0**-100 <= value <= 2.0**100:
        raise ValueError(f"{name} is {value!r}; it must be positive, and between 2**-100 and 2**100")
    return value


def _not_0(name: str, value: float) -> float:
    if value == 0.0:
        raise ValueError(f"{name} is 0.0; it must not be 0")
    return value


def _length(name: str, value: int) -> int:
    return _check.integer(name, value, least=1, most=2**53)


def _original(value: int) -> int:
    return _length("original_max_position_embeddings", value)


def _factors(name: str, factors: ArrayLike, width: int) -> Doubles:
    values = exact_doubles(name, factors)
    n = -(-width // 2)
    if len(values) != n or not (values > 0.0).all():
        raise ValueError(f"{name} has {len(values)} numbers, from {values.min(initial=0.0)}; it must have {n}, all positive")
    return values

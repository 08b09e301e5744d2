"""Encodings that a table may hold, each with all the conventions that have its values."""

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from posenc._encoding import Encoding
from posenc.conventions import CONVENTIONS, convention

Named = tuple[str, dict[str, Any]]  # a convention and its extras

_BASED = {  # what they call a base, the commonest first
    "transformer": "base",
    "marian": "base",
    "whisper": "base",
    "tensor2tensor": "max_timescale",
    "ddpm": "base",
    "fairseq": "base",
    "opennmt-tf": "base",
    "musicgen": "base",
    "diffusion": "max_period",
    "diffusers": "max_period",
    "multidim": "base",
    "rope": "base",
    "rope_halves": "base",
}
_DIFFUSERS: list[dict[str, Any]] = [
    {},
    {"flip_sin_to_cos": True},
    {"downscale_freq_shift": 0},
    {"flip_sin_to_cos": True, "downscale_freq_shift": 0},
]
_OTHERS: list[Named] = [
    ("octaves", {}),
    ("octaves", {"pi": True}),
    ("mlx", {}),
    ("mlx", {"cos_first": True}),
    ("mlx", {"full_turns": True}),
    ("mlx", {"cos_first": True, "full_turns": True}),
    ("depthcharge", {}),
]
_CHOSEN_DIGITS = 3  # of a number that somebody chose; more of them may be chance
_DIGITS = 8  # at most
_FASTEST = 40.0  # log2 of a frequency that phases may say something of
_ALL_DIGITS = 17  # of a double


class Candidate(NamedTuple):
    """An encoding, and the conventions and extras that make it."""

    encoding: Encoding
    named: tuple[Named, ...]
    is_fitted: bool = False  # its numbers are estimates
    is_doubtful: bool = False  # they are rounder than that, and may still be estimates


def by_default(dim: int, base: float | None, only: str | None) -> list[Candidate]:
    """All conventions of this width with their defaults, or this base."""
    wanted = [*_with_base(10000.0 if base is None else base), *([] if base is not None else _OTHERS)]
    return list(_grouped(dim, (one for one in wanted if only in (None, one[0]))))


def by_progression(dim: int, first: float, ratio: float, only: str | None) -> Iterator[list[Candidate]]:
    """Those whose frequencies are first * ratio**k: by the estimates as they are, then ever less round numbers.

    ``first`` may be a step of some positions.
    """
    n, fall = dim // 2, -math.log(ratio)
    spans = sorted({n - 1.0, float(n), dim / 2.0, (dim + dim % 2) / 2.0})
    bases = [math.exp(fall * span) for span in spans if 0.0 < fall * span < 100.0]
    starts_at_1 = abs(first - round(first)) < 1e-2 * max(1.0, first) and round(first) > 0

    def candidates(digits: int) -> list[Candidate]:
        rounded = list(dict.fromkeys(_rounded(base, digits) for base in bases)) if starts_at_1 else []
        wanted = [one for base in rounded for one in _with_base(base)]
        wanted += [*_shifted(n, fall, digits), *([] if starts_at_1 else _scaled(n, first, fall, digits))]
        return list(_grouped(dim, (one for one in wanted if only in (None, one[0]))))

    estimates = candidates(_ALL_DIGITS)
    yield [one._replace(is_fitted=True) for one in estimates]
    for digits in range(1, _DIGITS + 1):
        yield [one._replace(is_doubtful=digits > _CHOSEN_DIGITS) for one in candidates(digits)]


def _with_base(base: float) -> list[Named]:
    given = {} if base == 10000.0 else {"base": base}
    made: list[Named] = []
    for name, called in _BASED.items():
        extras = {called: base} if given else {}
        made += [(name, extras | more) for more in (_DIFFUSERS if name == "diffusers" else [{}])]
    return made


def _shifted(n: int, fall: float, digits: int) -> list[Named]:
    """Of diffusers with another shift of the usual base."""
    shift = n - math.log(10000.0) / fall if fall > 0.0 else 0.0
    shift = round(shift * 4.0) / 4.0
    if digits not in (1, _ALL_DIGITS) or not -8.0 <= shift < n:
        return []
    return [("diffusers", {"downscale_freq_shift": shift, **flip}) for flip in _DIFFUSERS[:2]]


def _scaled(n: int, first: float, fall: float, digits: int) -> list[Named]:
    """Those that have a first frequency of their own."""
    if n < 2 or not 1e-12 < first < 1e12 or not 0.0 < fall * n < 100.0:
        return []
    last = first * math.exp(-fall * (n - 1))
    scale, low, high = (_rounded(value, digits) for value in (first, 1.0 / first, 1.0 / last))
    made: list[Named] = [("tensor2tensor", {"min_timescale": low, "max_timescale": high})]
    for more in _DIFFUSERS:
        period = math.exp(fall * (n - more.get("downscale_freq_shift", 1)))
        period = _rounded(period, digits)
        made.append(("diffusers", {"scale": scale, **({} if period == 10000.0 else {"max_period": period}), **more}))
    turns = 2.0 * math.pi
    shortest, longest = _rounded(turns / first, digits), _rounded(turns / last, digits)
    made.append(("depthcharge", {"min_wavelength": shortest, "max_wavelength": longest}))
    return made


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _grouped(dim: int, wanted: Iterable[Named]) -> Iterator[Candidate]:
    """Encodings of that width, each once."""
    groups: dict[Hashable, tuple[Encoding, list[Named]]] = {}
    for name, extras in wanted:
        if dim % 2 and CONVENTIONS[name].odd == "error":
            continue
        try:
            encoding = convention(name, dim, **extras)
        except ValueError:  # frequencies out of the domain
            continue
        if not len(encoding.frequencies) or encoding._rows.frequencies.log2_largest > _FASTEST:
            continue
        encoding = encoding.replace(first=0)
        named = groups.setdefault(_values_key(encoding), (encoding, []))[1]
        if name not in (one[0] for one in named):
            named.append((name, extras))
    for encoding, named in groups.values():
        yield Candidate(encoding, tuple(named))


def _values_key(encoding: Encoding) -> Hashable:
    """Equal for encodings of the same values."""
    frequencies = encoding._rows.frequencies
    which = frequencies.key if len(frequencies) > 1 else encoding.frequencies.tobytes()
    layout = encoding.dim > 2 and encoding.layout  # the same in width 2
    return which, layout, encoding.cos_first, encoding.dim % 2 and encoding.odd, encoding.amplitude

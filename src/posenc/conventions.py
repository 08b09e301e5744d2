"""The conventions in use, by name: a table of data. `convention` makes an `Encoding` of an entry and its extras.

The row of position 1 at width 4, of each with its defaults:

>>> import posenc
>>> for name in posenc.CONVENTIONS:
...     print(f"{name:13}", *(f"{value:8.5f}" for value in posenc.convention(name, 4).encode(1, dtype="float64")))
transformer    0.84147  0.54030  0.01000  0.99995
marian         0.84147  0.01000  0.54030  0.99995
tensor2tensor  0.84147  0.00010  0.54030  1.00000
ddpm           0.84147  0.00010  0.54030  1.00000
fairseq        0.84147  0.00010  0.54030  1.00000
opennmt-tf     0.84147  0.00010  0.54030  1.00000
whisper        0.84147  0.00010  0.54030  1.00000
musicgen       0.54030  1.00000  0.84147  0.00010
diffusion      0.54030  0.99995  0.84147  0.01000
diffusers      0.84147  0.00010  0.54030  1.00000
mlx            0.59501  0.00007  0.38205  0.70711
multidim       0.84147  0.54030  0.01000  0.99995
depthcharge   -0.00000  0.00063  1.00000  1.00000
rope           0.54030  0.84147  0.99995  0.01000
rope_halves    0.54030  0.99995  0.84147  0.01000
octaves        0.84147  0.54030  0.90930 -0.41615
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from posenc import _check
from posenc._encoding import Encoding
from posenc.frequencies import Frequencies, geometric, octaves, paper, shifted, timescales

__all__ = ["CONVENTIONS", "Convention", "convention"]

Extras = Mapping[str, Any]


class Convention(NamedTuple):
    """What a name stands for.

    Parameters
    ----------
    frequencies : callable
        Makes them of the width and the extras.
    source : str
        The formula.
    users : str
        Who uses it.
    layout, cos_first, odd, first, amplitude
        As in `Encoding`; ``cos_first``, ``first`` and ``amplitude`` may be functions of the width and the extras.
    extras : mapping
        Keywords of `convention`, and their defaults.
    note : str
        What else to know.
    """

    frequencies: Callable[[int, Extras], Frequencies]
    source: str
    users: str
    layout: str = "interleaved"
    cos_first: bool | Callable[[int, Extras], bool] = False
    odd: str = "truncate"
    first: int | Callable[[int, Extras], int] = 0
    amplitude: float | Callable[[int, Extras], float] = 1.0
    extras: Extras = MappingProxyType({"base": 10000.0})
    note: str = ""

    def __repr__(self) -> str:
        of_extras = {name: value for name in ("cos_first", "first", "amplitude") if not callable(value := getattr(self, name))}
        settings = {"layout": self.layout, "odd": self.odd, **of_extras, "extras": dict(self.extras)}
        said = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return f"Convention({self.source}; {said}; used by {self.users}{'; ' if self.note else ''}{self.note})"


def _even_paper(dim: int, extras: Extras) -> Frequencies:
    return paper(dim + dim % 2, extras["base"])


def positives(extras: Extras, *names: str) -> list[float]:
    """Extras of these names, each a number above 0."""
    return [_check.positive(name, extras[name]) for name in names]


def _tensor2tensor(dim: int, extras: Extras) -> Frequencies:
    return timescales(dim // 2, *positives(extras, "min_timescale", "max_timescale"))


def _diffusion(dim: int, extras: Extras) -> Frequencies:
    return shifted(dim, 0, *positives(extras, "max_period"))


def _diffusers(dim: int, extras: Extras) -> Frequencies:
    shift, scale = (_check.real(name, extras[name]) for name in ("downscale_freq_shift", "scale"))
    if scale == 0.0:
        raise ValueError("scale is 0.0; it must not be 0")
    return shifted(dim, shift, *positives(extras, "max_period")).scaled(scale)


def _mlx(dim: int, extras: Extras) -> Frequencies:
    frequencies = geometric(dim // 2, *positives(extras, "max_freq", "min_freq"))
    return frequencies.scaled(2.0, pi=True) if _check.flag("full_turns", extras["full_turns"]) else frequencies


def _depthcharge(dim: int, extras: Extras) -> Frequencies:
    return timescales(dim // 2, *positives(extras, "min_wavelength", "max_wavelength")).scaled(2.0, pi=True)


def _root(dim: int) -> float:
    """sqrt(2 / dim), the nearest float64."""
    return math.isqrt((2 << 400) // dim) / (1 << 200)


#: Name of a convention: what it stands for.
CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        "transformer": Convention(
            lambda dim, e: paper(dim, e["base"]),
            "base**(-2k/d), s0 c0 s1 c1 ...",
            'the paper "Attention Is All You Need", the PyTorch tutorial, the Annotated Transformer, OpenNMT-py, ESPnet, NeMo, '
            "SpeechBrain, keras_hub, XLM, the original Informer, burn",
            note="OpenNMT-py and ESPnet multiply x by sqrt(d) before adding: add(x, scale=d**0.5)",
        ),
        "marian": Convention(
            lambda dim, e: paper(dim, e["base"]),
            "base**(-2k/d), [s .. | c ..], one sine more in odd widths",
            "the Marian family, CTRL and Informer in Hugging Face transformers, the TensorFlow tutorial, Sockeye, GPT-J",
            layout="concatenated",
        ),
        "tensor2tensor": Convention(
            _tensor2tensor,
            "(1/min) (min/max)**(k/(n-1)), [s .. | c .. | 0]",
            "tensor2tensor, flax, TensorFlow models, AllenNLP",
            layout="concatenated",
            odd="zero",
            extras={"min_timescale": 1.0, "max_timescale": 10000.0},
            note="the original multiplies by min_timescale where it should divide, and is right only when that is 1",
        ),
        "ddpm": Convention(
            lambda dim, e: shifted(dim, 1, e["base"]),
            "base**(-k/(n-1)), [s .. | c .. | 0]",
            "the original DDPM, for its timesteps",
            layout="concatenated",
            odd="zero",
        ),
        "fairseq": Convention(
            lambda dim, e: shifted(dim, 1, e["base"]),
            "base**(-k/(n-1)), [s .. | c .. | 0], positions from padding_idx + 1",
            "fairseq, M2M100, FSMT, Speech2Text",
            layout="concatenated",
            odd="zero",
            first=lambda dim, e: _check.integer("padding_idx", e["padding_idx"]) + 1,
            extras={"base": 10000.0, "padding_idx": 1},
            note="positions_from_ids counts as they do; their row of zeros for padding is where=ids != padding_idx",
        ),
        "opennmt-tf": Convention(
            lambda dim, e: shifted(dim, 1, e["base"]),
            "base**(-k/(n-1)), [s .. | c ..], positions from 1",
            "OpenNMT-tf, CTranslate2",
            layout="concatenated",
            odd="error",
            first=1,
        ),
        "whisper": Convention(
            lambda dim, e: shifted(dim, 1, e["base"]),
            "base**(-k/(n-1)), [s .. | c ..]",
            "Whisper",
            layout="concatenated",
            odd="error",
        ),
        "musicgen": Convention(
            lambda dim, e: shifted(dim, 1, e["base"]),
            "base**(-k/(n-1)), [c .. | s .. | 0]",
            "MusicGen",
            layout="concatenated",
            cos_first=True,
            odd="zero",
        ),
        "diffusion": Convention(
            _diffusion,
            "max_period**(-k/n), [c .. | s .. | 0]",
            "guided-diffusion, GLIDE, DiT, Stable Diffusion, for their timesteps",
            layout="concatenated",
            cos_first=True,
            odd="zero",
            extras={"max_period": 10000.0},
        ),
        "diffusers": Convention(
            _diffusers,
            "scale * max_period**(-k/(n-downscale_freq_shift)), [s .. | c .. | 0], or cosines first",
            "get_timestep_embedding of Hugging Face diffusers",
            layout="concatenated",
            cos_first=lambda dim, e: _check.flag("flip_sin_to_cos", e["flip_sin_to_cos"]),
            odd="zero",
            extras={"flip_sin_to_cos": False, "downscale_freq_shift": 1, "scale": 1.0, "max_period": 10000.0},
        ),
        "mlx": Convention(
            _mlx,
            "max_freq (min_freq/max_freq)**(k/(n-1)), [s .. | c ..] * sqrt(2/d), the nearest float64",
            "SinusoidalPositionalEncoding of MLX",
            layout="concatenated",
            cos_first=lambda dim, e: _check.flag("cos_first", e["cos_first"]),
            odd="error",
            amplitude=lambda dim, e: _root(dim) if e["scale"] is None else _check.real("scale", e["scale"]),
            extras={"min_freq": 0.0001, "max_freq": 1.0, "scale": None, "cos_first": False, "full_turns": False},
        ),
        "multidim": Convention(
            _even_paper,
            "base**(-2k/d'), d' = d rounded up to even, s0 c0 s1 c1 ... cut to d",
            "positional-encodings on PyPI",
        ),
        "depthcharge": Convention(
            _depthcharge,
            "(2 pi/min_wavelength) (min_wavelength/max_wavelength)**(k/(n-1)), [s .. | c ..]",
            "depthcharge",
            layout="concatenated",
            odd="error",
            extras={"min_wavelength": 0.001, "max_wavelength": 10000.0},
            note="in odd widths the original gives a sine and its cosine different frequencies",
        ),
        "rope": Convention(
            lambda dim, e: paper(dim, e["base"]),
            "base**(-2k/d), pairs (2i, 2i+1) of c, s: for rotate",
            "LLaMA as Meta has it, GPT-J",
            cos_first=True,
            odd="error",
        ),
        "rope_halves": Convention(
            lambda dim, e: paper(dim, e["base"]),
            "base**(-2k/d), pairs (i, i+n) of c, s: for rotate",
            "LLaMA as Hugging Face has it, GPT-NeoX",
            layout="concatenated",
            cos_first=True,
            odd="error",
        ),
        "octaves": Convention(
            lambda dim, e: octaves(_check.integer("dim", dim, most=2000) // 2, e["pi"]),
            "2**k, or 2**k pi, s0 c0 s1 c1 ...",
            "NeRF, PyTorch3D, tiny-cuda-nn",
            odd="error",
            extras={"pi": False},
            note="the NeRF paper has pi, its code has not",
        ),
    }
)


def with_defaults(name: str, known: Extras, given: Extras) -> dict[str, Any]:
    """The extras of a convention: those given, and the defaults of the others."""
    for extra in given:
        if extra not in known:
            raise TypeError(f"{extra} is no extra of {name!r}; it has {', '.join(known)}")
    return {**known, **given}


def convention(name: str, dim: int, **extras: Any) -> Encoding:
    """The encoding that a project uses, by name.

    Parameters
    ----------
    name : str
        One of `posenc.CONVENTIONS`, each of which says its formula, defaults and users.
    dim : int
        Width of a row, at least 1; some conventions have even widths only.
    **extras
        What the convention leaves open: ``base`` for most; ``padding_idx`` for fairseq; ``min_timescale`` and ``max_timescale``
        for tensor2tensor; ``max_period`` for diffusion; diffusers' own ``flip_sin_to_cos``, ``downscale_freq_shift``,
        ``scale`` and ``max_period``; MLX's own ``min_freq``, ``max_freq``, ``scale``, ``cos_first`` and ``full_turns``;
        ``min_wavelength`` and ``max_wavelength`` for depthcharge; ``pi`` for octaves.

    Returns
    -------
    Encoding

    Raises
    ------
    TypeError
        If an extra is not one of the convention, or an argument is of the wrong type.
    ValueError
        If there is no such convention, it has no such width, or an extra has a wrong value.

    Examples
    --------
    >>> import posenc
    >>> posenc.convention("whisper", 4).table(2)
    array([[0.0000000e+00, 0.0000000e+00, 1.0000000e+00, 1.0000000e+00],
           [8.4147096e-01, 9.9999997e-05, 5.4030228e-01, 1.0000000e+00]],
          dtype=float32)
    >>> posenc.convention("fairseq", 4, padding_idx=1).first
    2
    """
    entry = CONVENTIONS[_check.choice("name", name, tuple(CONVENTIONS))]
    dim = _check.integer("dim", dim, least=1, most=1 << 40)
    chosen = with_defaults(name, entry.extras, extras)
    if entry.odd == "error" and dim % 2:
        raise ValueError(f"dim is {dim}; for {name!r} it must be even")
    return Encoding(
        dim,
        frequencies=entry.frequencies(dim, chosen),
        layout=entry.layout,  # type: ignore[arg-type]
        cos_first=entry.cos_first(dim, chosen) if callable(entry.cos_first) else entry.cos_first,
        odd=entry.odd,  # type: ignore[arg-type]
        amplitude=entry.amplitude(dim, chosen) if callable(entry.amplitude) else entry.amplitude,
        first=entry.first(dim, chosen) if callable(entry.first) else entry.first,
    )

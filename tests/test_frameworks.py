"""Conventions against the functions of the packages that use them, within what these functions lose themselves.

All comparisons are with float64 encodings, so that only the other side rounds.

- ROUNDED: the function computes in float64 and rounds once to float32, which moves an entry of at most 1 by 2**-25.
- ``bound(angle)``: it computes in float32. w = exp(-x) has x in error by 2**-23 * x and the result by 2**-23 * w, the product
  p * w by one rounding more: with x * exp(-x) < 0.37, less than 2 * 2**-23 of the largest angle p * w in the row, and sin and
  cos add about an ulp. So (1 + angle) * 2**-22: 2.4e-5 at position 99, where another convention would be off by far more
  (`test_another_convention_would_show`).
"""

import itertools
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import posenc

LENGTH = 100
EVEN = [4, 6, 16, 64, 128]
ANY = [*EVEN, 5, 7, 33, 127]
HEADS = 3
ROUNDED = 1.001 * 2**-25


def bound(angle, unit=2**-22):
    return (1.0 + np.abs(angle)) * unit


# ---- the packages ----------------------------------------------------------------------------------------------------


def real(module, what):
    """A package's module. The skip says what is not compared; what the package warns of while imported is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = f"{module} cannot be imported: not compared with it: {what}"
        return pytest.importorskip(module, reason=reason, exc_type=ImportError)


@cache
def alone(module, what, *more):
    """The same for a module that needs little of its package, whose __init__ (and those of ``more``) would import a lot."""
    top, *_ = parts = module.split(".")
    spec = find_spec(top)
    if spec is None or top in sys.modules:
        return real(module, what)
    for name in [*(".".join(parts[:i]) for i in range(1, len(parts))), *more]:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(Path(spec.submodule_search_locations[0], *name.split(".")[1:]))]
    try:
        return real(module, what)
    finally:
        for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
            del sys.modules[name]


def hf(model):
    return f"transformers.models.{model}.modeling_{model}"


def quietly(function, *arguments, **keywords):
    """What a package's function returns; what it warns of is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **keywords)


def called(function, *arguments, **keywords):
    """The same as an array, or several as a tuple of arrays."""
    result = quietly(function, *arguments, **keywords)
    return (
        tuple(quietly(np.asarray, part) for part in result)
        if isinstance(result, (tuple, list))
        else quietly(np.asarray, result)
    )


def close(theirs, ours, allowed):
    """Nowhere further apart than allowed; the worst place is shown."""
    assert theirs.shape == ours.shape
    apart = np.abs(theirs - ours)
    excess = apart - allowed
    if not (excess <= 0.0).all():  # NaN too
        worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
        pytest.fail(f"at {tuple(map(int, worst))} theirs {theirs[worst]!r}, ours {ours[worst]!r}, apart {apart[worst]:.3g}")


def rows(name, dim, positions, **extras):
    """Our float64 encodings of these positions, and the largest angle in each row."""
    encoding = posenc.convention(name, dim, **extras)
    largest = np.abs(encoding.frequencies).max()
    return encoding.encode(positions, dtype="float64"), np.asarray(positions, np.float64)[..., None] * largest


# ---- tables of positions 0, 1, 2, ... --------------------------------------------------------------------------------

# convention, module, the table of n rows of width d that it makes, widths that it takes
FLOAT64_TABLES = [
    ("transformer", hf("xlm"), lambda m, n, d: m.create_sinusoidal_embeddings(n, d, m.torch.empty(n, d)), ANY),
    ("transformer", hf("flaubert"), lambda m, n, d: m.create_sinusoidal_embeddings(n, d, m.torch.empty(n, d)), ANY),
    ("transformer", hf("distilbert"), lambda m, n, d: m._create_sinusoidal_embeddings(n, d, m.torch.empty(n, d)), ANY),
    ("transformer", hf("videomae"), lambda m, n, d: m.get_sinusoid_encoding_table(n, d)[0], ANY),
    ("marian", hf("marian"), lambda m, n, d: m.MarianSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
    ("marian", hf("pegasus"), lambda m, n, d: m.PegasusSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
    ("marian", hf("roformer"), lambda m, n, d: m.RoFormerSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
    ("marian", hf("informer"), lambda m, n, d: m.InformerSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
]
FLOAT32_TABLES = [
    ("transformer", hf("speecht5"), lambda m, n, d: m.SpeechT5ScaledPositionalEncoding(0.0, d, n).pe[0], EVEN),
    ("transformer", "diffusers.models.embeddings", lambda m, n, d: m.SinusoidalPositionalEmbedding(d, n).pe[0], EVEN),
    ("marian", hf("ctrl"), lambda m, n, d: m.positional_encoding(n, d, m.torch.float32), ANY),
    ("marian", hf("gptj"), lambda m, n, d: m.create_sinusoidal_positions(n, d), EVEN),
    ("marian", hf("codegen"), lambda m, n, d: m.create_sinusoidal_positions(n, d), EVEN),
    ("marian", hf("videoprism"), lambda m, n, d: m.create_sinusoidal_positions(n, d), EVEN),
    ("whisper", hf("whisper"), lambda m, n, d: m.sinusoids(n, d), EVEN),
    ("whisper", hf("qwen2_5_omni"), lambda m, n, d: m.SinusoidsPositionEmbedding(n, d)(n), EVEN),
    (
        "tensor2tensor",
        hf("pegasus_x"),
        lambda m, n, d: m.PegasusXSinusoidalPositionalEmbedding(d)(m.torch.empty(1, n, d))[0],
        EVEN,
    ),
    ("fairseq", hf("m2m_100"), lambda m, n, d: m.M2M100SinusoidalPositionalEmbedding.get_embedding(n, d), ANY),
    ("musicgen", hf("musicgen"), lambda m, n, d: m.MusicgenSinusoidalPositionalEmbedding.get_embedding(n, d), ANY),
    ("musicgen", hf("musicgen_melody"), lambda m, n, d: m.MusicgenMelodySinusoidalPositionalEmbedding.get_embedding(n, d), ANY),
    (
        "multidim",
        "positional_encodings.torch_encodings",
        lambda m, n, d: m.PositionalEncoding1D(d)(m.torch.zeros(1, n, d))[0],
        ANY,
    ),
]


def label(value):
    return value.split(".")[-1].removeprefix("modeling_") if isinstance(value, str) else ""


@pytest.mark.parametrize(("name", "module", "table", "widths"), FLOAT64_TABLES, ids=label)
def test_float64_tables(name, module, table, widths):
    package = real(module, f"tables of {name!r}")
    for dim in widths:
        ours, _ = rows(name, dim, range(LENGTH))
        close(called(table, package, LENGTH, dim), ours, ROUNDED)


@pytest.mark.parametrize(("name", "module", "table", "widths"), FLOAT32_TABLES, ids=label)
def test_float32_tables(name, module, table, widths):
    package = real(module, f"tables of {name!r}")
    for dim in widths:
        ours, angle = rows(name, dim, range(LENGTH))
        close(called(table, package, LENGTH, dim), ours, bound(angle))


@pytest.mark.parametrize("dim", [6, 32])
@pytest.mark.parametrize("longest", [100.0, 10000.0, 1e6])
def test_longest_timescale(dim, longest):
    whisper = real(hf("whisper"), "'tensor2tensor' with max_timescale")
    ours, angle = rows("tensor2tensor", dim, range(LENGTH), max_timescale=longest)
    close(called(whisper.sinusoids, LENGTH, dim, longest), ours, bound(angle))


@pytest.mark.parametrize("width", [4, 5, 6, 7, 9, 10, 32])
def test_multidim_takes_any_width_of_its_tensor(width):
    """Made for d channels, it cuts its rows, of d rounded up to even, to the width of what they are added to."""
    package = real("positional_encodings.torch_encodings", "'multidim' of odd and even widths")
    even = width + width % 2
    ours, angle = rows("multidim", width, range(LENGTH))
    theirs = called(package.PositionalEncoding1D(even), package.torch.zeros(2, LENGTH, width))
    close(theirs, np.stack([ours, ours]), bound(angle))


# ---- relative and fractional positions -------------------------------------------------------------------------------

# convention, module, what it makes for a sequence of n, the positions that these are
RELATIVE = [
    (
        "transformer",
        hf("wav2vec2_conformer"),
        lambda m, n, d: m.Wav2Vec2ConformerRelPositionalEmbedding(SimpleNamespace(max_source_positions=2 * n, hidden_size=d))(
            m.torch.empty(1, n, d)
        )[0],
        lambda n: range(n - 1, -n, -1),
    ),
    (
        "transformer",
        hf("parakeet"),
        lambda m, n, d: m.ParakeetEncoderRelPositionalEncoding(SimpleNamespace(max_position_embeddings=n, hidden_size=d))(
            m.torch.empty(1, n, d)
        )[0],
        lambda n: range(n - 1, -n, -1),
    ),
    (
        "marian",
        hf("xlnet"),
        lambda m, n, d: m.XLNetModel(
            m.XLNetConfig(vocab_size=4, d_model=d, n_layer=1, n_head=2, d_inner=4)
        ).relative_positional_encoding(n, n)[:, 0],
        lambda n: range(n, -n, -1),
    ),
    (
        "tensor2tensor",
        hf("gemma4"),
        lambda m, n, d: m.Gemma4AudioRelPositionalEncoding(
            SimpleNamespace(hidden_size=d, attention_chunk_size=n, attention_context_left=n, attention_context_right=1)
        )(m.torch.empty(1)),
        lambda n: range(n, -1, -1),
    ),
]


@pytest.mark.parametrize(("name", "module", "table", "positions"), RELATIVE, ids=label)
@pytest.mark.parametrize("dim", [4, 6, 32])
def test_relative_positions(name, module, table, positions, dim):
    package = real(module, f"{name!r} at descending positions, some below 0")
    ours, angle = rows(name, dim, positions(50))
    theirs = called(table, package, 50, dim)
    close(theirs.reshape(ours.shape), ours, bound(angle))


# module, the embedding of timesteps t, convention and its extras
TIMESTEPS = [
    (hf("qwen2_5_omni"), lambda m, t, d: m.SinusPositionEmbedding(d)(t, scale=1), "ddpm", {}),
    (hf("qwen2_5_omni"), lambda m, t, d: m.SinusPositionEmbedding(d)(t, scale=20), "diffusers", {"scale": 20}),
    (
        "diffusers.models.transformers.transformer_longcat_audio_dit",
        lambda m, t, d: m.AudioDiTSinusPositionEmbedding(d)(t, scale=1.0),
        "ddpm",
        {},
    ),
    (
        "diffusers.models.transformers.transformer_z_image",
        lambda m, t, d: m.TimestepEmbedder.timestep_embedding(t, d),
        "diffusion",
        {},
    ),
    (
        "diffusers.models.transformers.transformer_z_image",
        lambda m, t, d: m.TimestepEmbedder.timestep_embedding(t, d, 100),
        "diffusion",
        {"max_period": 100},
    ),
    (
        hf("vibevoice"),
        lambda m, t, d: m.VibeVoiceDiffusionHeadSinusoidalEmbedding(
            SimpleNamespace(frequency_embedding_size=d, diffusion_max_period=1000)
        )(t),
        "diffusion",
        {"max_period": 1000},
    ),
    (
        hf("gemma3n"),
        lambda m, t, d: m.Gemma3nAudioRelativePositionEmbedding(
            SimpleNamespace(
                conf_num_attention_heads=1, hidden_size=d, conf_attention_context_left=1, conf_attention_context_right=0
            )
        )._get_timing_signal_1d_pos(t, m.torch.float32),
        "tensor2tensor",
        {},
    ),
    (
        hf("pi0"),
        lambda m, t, d: m.PI0TimestepEmbeddings(
            SimpleNamespace(dit_config=SimpleNamespace(hidden_size=d), min_period=0.5, max_period=40.0)
        )(t),
        "depthcharge",
        {"min_wavelength": 0.5, "max_wavelength": 40.0},
    ),
]
TIMES = np.array([0.0, 1.0, 0.5, 7.25, 99.0, 0.1, 1e-3, 33.3], np.float32)  # the last three are not what they look like


@pytest.mark.parametrize(("module", "embedding", "name", "extras"), TIMESTEPS, ids=label)
@pytest.mark.parametrize("dim", [4, 6, 32, 256])
def test_timesteps(module, embedding, name, extras, dim):
    package = real(module, f"{name!r} at fractional positions")
    ours, angle = rows(name, dim, TIMES, **extras)
    close(called(embedding, package, package.torch.from_numpy(TIMES), dim), ours, bound(angle))


@pytest.mark.parametrize("dim", [5, 7, 33])
def test_odd_timesteps(dim):
    package = real("diffusers.models.transformers.transformer_z_image", "'diffusion' of odd width")
    ours, angle = rows("diffusion", dim, TIMES)
    theirs = called(package.TimestepEmbedder.timestep_embedding, package.torch.from_numpy(TIMES), dim)
    close(theirs, ours, bound(angle))


@pytest.mark.parametrize("dim", [6, 7, 32, 33, 320])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"flip_sin_to_cos": True},
        {"downscale_freq_shift": 0},
        {"downscale_freq_shift": 0, "flip_sin_to_cos": True},
        {"downscale_freq_shift": 2},
        {"downscale_freq_shift": 0.5},
        {"scale": 10},
        {"scale": 0.125, "flip_sin_to_cos": True},
        {"max_period": 100},
        {"max_period": 1000000, "downscale_freq_shift": 0, "scale": 3, "flip_sin_to_cos": True},
    ],
    ids=lambda arguments: "-".join(arguments) or "defaults",
)
def test_diffusers(dim, arguments):
    package = real("diffusers.models.embeddings", "'diffusers' and its arguments, 'ddpm', 'diffusion'")
    ours, angle = rows("diffusers", dim, TIMES, **arguments)
    theirs = called(package.get_timestep_embedding, package.torch.from_numpy(TIMES), dim, **arguments)
    close(theirs, ours, bound(angle))
    if not arguments:
        close(theirs, rows("ddpm", dim, TIMES)[0], bound(angle))
    if arguments == {"downscale_freq_shift": 0, "flip_sin_to_cos": True}:
        close(theirs, rows("diffusion", dim, TIMES)[0], bound(angle))


# ---- fairseq: positions counted from ids -----------------------------------------------------------------------------

FAIRSEQ = [
    ("m2m_100", "M2M100SinusoidalPositionalEmbedding"),
    ("nllb_moe", "NllbMoeSinusoidalPositionalEmbedding"),
    ("xglm", "XGLMSinusoidalPositionalEmbedding"),
    ("seamless_m4t", "SeamlessM4TSinusoidalPositionalEmbedding"),
    ("kosmos2", "Kosmos2TextSinusoidalPositionalEmbedding"),
    ("speecht5", "SpeechT5SinusoidalPositionalEmbedding"),
    ("speech_to_text", "Speech2TextSinusoidalPositionalEmbedding"),
    ("trocr", "TrOCRSinusoidalPositionalEmbedding"),
    ("fsmt", "SinusoidalPositionalEmbedding"),
]


@pytest.mark.parametrize(("model", "embedding"), FAIRSEQ, ids=label)
@pytest.mark.parametrize("pad", [0, 1, 5])
def test_fairseq(model, embedding, pad):
    """Tables, the padding row, positions and whole embeddings of ids with padding right, left, between, everywhere."""
    package = real(hf(model), "'fairseq': tables, positions from ids, the zero padding row")
    made = getattr(package, embedding)
    a, b, c = (i for i in range(6, 9))
    ids = np.array([[a, b, pad, pad], [pad, pad, a, b], [a, pad, b, pad], [pad] * 4, [a, b, c, a]])
    for dim in [4, 6, 7, 33]:
        encoding = posenc.convention("fairseq", dim, padding_idx=pad)
        weights = called(made.get_embedding, LENGTH, dim, pad)
        ours = encoding.table(LENGTH - pad - 1, dtype="float64")
        close(weights[pad + 1 :], ours, bound(np.arange(pad + 1, LENGTH)[:, None]))
        assert not weights[pad].any()

        module = quietly(made, 20, dim, pad)
        if model == "fsmt":  # whose model fills the weights in
            module.make_weight(20, dim, pad)
            positions = called(module.make_positions, package.torch.from_numpy(ids), pad)
        else:
            positions = called(module.create_position_ids_from_input_ids, package.torch.from_numpy(ids), pad)
        counted = posenc.positions_from_ids(ids, pad)
        np.testing.assert_array_equal(counted, positions)
        theirs = called(module, package.torch.from_numpy(ids))
        ours = encoding.encode(counted, where=ids != pad, dtype="float64")
        close(theirs, ours, bound(counted[..., None]))


# ---- rotary ----------------------------------------------------------------------------------------------------------

EMBEDDINGS = "diffusers.models.embeddings"
TIMM = "timm.layers.pos_embed_sincos"


def llama(m, dim, base):
    rope = {"rope_type": "default", "rope_theta": base}
    config = m.LlamaConfig(hidden_size=3 * dim, num_attention_heads=3, head_dim=dim, rope_parameters=rope)
    return m.LlamaRotaryEmbedding(config)


def neox(m, dim, base, factor=1.0):
    rope = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": factor}
    return m.GPTNeoXRotaryEmbedding(m.GPTNeoXConfig(hidden_size=3 * dim, num_attention_heads=3, rope_parameters=rope))


def sin_cos(m, rotary, n):
    cos, sin = rotary(m.torch.empty(1), m.torch.arange(n)[None])
    return sin[0], cos[0]


def diffusers_pair(m, n, d, base, repeat):
    return m.get_1d_rotary_pos_embed(d, n, base, use_real=True, repeat_interleave_real=repeat)[::-1]


def diffusers_complex(m, n, d, base):
    phasors = m.get_1d_rotary_pos_embed(d, n, base)
    return phasors.imag, phasors.real


def timm_pair(m, n, d, base, half):  # it halves d, for two axes
    return m.build_rotary_pos_embed([n], dim=2 * d, in_pixels=False, temperature=base, rotate_half=half)


def module_of(name, what):
    """By `alone` where the package's own imports ask for packages that the function does not need."""
    return (alone if name.split(".")[0] in ("timm", "depthcharge", "opennmt", "official") else real)(name, what)


# module, the sines and cosines of n positions, how each stands for its pair
CACHES = [
    (hf("gptj"), lambda m, n, d, base: m.torch.split(m.create_sinusoidal_positions(n, d), d // 2, dim=-1), None),
    (hf("llama"), lambda m, n, d, base: sin_cos(m, llama(m, d, base), n), "halves"),
    (hf("gpt_neox"), lambda m, n, d, base: sin_cos(m, neox(m, d, base), n), "halves"),
    (EMBEDDINGS, lambda m, n, d, base: diffusers_pair(m, n, d, base, True), "pairs"),
    (EMBEDDINGS, lambda m, n, d, base: diffusers_pair(m, n, d, base, False), "halves"),
    (EMBEDDINGS, diffusers_complex, None),
    (TIMM, lambda m, n, d, base: timm_pair(m, n, d, base, False), "pairs"),
    (TIMM, lambda m, n, d, base: timm_pair(m, n, d, base, True), "halves"),
]


@pytest.mark.parametrize(("module", "cache_of", "duplicate"), CACHES, ids=label)
@pytest.mark.parametrize("dim", [2, 6, 64, 128])
@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_rotary_caches(module, cache_of, duplicate, dim, base):
    if "gptj" in module and base != 10000.0:
        return  # it has no other
    package = module_of(module, "sincos of 'rope' and 'rope_halves'")
    theirs = called(cache_of, package, LENGTH, dim, base)
    for name in ["rope", "rope_halves"]:
        encoding = posenc.convention(name, dim).replace(base=base)
        ours = encoding.sincos(range(LENGTH), duplicate=duplicate, dtype="float64")
        for one, other in zip(theirs, ours, strict=True):
            close(one, other, bound(np.arange(LENGTH)[:, None]))


def gptj_rotated(m, x):
    sin, cos = m.torch.split(m.create_sinusoidal_positions(x.shape[1], x.shape[-1])[None], x.shape[-1] // 2, dim=-1)
    return m.apply_rotary_pos_emb(x, sin, cos)


def halves_rotated(m, rotary, x):
    sin, cos = sin_cos(m, rotary, x.shape[1])
    return m.apply_rotary_pos_emb(x, x, cos[None], sin[None], unsqueeze_dim=2)[1]


def mistral_rotated(m, x):
    """Its rotary is LLaMA's; its pairs are interleaved."""
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    config = SimpleNamespace(rope_parameters=rope, max_position_embeddings=99, head_dim=x.shape[-1])
    sin, cos = sin_cos(m, m.Mistral4RotaryEmbedding(config), x.shape[1])
    return m.apply_rotary_pos_emb_interleave(x, x, cos[None], sin[None], unsqueeze_dim=2)[0]


def diffusers_rotated(m, x, repeat):
    sin, cos = diffusers_pair(m, x.shape[1], x.shape[-1], 10000.0, repeat)
    return m.apply_rotary_emb(x, (cos, sin), use_real_unbind_dim=-1 if repeat else -2, sequence_dim=1)


def diffusers_multiplied(m, x):
    return m.apply_rotary_emb(x, m.get_1d_rotary_pos_embed(x.shape[-1], x.shape[1])[None], use_real=False)


def timm_rotated(m, x, half):
    sin, cos = timm_pair(m, x.shape[1], x.shape[-1], 10000.0, half)
    return m.apply_rot_embed(x, sin[:, None], cos[:, None], half=half)


ROTATIONS = [
    ("rope", hf("gptj"), gptj_rotated),
    ("rope", EMBEDDINGS, lambda m, x: diffusers_rotated(m, x, True)),
    ("rope", EMBEDDINGS, diffusers_multiplied),
    ("rope", TIMM, lambda m, x: timm_rotated(m, x, False)),
    ("rope_halves", hf("llama"), lambda m, x: halves_rotated(m, llama(m, x.shape[-1], 10000.0), x)),
    ("rope_halves", hf("gpt_neox"), lambda m, x: halves_rotated(m, neox(m, x.shape[-1], 10000.0), x)),
    ("rope_halves", EMBEDDINGS, lambda m, x: diffusers_rotated(m, x, False)),
    ("rope_halves", TIMM, lambda m, x: timm_rotated(m, x, True)),
]


def batch(dim):
    """Vectors of (batch, position, head, dim), entries up to 1, and what a rotation of them by float32 angles may lose."""
    x = np.random.default_rng(dim).uniform(-1.0, 1.0, (2, LENGTH, 3, dim)).astype(np.float32)
    return x, 2 * bound(np.arange(LENGTH))[:, None, None]


@pytest.mark.parametrize(("name", "module", "rotated"), ROTATIONS, ids=label)
@pytest.mark.parametrize("dim", [2, 6, 64])
def test_rotate(name, module, rotated, dim):
    package = module_of(module, f"rotate of {name!r}")
    x, allowed = batch(dim)
    theirs = called(rotated, package, package.torch.from_numpy(x))
    ours = posenc.convention(name, dim).rotate(x.astype(np.float64), np.arange(LENGTH)[:, None])
    close(theirs, ours, allowed)


def test_partial_rotary():
    """NeoX turns the first quarter of each head and leaves the rest."""
    package = real(hf("gpt_neox"), "rotate of x wider than the encoding")
    x, allowed = batch(64)
    theirs = called(lambda: halves_rotated(package, neox(package, 64, 10000.0, 0.25), package.torch.from_numpy(x)))
    ours = posenc.convention("rope_halves", 16).rotate(x.astype(np.float64), np.arange(LENGTH)[:, None])
    close(theirs, ours, allowed)
    np.testing.assert_array_equal(theirs[..., 16:], x[..., 16:])


@pytest.mark.parametrize(("name", "interleaved"), [("rope", True), ("rope_halves", False)])
def test_our_caches_in_the_onnx_operator(name, interleaved):
    """Torch has no frequencies of its own to compare with, but an operator that takes ours."""
    operators = real("torch.onnx.ops", "rotate with the ONNX operator fed by sincos")
    torch = real("torch", "")
    x, _ = batch(16)
    encoding = posenc.convention(name, 16)
    sin, cos = (torch.from_numpy(part) for part in encoding.sincos(range(LENGTH)))
    steps = torch.arange(LENGTH).expand(2, LENGTH)
    turned = torch.from_numpy(x).transpose(1, 2)  # (batch, head, position, dim)
    theirs = called(lambda: operators.rotary_embedding(turned, cos, sin, steps, interleaved=interleaved).transpose(1, 2))
    close(theirs, encoding.rotate(x, np.arange(LENGTH)[:, None]), 2**-22)


# ---- MLX, depthcharge, octaves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 4, 6, 64, 512])
@pytest.mark.parametrize(
    "arguments", [{}, {"cos_first": True}, {"full_turns": True}, {"min_freq": 0.01, "max_freq": 3.0, "full_turns": True}]
)
def test_mlx(dim, arguments):
    package = real("mlx.nn", "'mlx'")
    core = real("mlx.core", "'mlx'")
    ours, angle = rows("mlx", dim, TIMES, **arguments)
    theirs = called(lambda: package.SinusoidalPositionalEncoding(dim, **arguments)(core.array(TIMES)))
    close(theirs, ours, bound(angle, 2**-20))  # log w is a difference of numbers up to 9.2: 2**-21 off even where w is near 1


@pytest.mark.parametrize(("name", "traditional"), [("rope", True), ("rope_halves", False)])
@pytest.mark.parametrize("offset", [0, 7])
def test_mlx_rotary(name, traditional, offset):
    package = real("mlx.nn", f"rotate of {name!r}")
    core = real("mlx.core", f"rotate of {name!r}")
    x, allowed = batch(16)
    turned = core.array(np.ascontiguousarray(x.swapaxes(1, 2)))
    theirs = called(lambda: package.RoPE(16, traditional=traditional)(turned, offset=offset)).swapaxes(1, 2)
    ours = posenc.convention(name, 16).rotate(x.astype(np.float64), np.arange(offset, offset + LENGTH)[:, None])
    close(theirs, ours, allowed + 2 * bound(offset))


DEPTHCHARGE = "depthcharge.encoders.sinusoidal"
WAVELENGTHS = [{"min_wavelength": 1.0, "max_wavelength": 1e5}, {"min_wavelength": 0.5, "max_wavelength": 100.0}]


@pytest.mark.parametrize("dim", [4, 6, 64])
@pytest.mark.parametrize("wavelengths", WAVELENGTHS)
def test_depthcharge(dim, wavelengths):
    package = alone(DEPTHCHARGE, "'depthcharge'")
    ours, angle = rows("depthcharge", dim, TIMES, **wavelengths)
    theirs = called(package.FloatEncoder(dim, **wavelengths), package.torch.from_numpy(TIMES)[None])
    close(theirs[0], ours, bound(angle))
    ours, angle = rows("depthcharge", dim, range(20), **wavelengths)
    theirs = called(package.PositionalEncoder(dim, **wavelengths), package.torch.zeros(1, 20, dim))
    close(theirs[0], ours, bound(angle))


def test_depthcharge_of_odd_width_has_two_sets_of_frequencies():
    """Its 4 sines are those of width 8, its 3 cosines those of width 6. Here an odd width is an error."""
    package = alone(DEPTHCHARGE, "'depthcharge' of odd width")
    theirs = called(package.FloatEncoder(7, **WAVELENGTHS[0]), package.torch.from_numpy(TIMES)[None])[0]
    (wide, angle), (narrow, _) = (rows("depthcharge", dim, TIMES, **WAVELENGTHS[0]) for dim in (8, 6))
    close(theirs, np.concatenate([wide[:, :4], narrow[:, 3:]], axis=1), bound(angle))
    with pytest.raises(ValueError, match="dim"):
        posenc.convention("depthcharge", 7, **WAVELENGTHS[0])


@pytest.mark.parametrize("bands", [1, 3, 6])
def test_octaves(bands):
    """The pixel bands of timm with a resolution of 2**bands, on an axis from -1 to 1."""
    package = alone(TIMM, "'octaves' with pi")
    grid, sin, cos = called(
        package.build_fourier_pos_embed, [33], num_bands=bands, max_res=2**bands, linear_bands=False, include_grid=True
    )
    points = grid[:, 0, 0]
    ours, angle = rows("octaves", 2 * bands, points, pi=True)
    close(sin[:, 0], ours[:, 0::2], bound(angle))
    close(cos[:, 0], ours[:, 1::2], bound(angle))


# ---- TensorFlow ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [4, 6, 32])
def test_opennmt_tf(dim):
    package = alone("opennmt.layers.position", "'opennmt-tf', which starts at 1", "opennmt.utils")
    encoding = posenc.convention("opennmt-tf", dim)
    theirs = called(lambda: package.SinusoidalPositionEncoder()(package.tf.zeros((1, LENGTH, dim))))
    close(theirs[0], encoding.table(LENGTH, dtype="float64"), bound(np.arange(1, LENGTH + 1)[:, None]))


OFFICIAL = "official.nlp.modeling.layers.position_embedding"


@pytest.mark.parametrize("dim", [4, 6, 32])
@pytest.mark.parametrize("longest", [100.0, 10000.0])
def test_tf_models(dim, longest):
    package = alone(OFFICIAL, "'tensor2tensor' with max_timescale")
    ours, angle = rows("tensor2tensor", dim, range(LENGTH), max_timescale=longest)
    theirs = called(lambda: package.RelativePositionEmbedding(dim, max_timescale=longest)(None, length=LENGTH))
    close(theirs, ours, bound(angle))


def test_tf_models_multiply_by_the_shortest_timescale():
    """Where they should divide: their frequencies are the intended ones times its square."""
    package = alone(OFFICIAL, "'tensor2tensor' with min_timescale, which the original multiplies by")
    scales = {"min_timescale": 2.0, "max_timescale": 2e4}
    theirs = called(lambda: package.RelativePositionEmbedding(6, **scales)(None, length=LENGTH // 4))
    ours, angle = rows("tensor2tensor", 6, range(0, LENGTH, 4), **scales)
    close(theirs, ours, bound(angle))


# ---- where the packages fail -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3])
def test_one_frequency_divides_by_zero_there(dim):
    """n = shift = 1: 0 / 0 where a frequency of 1 is meant."""
    m2m = real(hf("m2m_100"), "'fairseq' of width 2 and 3").M2M100SinusoidalPositionalEmbedding
    musicgen = real(hf("musicgen"), "'musicgen' of width 2 and 3").MusicgenSinusoidalPositionalEmbedding
    whisper = real(hf("whisper"), "'whisper' of width 2")
    diffusers = real(EMBEDDINGS, "'diffusers' of width 2 and 3")
    for embedding in [m2m.get_embedding, musicgen.get_embedding, *([whisper.sinusoids] if dim == 2 else [])]:
        with pytest.raises(ZeroDivisionError):
            quietly(embedding, 8, dim)
    times = diffusers.torch.from_numpy(TIMES)
    assert np.isnan(called(diffusers.get_timestep_embedding, times, dim)[:, :2]).all()

    both = np.array([np.sin(TIMES.astype(np.float64)), np.cos(TIMES.astype(np.float64))]).T
    zeros = np.zeros((len(TIMES), dim - 2))
    for name in ["fairseq", "ddpm", "diffusers", "tensor2tensor", *(["whisper"] if dim == 2 else [])]:
        close(posenc.convention(name, dim).encode(TIMES, dtype="float64"), np.hstack([both, zeros]), 2**-53)
    close(posenc.convention("musicgen", dim).encode(TIMES, dtype="float64"), np.hstack([both[:, ::-1], zeros]), 2**-53)


def test_a_shift_by_all_frequencies_divides_by_zero_there():
    package = real(EMBEDDINGS, "'diffusers' with a shift of n")
    theirs = called(package.get_timestep_embedding, package.torch.from_numpy(TIMES), 4, downscale_freq_shift=2)
    assert np.isnan(theirs).any()
    with pytest.raises(ValueError, match="shift"):
        posenc.convention("diffusers", 4, downscale_freq_shift=2)


def test_odd_widths_are_errors_on_both_sides():
    package = real(hf("whisper"), "the error of 'whisper' for odd widths")
    with pytest.raises(ValueError, match="divisible by 2"):
        quietly(package.sinusoids, 8, 5)
    with pytest.raises(ValueError, match="dim"):
        posenc.convention("whisper", 5)


def test_another_convention_would_show():
    """Rows of different conventions differ by a thousand times what is allowed above."""
    depthcharge = WAVELENGTHS[0]
    names = {"transformer": {}, "marian": {}, "tensor2tensor": {}, "musicgen": {}, "diffusion": {}, "mlx": {}, "rope": {}}
    for dim in [4, 6, 16, 64, 128]:
        tables = {name: rows(name, dim, range(LENGTH), **extras)[0] for name, extras in names.items()}
        tables["depthcharge"] = rows("depthcharge", dim, range(LENGTH), **depthcharge)[0]
        for (name, one), (other, two) in itertools.combinations(tables.items(), 2):
            assert np.abs(one - two).max() > 1000 * bound(LENGTH), (dim, name, other)

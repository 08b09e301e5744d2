"""Conventions against the functions of the packages that use them, within what these functions lose themselves.

What they lose is ``ROUNDED`` or ``bound`` of `frameworks`, never more than 6e-4 here. Another convention is off by 0.02 and
more (`test_another_convention_would_show`).

What the packages do wrong stands at the end, with the difference that it makes.
"""

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from frameworks import EMBEDDINGS, MULTIDIM, ROUNDED, TIMM, bound, called, close, hf, imported, quietly, real

import posenc

LENGTH = 100
EVEN = [4, 6, 16, 64, 128]
ANY = [*EVEN, 5, 7, 33, 127]
TIMES = np.array([0.0, 1.0, 0.5, 7.25, 99.0, 0.1, 1e-3, 33.3], np.float32)


def rows(name, dim, positions, **extras):
    """Our float64 encodings of these positions, and the largest angle in each row."""
    encoding = posenc.convention(name, dim, **extras)
    angle = np.asarray(positions, np.float64)[..., None] * np.abs(encoding.frequencies).max()
    return encoding.encode(positions, dtype="float64"), angle


# ---- tables of positions 0, 1, 2, ... --------------------------------------------------------------------------------

# convention, module, the table of n rows of width d that it makes, widths that it takes
FLOAT64_TABLES = {
    "xlm": ("transformer", hf("xlm"), lambda m, n, d: m.create_sinusoidal_embeddings(n, d, m.torch.empty(n, d)), ANY),
    "videomae": ("transformer", hf("videomae"), lambda m, n, d: m.get_sinusoid_encoding_table(n, d)[0], ANY),
    "marian": ("marian", hf("marian"), lambda m, n, d: m.MarianSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
    "informer": ("marian", hf("informer"), lambda m, n, d: m.InformerSinusoidalPositionalEmbedding(n, d).create_weight(), ANY),
}
FLOAT32_TABLES = {
    "speecht5": ("transformer", hf("speecht5"), lambda m, n, d: m.SpeechT5ScaledPositionalEncoding(0.0, d, n).pe[0], EVEN),
    "diffusers": ("transformer", EMBEDDINGS, lambda m, n, d: m.SinusoidalPositionalEmbedding(d, n).pe[0], EVEN),
    "ctrl": ("marian", hf("ctrl"), lambda m, n, d: m.positional_encoding(n, d, m.torch.float32), ANY),
    "gptj": ("marian", hf("gptj"), lambda m, n, d: m.create_sinusoidal_positions(n, d), EVEN),
    "videoprism": ("marian", hf("videoprism"), lambda m, n, d: m.create_sinusoidal_positions(n, d), EVEN),
    "whisper": ("whisper", hf("whisper"), lambda m, n, d: m.sinusoids(n, d), EVEN),
    "qwen2_5_omni": ("whisper", hf("qwen2_5_omni"), lambda m, n, d: m.SinusoidsPositionEmbedding(n, d)(n), EVEN),
    "pegasus_x": (
        "tensor2tensor",
        hf("pegasus_x"),
        lambda m, n, d: m.PegasusXSinusoidalPositionalEmbedding(d)(m.torch.empty(1, n, d))[0],
        EVEN,
    ),
    "musicgen": ("musicgen", hf("musicgen"), lambda m, n, d: m.MusicgenSinusoidalPositionalEmbedding.get_embedding(n, d), ANY),
    "positional-encodings": ("multidim", MULTIDIM, lambda m, n, d: m.PositionalEncoding1D(d)(m.torch.zeros(1, n, d))[0], ANY),
}


@pytest.mark.parametrize("user", FLOAT64_TABLES)
def test_float64_tables(user):
    name, module, table, widths = FLOAT64_TABLES[user]
    package = real(module, f"tables of {name!r}")
    for dim in widths:
        close(called(table, package, LENGTH, dim), rows(name, dim, range(LENGTH))[0], ROUNDED)


@pytest.mark.parametrize("user", FLOAT32_TABLES)
def test_float32_tables(user):
    name, module, table, widths = FLOAT32_TABLES[user]
    package = real(module, f"tables of {name!r}")
    for dim in widths:
        ours, angle = rows(name, dim, range(LENGTH))
        close(called(table, package, LENGTH, dim), ours, bound(angle))


@pytest.mark.parametrize("longest", [100.0, 10000.0, 1e6])
def test_longest_timescale(longest):
    whisper = real(hf("whisper"), "'tensor2tensor' with max_timescale")
    ours, angle = rows("tensor2tensor", 32, range(LENGTH), max_timescale=longest)
    close(called(whisper.sinusoids, LENGTH, 32, longest), ours, bound(angle))


# ---- relative positions ----------------------------------------------------------------------------------------------


def conformer(m, n, d):
    config = SimpleNamespace(max_source_positions=2 * n, hidden_size=d)
    return m.Wav2Vec2ConformerRelPositionalEmbedding(config)(m.torch.empty(1, n, d))[0]


def parakeet(m, n, d):
    config = SimpleNamespace(max_position_embeddings=n, hidden_size=d)
    return m.ParakeetEncoderRelPositionalEncoding(config)(m.torch.empty(1, n, d))[0]


def xlnet(m, n, d):  # as Transformer-XL, which transformers has no more
    config = m.XLNetConfig(vocab_size=4, d_model=d, n_layer=1, n_head=2, d_inner=4)
    return m.XLNetModel(config).relative_positional_encoding(n, n)[:, 0]


def gemma4(m, n, d):
    sizes = {"attention_chunk_size": n, "attention_context_left": n, "attention_context_right": 1}  # sum less 1, halved
    config = SimpleNamespace(hidden_size=d, **sizes)
    return m.Gemma4AudioRelPositionalEncoding(config)(m.torch.empty(1))[0]


# convention, what it makes for a sequence of 50, the positions that these are
RELATIVE = {
    "wav2vec2_conformer": ("transformer", conformer, range(49, -50, -1)),
    "parakeet": ("transformer", parakeet, range(49, -50, -1)),
    "xlnet": ("marian", xlnet, range(50, -50, -1)),
    "gemma4": ("tensor2tensor", gemma4, range(50, -1, -1)),
}


@pytest.mark.parametrize("user", RELATIVE)
@pytest.mark.parametrize("dim", [4, 6, 32])
def test_relative_positions(user, dim):
    name, table, positions = RELATIVE[user]
    package = real(hf(user), f"{name!r} at descending positions")
    ours, angle = rows(name, dim, positions)
    close(called(table, package, 50, dim), ours, bound(angle))


# ---- timesteps: any float positions ----------------------------------------------------------------------------------

Z_IMAGE = "diffusers.models.transformers.transformer_z_image"


def pi0(m, t, d):
    config = SimpleNamespace(dit_config=SimpleNamespace(hidden_size=d), min_period=0.5, max_period=40.0)
    return m.PI0TimestepEmbeddings(config)(t)


def gemma3n(m, t, d):
    sizes = {"conf_num_attention_heads": 1, "conf_attention_context_left": 1, "conf_attention_context_right": 0}
    config = SimpleNamespace(hidden_size=d, **sizes)
    return m.Gemma3nAudioRelativePositionEmbedding(config)._get_timing_signal_1d_pos(t, m.torch.float32)[0]


# convention, its extras, module, the embedding of timesteps t, widths
TIMESTEPS = {
    "qwen2_5_omni": ("ddpm", {}, hf("qwen2_5_omni"), lambda m, t, d: m.SinusPositionEmbedding(d)(t, scale=1), EVEN),
    "z_image": ("diffusion", {}, Z_IMAGE, lambda m, t, d: m.TimestepEmbedder.timestep_embedding(t, d), ANY),
    "z_image, max_period": (
        "diffusion",
        {"max_period": 100},
        Z_IMAGE,
        lambda m, t, d: m.TimestepEmbedder.timestep_embedding(t, d, 100),
        ANY,
    ),
    "gemma3n": ("tensor2tensor", {}, hf("gemma3n"), gemma3n, EVEN),
    "pi0": ("depthcharge", {"min_wavelength": 0.5, "max_wavelength": 40.0}, hf("pi0"), pi0, EVEN),
}


@pytest.mark.parametrize("user", TIMESTEPS)
def test_timesteps(user):
    name, extras, module, embedding, widths = TIMESTEPS[user]
    package = real(module, f"{name!r} at fractional positions")
    for dim in widths:
        ours, angle = rows(name, dim, TIMES, **extras)
        close(called(embedding, package, package.torch.from_numpy(TIMES), dim), ours, bound(angle))


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
    ids=str,
)
def test_diffusers(arguments):
    package = real(EMBEDDINGS, "'diffusers' and its arguments, 'ddpm', 'diffusion'")
    others = {"{}": "ddpm", str({"downscale_freq_shift": 0, "flip_sin_to_cos": True}): "diffusion"}
    for dim in [6, 7, 32, 33, 320]:
        theirs = called(package.get_timestep_embedding, package.torch.from_numpy(TIMES), dim, **arguments)
        ours, angle = rows("diffusers", dim, TIMES, **arguments)
        close(theirs, ours, bound(angle))
        if str(arguments) in others:
            close(theirs, rows(others[str(arguments)], dim, TIMES)[0], bound(angle))


# ---- fairseq: positions counted from ids -----------------------------------------------------------------------------

FAIRSEQ = {
    "m2m_100": "M2M100SinusoidalPositionalEmbedding",
    "seamless_m4t": "SeamlessM4TSinusoidalPositionalEmbedding",
    "speech_to_text": "Speech2TextSinusoidalPositionalEmbedding",
    "trocr": "TrOCRSinusoidalPositionalEmbedding",
    "fsmt": "SinusoidalPositionalEmbedding",
}


@pytest.mark.parametrize("user", FAIRSEQ)
@pytest.mark.parametrize("pad", [0, 1, 5])
def test_fairseq(user, pad):
    """The table, its row of zeros for padding, positions counted from ids, and embeddings of ids."""
    package = real(hf(user), "'fairseq': tables, positions from ids, padding")
    made = getattr(package, FAIRSEQ[user])
    ids = np.array([[6, 7, pad, pad], [pad, pad, 6, 7], [6, pad, 7, pad], [pad, pad, pad, pad], [6, 7, 8, 6]])
    tensor = package.torch.from_numpy(ids)
    for dim in [4, 6, 7, 33]:
        encoding = posenc.convention("fairseq", dim, padding_idx=pad)
        weights = called(made.get_embedding, LENGTH, dim, pad)
        first = pad + 1
        ours = encoding.table(LENGTH - first, dtype="float64")
        close(weights[first:], ours, bound(np.arange(first, LENGTH)[:, None]))
        assert not weights[pad].any()

        module = quietly(made, 20, dim, pad)
        if user == "fsmt":
            quietly(module.make_weight, 20, dim, pad)  # else the model does it
        count = module.make_positions if user == "fsmt" else module.create_position_ids_from_input_ids
        counted = posenc.positions_from_ids(ids, pad)
        np.testing.assert_array_equal(counted, called(count, tensor, pad))
        ours = encoding.encode(counted, where=ids != pad, dtype="float64")
        close(called(module, tensor), ours, bound(counted[..., None]))


# ---- rotary ----------------------------------------------------------------------------------------------------------


def llama(m, d, base=10000.0):
    rope = {"rope_type": "default", "rope_theta": base}
    config = m.LlamaConfig(hidden_size=3 * d, num_attention_heads=3, head_dim=d, rope_parameters=rope)
    return m.LlamaRotaryEmbedding(config)


def neox(m, d, base=10000.0, factor=1.0):
    rope = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": factor}
    return m.GPTNeoXRotaryEmbedding(m.GPTNeoXConfig(hidden_size=3 * d, num_attention_heads=3, rope_parameters=rope))


def caches(m, rotary, n):
    """Sine and cosine, each (n, d), of the modules above."""
    cos, sin = rotary(m.torch.empty(1), m.torch.arange(n)[None])
    return m.torch.stack([sin[0], cos[0]])


def gptj(m, n, d):
    return m.torch.stack(m.torch.split(m.create_sinusoidal_positions(n, d), d // 2, dim=-1))


def diffusers(m, n, d, base=10000.0, pairs=True):
    cos, sin = m.get_1d_rotary_pos_embed(d, n, base, use_real=True, repeat_interleave_real=pairs)
    return m.torch.stack([sin, cos])


def diffusers_complex(m, n, d, base=10000.0):
    phasors = m.get_1d_rotary_pos_embed(d, n, base)
    return m.torch.stack([phasors.imag, phasors.real])


def timm(m, n, d, base=10000.0, half=False):  # which halves d, for two axes
    return m.torch.stack(m.build_rotary_pos_embed([n], dim=2 * d, in_pixels=False, temperature=base, rotate_half=half))


# module, the sines and cosines of n positions, base, how an entry stands for its pair
CACHES = {
    "gptj": (hf("gptj"), gptj, 10000.0, None),
    "llama": (hf("llama"), lambda m, n, d: caches(m, llama(m, d), n), 10000.0, "halves"),
    "llama, base": (hf("llama"), lambda m, n, d: caches(m, llama(m, d, 500000.0), n), 500000.0, "halves"),
    "gpt_neox": (hf("gpt_neox"), lambda m, n, d: caches(m, neox(m, d), n), 10000.0, "halves"),
    "diffusers, pairs": (EMBEDDINGS, diffusers, 10000.0, "pairs"),
    "diffusers, halves": (EMBEDDINGS, partial(diffusers, base=500.0, pairs=False), 500.0, "halves"),
    "diffusers, complex": (EMBEDDINGS, diffusers_complex, 10000.0, None),
    "timm, pairs": (TIMM, timm, 10000.0, "pairs"),
    "timm, halves": (TIMM, partial(timm, base=500.0, half=True), 500.0, "halves"),
}


@pytest.mark.parametrize("user", CACHES)
def test_rotary_caches(user):
    module, cached, base, duplicate = CACHES[user]
    package = real(module, "sincos of 'rope' and 'rope_halves'")
    for dim, name in itertools.product([2, 6, 64, 128], ["rope", "rope_halves"]):
        ours = posenc.convention(name, dim, base=base).sincos(range(LENGTH), duplicate=duplicate, dtype="float64")
        close(called(cached, package, LENGTH, dim), np.array(ours), bound(np.arange(LENGTH)[:, None]))


def gptj_turned(m, x):
    return m.apply_rotary_pos_emb(x, *gptj(m, LENGTH, x.shape[-1])[:, None])


def halves_turned(m, rotary, x):
    sin, cos = caches(m, rotary, LENGTH)[:, None]
    return m.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)[1]


def diffusers_turned(m, x, pairs):
    sin, cos = diffusers(m, LENGTH, x.shape[-1], pairs=pairs)
    return m.apply_rotary_emb(x, (cos, sin), use_real_unbind_dim=-1 if pairs else -2, sequence_dim=1)


def diffusers_multiplied(m, x):
    return m.apply_rotary_emb(x, m.get_1d_rotary_pos_embed(x.shape[-1], LENGTH)[None], use_real=False)


def timm_turned(m, x, half):
    return m.apply_rot_embed(x, *timm(m, LENGTH, x.shape[-1], half=half)[:, :, None], half=half)


ROTATIONS = {
    "gptj": ("rope", hf("gptj"), gptj_turned),
    "diffusers, pairs": ("rope", EMBEDDINGS, partial(diffusers_turned, pairs=True)),
    "diffusers, complex": ("rope", EMBEDDINGS, diffusers_multiplied),
    "timm, pairs": ("rope", TIMM, partial(timm_turned, half=False)),
    "llama": ("rope_halves", hf("llama"), lambda m, x: halves_turned(m, llama(m, x.shape[-1]), x)),
    "gpt_neox": ("rope_halves", hf("gpt_neox"), lambda m, x: halves_turned(m, neox(m, x.shape[-1]), x)),
    "diffusers, halves": ("rope_halves", EMBEDDINGS, partial(diffusers_turned, pairs=False)),
    "timm, halves": ("rope_halves", TIMM, partial(timm_turned, half=True)),
}


def batch(dim):
    """Vectors (batch, position, head, dim), entries up to 1, and what float32 angles may move their rotation by."""
    x = np.random.default_rng(dim).uniform(-1.0, 1.0, (2, LENGTH, 3, dim)).astype(np.float32)
    return x, 2 * bound(np.arange(LENGTH))[:, None, None]


def turned(name, dim, x, first=0, **extras):
    positions = np.arange(first, first + LENGTH)[:, None]
    return posenc.convention(name, dim, **extras).rotate(x.astype(np.float64), positions)


@pytest.mark.parametrize("user", ROTATIONS)
def test_rotate(user):
    name, module, function = ROTATIONS[user]
    package = real(module, f"rotate of {name!r}")
    for dim in [2, 6, 64]:
        x, allowed = batch(dim)
        close(called(function, package, package.torch.from_numpy(x)), turned(name, dim, x), allowed)


def test_partial_rotary():
    """NeoX turns the first quarter of each head and leaves the rest."""
    package = real(hf("gpt_neox"), "rotate of x wider than the encoding")
    x, allowed = batch(64)
    theirs = called(lambda: halves_turned(package, neox(package, 64, factor=0.25), package.torch.from_numpy(x)))
    close(theirs, turned("rope_halves", 16, x), allowed)
    np.testing.assert_array_equal(theirs[..., 16:], x[..., 16:])


@pytest.mark.parametrize(("name", "interleaved"), [("rope", True), ("rope_halves", False)])
def test_our_caches_in_the_onnx_operator(name, interleaved):
    """Torch has no frequencies to compare with, but an operator that takes sines and cosines."""
    operators = real("torch.onnx.ops", "rotate with the ONNX operator fed by sincos")
    torch = imported("torch")
    x, _ = batch(16)
    sin, cos = (torch.from_numpy(part) for part in posenc.convention(name, 16).sincos(range(LENGTH)))
    steps = torch.arange(LENGTH).expand(2, LENGTH)
    heads_first = torch.from_numpy(x).transpose(1, 2)
    theirs = called(operators.rotary_embedding, heads_first, cos, sin, steps, interleaved=interleaved)
    close(theirs.swapaxes(1, 2), turned(name, 16, x), 2**-22)


# ---- MLX, depthcharge, octaves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"cos_first": True},
        {"full_turns": True},
        {"min_freq": 0.01, "max_freq": 0.25, "full_turns": True, "scale": 1.0},
    ],
    ids=str,
)
def test_mlx(arguments):
    package, core = (real(f"mlx.{name}", "'mlx' and its arguments") for name in ["nn", "core"])
    for dim in [2, 4, 6, 64, 512]:
        ours, angle = rows("mlx", dim, TIMES, **arguments)
        theirs = called(quietly(package.SinusoidalPositionalEncoding, dim, **arguments), core.array(TIMES))
        close(theirs, ours, bound(angle, 2**-20))  # log w is a difference of numbers up to 9.2: off by 2**-21 for any w


@pytest.mark.parametrize(("name", "traditional"), [("rope", True), ("rope_halves", False)])
@pytest.mark.parametrize("offset", [0, 7])
def test_mlx_rotary(name, traditional, offset):
    package, core = (real(f"mlx.{module}", f"rotate of {name!r}") for module in ["nn", "core"])
    x, allowed = batch(16)
    heads_first = core.array(np.ascontiguousarray(x.swapaxes(1, 2)))
    theirs = called(quietly(package.RoPE, 16, traditional=traditional), heads_first, offset=offset)
    close(theirs.swapaxes(1, 2), turned(name, 16, x, first=offset), allowed + 2 * bound(offset))


DEPTHCHARGE = "depthcharge.encoders.sinusoidal"
WAVELENGTHS = {"min_wavelength": 1.0, "max_wavelength": 1e5}


@pytest.mark.parametrize("wavelengths", [WAVELENGTHS, {"min_wavelength": 0.5, "max_wavelength": 100.0}])
def test_depthcharge(wavelengths):
    package = real(DEPTHCHARGE, "'depthcharge'")
    for dim in [4, 6, 64]:
        ours, angle = rows("depthcharge", dim, TIMES, **wavelengths)
        theirs = called(quietly(package.FloatEncoder, dim, **wavelengths), package.torch.from_numpy(TIMES)[None])
        close(theirs[0], ours, bound(angle))
        ours, angle = rows("depthcharge", dim, range(20), **wavelengths)
        theirs = called(quietly(package.PositionalEncoder, dim, **wavelengths), package.torch.zeros(1, 20, dim))
        close(theirs[0], ours, bound(angle))


@pytest.mark.parametrize("bands", [1, 3, 6])
def test_octaves(bands):
    """The pixel bands of timm for a resolution of 2**bands, along an axis from -1 to 1."""
    package = real(TIMM, "'octaves' with pi")
    grid, *sin_cos = quietly(package.build_fourier_pos_embed, [33], num_bands=bands, max_res=2**bands, include_grid=True)
    ours, angle = rows("octaves", 2 * bands, np.asarray(grid)[:, 0, 0], pi=True)
    close(called(package.torch.stack, sin_cos, -1).reshape(ours.shape), ours, bound(angle))


# ---- TensorFlow ------------------------------------------------------------------------------------------------------

OFFICIAL = "official.nlp.modeling.layers.position_embedding"


def test_opennmt_tf():
    package = real("opennmt.layers.position", "'opennmt-tf' and its first position, 1")
    for dim in [4, 6, 32]:
        ours = posenc.convention("opennmt-tf", dim).table(LENGTH, dtype="float64")
        theirs = called(quietly(package.SinusoidalPositionEncoder), package.tf.zeros((1, LENGTH, dim)))
        close(theirs[0], ours, bound(np.arange(1, LENGTH + 1)[:, None]))


def test_tf_models():
    package = real(OFFICIAL, "'tensor2tensor' with max_timescale")
    for dim, longest in itertools.product([4, 6, 32], [100.0, 10000.0]):
        ours, angle = rows("tensor2tensor", dim, range(LENGTH), max_timescale=longest)
        theirs = called(quietly(package.RelativePositionEmbedding, dim, max_timescale=longest), None, length=LENGTH)
        close(theirs, ours, bound(angle))


# ---- where the packages are wrong ------------------------------------------------------------------------------------


def test_tf_models_multiply_by_the_shortest_timescale():
    """Where they should divide: their frequencies are the intended ones times its square."""
    package = real(OFFICIAL, "'tensor2tensor' with min_timescale, by which the original multiplies")
    timescales = {"min_timescale": 2.0, "max_timescale": 2e4}
    theirs = called(quietly(package.RelativePositionEmbedding, 6, **timescales), None, length=LENGTH // 4)
    ours, angle = rows("tensor2tensor", 6, range(0, LENGTH, 4), **timescales)
    close(theirs, ours, bound(angle))


def test_tf_models_leave_out_the_column_of_zeros():
    package = real(OFFICIAL, "'tensor2tensor' of odd width")
    theirs = called(quietly(package.RelativePositionEmbedding, 7), None, length=LENGTH)
    ours, angle = rows("tensor2tensor", 7, range(LENGTH))
    close(theirs, ours[:, :6], bound(angle))
    assert not ours[:, 6].any()


def test_depthcharge_has_other_frequencies_for_cosines_in_odd_widths():
    """Its 4 sines in width 7 are those of width 8, its 3 cosines those of width 6. Here an odd width is an error."""
    package = real(DEPTHCHARGE, "'depthcharge' of odd width")
    theirs = called(quietly(package.FloatEncoder, 7, **WAVELENGTHS), package.torch.from_numpy(TIMES)[None])[0]
    (wide, angle), (narrow, _) = (rows("depthcharge", dim, TIMES, **WAVELENGTHS) for dim in (8, 6))
    close(theirs, np.concatenate([wide[:, :4], narrow[:, 3:]], axis=1), bound(angle))
    with pytest.raises(ValueError, match="dim is 7"):
        posenc.convention("depthcharge", 7)


# module, the 8 rows of width d that it would make, widths with one frequency
OF_ONE = {
    "fairseq": (hf("m2m_100"), lambda m, d: m.M2M100SinusoidalPositionalEmbedding.get_embedding(8, d), [2, 3]),
    "musicgen": (hf("musicgen"), lambda m, d: m.MusicgenSinusoidalPositionalEmbedding.get_embedding(8, d), [2, 3]),
    "whisper": (hf("whisper"), lambda m, d: m.sinusoids(8, d), [2]),
    "diffusers": (EMBEDDINGS, lambda m, d: m.get_timestep_embedding(m.torch.arange(8), d), [2, 3]),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_one_frequency_divides_by_zero_there(name):
    """It is 0 / 0, and 1 is meant."""
    module, table, widths = OF_ONE[name]
    package = real(module, f"{name!r} of width {widths}")
    sin_cos = [np.sin(np.arange(8.0)), np.cos(np.arange(8.0))]
    for dim in widths:
        if name == "diffusers":
            assert np.isnan(called(table, package, dim)[:, :2]).all()
        else:
            with pytest.raises(ZeroDivisionError):
                called(table, package, dim)
        expected = np.array([*(sin_cos[::-1] if name == "musicgen" else sin_cos), np.zeros(8)][:dim]).T
        close(rows(name, dim, range(8))[0], expected, 2**-52)


def test_a_shift_by_all_frequencies_divides_by_zero_there():
    package = real(EMBEDDINGS, "'diffusers' with a shift of n")
    theirs = called(package.get_timestep_embedding, package.torch.from_numpy(TIMES), 4, downscale_freq_shift=2)
    assert np.isnan(theirs).any()
    with pytest.raises(ValueError, match="shift is 2"):
        posenc.convention("diffusers", 4, downscale_freq_shift=2)


# ---- what the comparisons can see ------------------------------------------------------------------------------------


def test_another_convention_would_show():
    """Tables of different conventions differ by a thousand times what is allowed at position 100."""
    names = ["transformer", "marian", "tensor2tensor", "musicgen", "diffusion", "mlx", "depthcharge", "rope", "octaves"]
    for dim in [4, 6, 16, 64]:
        tables = {name: rows(name, dim, np.arange(LENGTH) / 16)[0] for name in names}
        for one, other in itertools.combinations(names, 2):
            assert np.abs(tables[one] - tables[other]).max() > 1000 * bound(LENGTH), (dim, one, other)

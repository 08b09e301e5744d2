"""Grids against the functions of the packages that use them, within what these functions lose themselves.

That is `frameworks.bound` of a point's largest angle, with more of a unit where coordinates are computed, too: rounded to
float32 in normalize of DETR five times at most, which makes (1 + angle) 2**-21 of it. Functions that compute in float64 lose
a 2**29th of that. Another convention, or order, is off by 0.02 and more (`test_another_convention_would_show`). No grid is
square, so that height and width cannot be taken for each other.

What the packages do otherwise than one would think stands at the end.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from frameworks import EMBEDDINGS, MULTIDIM, ROUNDED, TIMM, bound, called, close, hf, quietly, real

import posenc

SHAPES = [(3, 4), (5, 2), (1, 7), (23, 17)]
WIDTHS = [4, 8, 16, 60]
NORMALIZED = {"float32": 2**-21, "float64": 2**-50}
SIMPLE_VIT, SIMPLE_VIT_3D = "vit_pytorch.simple_vit", "vit_pytorch.simple_vit_3d"


def rows(shape, dim, convention, **options):
    """Our float64 encodings of the points in the order of the axes, (points, dim)."""
    return posenc.grid(shape, dim, convention=convention, dtype="float64", **options).reshape(-1, dim)


def farthest(shape, first=0):
    """The largest index of each point, (points, 1), which is its largest angle: no frequency is above 1."""
    return first + np.indices(shape).max(axis=0).reshape(-1, 1)


# ---- timm, simple ViT, positional-encodings --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"temperature": 500.0}, {"interleave_sin_cos": True}], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_timm(shape, options, reverse):
    """With reverse_coord its points are those of the grid (width, height), in that order."""
    package = real(TIMM, "grids of 'timm'")
    ours = {"base" if name == "temperature" else name: value for name, value in options.items()}
    turned = shape[::-1] if reverse else shape
    for dim in WIDTHS:
        theirs = called(package.build_sincos2d_pos_embed, list(shape), dim, reverse_coord=reverse, **options)
        close(theirs, rows(turned, dim, "timm", **ours), bound(farthest(turned)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("base", [10000, 20])
def test_simple_vit(shape, base):
    package = real(SIMPLE_VIT, "grids of 'simplevit'")
    for dim in WIDTHS[1:]:
        theirs = called(package.posemb_sincos_2d, *shape, dim, base)
        close(theirs, rows(shape, dim, "simplevit", base=base), bound(farthest(shape)))


@pytest.mark.parametrize("dim", [12, 14, 24, 29, 64])
def test_simple_vit_of_videos(dim):
    """Its 3 axes have tensor2tensor's frequencies, the last axis first, and its tail of zeros."""
    package = real(SIMPLE_VIT_3D, "grids of 'tensor2tensor'")
    theirs = called(package.posemb_sincos_3d, package.torch.zeros(1, 3, 2, 5, dim), 500)
    ours = rows((3, 2, 5), dim, "tensor2tensor", order=(2, 1, 0), max_timescale=500.0)
    close(theirs, ours, bound(farthest((3, 2, 5))))


@pytest.mark.parametrize("shape", [(9,), (3, 4), (1, 7), (2, 3, 5), (4, 3, 1)])
@pytest.mark.parametrize("dim", [*range(1, 14), 22, 23, 64, 65])
def test_positional_encodings(shape, dim):
    package = real(MULTIDIM, "grids of 'multidim'")
    module = getattr(package, f"PositionalEncoding{len(shape)}D")(dim)
    theirs = called(module, package.torch.zeros(1, *shape, dim)).reshape(-1, dim)
    close(theirs, rows(shape, dim, "multidim"), bound(farthest(shape)))


# ---- diffusers: frequencies in float64, coordinates in float32 -------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"base_size": 5}, {"base_size": 64, "interpolation_scale": 2.7}], ids=str)
def test_diffusers_2d(shape, options):
    package = real(EMBEDDINGS, "grids of 'mae' with base_size and interpolation_scale")
    base_size, scale = options.get("base_size", 16), options.get("interpolation_scale", 1.0)
    for dim in WIDTHS:
        theirs = called(package.get_2d_sincos_pos_embed, dim, shape, **options)
        close(theirs, rows(shape, dim, "mae", **{"base_size": 16, **options}), bound(base_size / scale))


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 4, 1), (1, 11, 7)])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.875, 1.0), (0.7, 1.3)])
def test_diffusers_3d(shape, scales):
    package = real(EMBEDDINGS, "grids of 'video' and their scales")
    frames, height, width = shape
    for dim in [16, 32, 96]:
        theirs = called(package.get_3d_sincos_pos_embed, dim, (width, height), frames, *scales)
        options = dict(zip(["spatial_interpolation_scale", "temporal_interpolation_scale"], scales, strict=True))
        ours = rows(shape, dim, "video", **options).reshape(frames, height * width, dim)
        close(theirs, ours, bound(max(shape) / min(scales)))


# ---- DETR and its successors -----------------------------------------------------------------------------------------

BATCH = np.ones((4, 5, 7), bool)
BATCH[0, 3:] = BATCH[0, :, 4:] = False  # an image in the corner
BATCH[1, ::2, 1::3] = False  # holes
BATCH[2, :, 2] = BATCH[2, 4] = False  # a column and a row of which nothing is left


def detr(m, f, mask, dtype="float32", **options):
    name = next(name for name in dir(m) if name.endswith("SinePositionEmbedding"))
    shape, number = (len(mask), 3, *mask.shape[1:]), getattr(m.torch, dtype)
    seen = None if mask.all() else m.torch.from_numpy(mask)
    return getattr(m, name)(f, **options)(shape, "cpu", number, seen)


def table_transformer(m, f, mask, **options):
    made = m.TableTransformerSinePositionEmbedding(f, **options)
    return made(m.torch.zeros(1), m.torch.from_numpy(mask))


def grounding_dino(m, f, mask, temperature=10000, normalize=True):
    config = SimpleNamespace(d_model=2 * f, positional_embedding_temperature=temperature)
    return m.GroundingDinoSinePositionEmbedding(config)(m.torch.zeros(1), m.torch.from_numpy(mask))


def dab_detr(m, f, mask, temperature=(10000, 10000), normalize=True, scale=None):
    config = SimpleNamespace(
        hidden_size=2 * f,
        temperature_height=temperature[0],
        temperature_width=temperature[1],
        sine_position_embedding_scale=scale,
    )
    return m.DabDetrSinePositionEmbedding(config)(m.torch.zeros(1), m.torch.from_numpy(mask))


PLAIN, NORMALIZE = {}, {"normalize": True}
OTHERS = [{"temperature": 20}, {"temperature": 20, "normalize": True, "scale": 3.5}]
ALL = [PLAIN, NORMALIZE, *OTHERS]
DETRS = {  # the embedding, what it takes, ours for normalize
    "detr": (detr, ALL, {}),
    "mask2former": (detr, ALL, {}),
    "deformable_detr": (detr, ALL, {"offset": -0.5}),
    "sam3": (detr, ALL, {}),
    "table_transformer": (table_transformer, ALL, {}),
    "grounding_dino": (grounding_dino, [NORMALIZE, {"temperature": 20, "normalize": True}], {}),
    "dab_detr": (dab_detr, [NORMALIZE, {"temperature": (20, 700), "normalize": True, "scale": 3.5}], {}),
}


def check_detr(user, options, mask, f, unit, **call):
    embedding, _, more = DETRS[user]
    package = real(hf(user), "grids of 'detr'")
    theirs = called(embedding, package, f, mask, **options, **call)
    ours = {"base" if name == "temperature" else name: value for name, value in options.items()}
    if options.get("normalize"):
        ours |= more
    encoded = posenc.grid(None, 2 * f, convention="detr", mask=mask, dtype="float64", **ours)
    angle = np.maximum(mask.cumsum(1), mask.cumsum(2))
    if options.get("normalize"):
        scale, offset = options.get("scale", 2 * np.pi), more.get("offset", 0.0)
        parts = [(mask.cumsum(i) + offset) / (mask.sum(i, keepdims=True) + 1e-6) * scale for i in (1, 2)]
        angle = np.maximum(*np.abs(parts))
    close(np.moveaxis(theirs, 1, -1), encoded, bound(angle[..., None], unit))
    if mask.all():
        whole = posenc.grid(mask.shape[1:], 2 * f, convention="detr", dtype="float64", **ours)
        assert (encoded == whole).all()


CASES = [(user, options) for user, (_, taken, _) in DETRS.items() for options in taken]


@pytest.mark.parametrize(("user", "options"), CASES, ids=str)
@pytest.mark.parametrize("f", [2, 8, 32])
def test_detr(user, options, f):
    for mask in (BATCH, *(np.ones((1, *shape), bool) for shape in SHAPES)):
        check_detr(user, options, mask, f, NORMALIZED["float32"])


@pytest.mark.parametrize(("user", "options"), [case for case in CASES if DETRS[case[0]][0] is detr], ids=str)
def test_detr_in_float64(user, options):
    for mask in (BATCH, *(np.ones((1, *shape), bool) for shape in SHAPES)):
        check_detr(user, options, mask, 16, NORMALIZED["float64"], dtype="float64")


# ---- height first ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["rt_detr", "vit_mae", "aimv2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_height_first(user, shape):
    package = real(hf(user), "grids of 'mae' in the order 'hw'")
    for dim, temperature in itertools.product(WIDTHS, [10000.0, 20.0]):
        ours = rows(shape, dim, "mae", order="hw", base=temperature)
        theirs = called(package.build_2d_sinusoidal_position_embedding, *shape, dim, temperature)
        close(theirs, ours, ROUNDED)
        wide = called(package.build_2d_sinusoidal_position_embedding, *shape, dim, temperature, dtype=package.torch.float64)
        close(wide, ours, bound(farthest(shape), 2**-51))


# ---- where the packages are not what one would think -----------------------------------------------------------------


def test_rt_detr_takes_the_width_first():
    package = real(hf("rt_detr"), "RTDetrSinePositionEmbedding")
    theirs = called(package.RTDetrSinePositionEmbedding(16, 20), 4, 3, None, package.torch.float32)[0]
    close(theirs, rows((3, 4), 16, "mae", order="hw", base=20.0), ROUNDED)


def test_diffusers_take_the_width_first_in_videos_only():
    """Sizes (2, 5) are a height and a width in two axes, and a width and a height in three, whatever their docstring says."""
    package = real(EMBEDDINGS, "the order of sizes in grids of 'mae' and 'video'")
    images = called(package.get_2d_sincos_pos_embed, 16, (2, 5), base_size=4)
    close(images, rows((2, 5), 16, "mae", base_size=4), bound(4))
    assert np.abs(images - rows((5, 2), 16, "mae", base_size=4)).max() > 0.02
    videos = called(package.get_3d_sincos_pos_embed, 16, (2, 5), 3).reshape(-1, 16)
    close(videos, rows((3, 5, 2), 16, "video"), bound(5))
    assert np.abs(videos - rows((3, 2, 5), 16, "video")).max() > 0.02


def test_diffusers_have_a_base_size_where_mae_has_none():
    """Without it they are MAE's in grids of 16 x 16 only."""
    package = real(EMBEDDINGS, "grids of 'mae' without base_size")
    for n in (5, 16):
        close(called(package.get_2d_sincos_pos_embed, 16, n, base_size=n), rows((n, n), 16, "mae"), bound(n))
        apart = np.abs(called(package.get_2d_sincos_pos_embed, 16, n) - rows((n, n), 16, "mae")).max()
        assert apart < 1e-5 if n == 16 else apart > 0.02


def test_models_of_vit_mae_have_the_width_first():
    """Though the function in the same file has the height first."""
    package = real(hf("vit_mae"), "grids of 'mae' in models")
    sizes = {"hidden_size": 16, "decoder_hidden_size": 8, "image_size": 20, "patch_size": 4, "num_hidden_layers": 1}
    config = package.ViTMAEConfig(**sizes, num_attention_heads=1, decoder_num_hidden_layers=1, decoder_num_attention_heads=1)
    encoder, decoder = quietly(package.ViTMAEEmbeddings, config), quietly(package.ViTMAEDecoder, config, 25)
    encoder.initialize_weights()
    decoder.initialize_weights(25)
    for theirs, dim in ((encoder.position_embeddings, 16), (decoder.decoder_pos_embed, 8)):
        ours = rows((5, 5), dim, "mae")
        close(theirs[0, 1:].detach().numpy(), ours, ROUNDED)
        assert np.abs(ours - rows((5, 5), dim, "mae", order="hw")).max() > 0.02


def test_omdet_turbo_has_the_width_first_in_columns_and_rows():
    """Its points are in the order of the grid (width, height), though it adds them to tokens in that of (height, width)."""
    package = real(hf("omdet_turbo"), "grids of 'mae', transposed")
    theirs = called(package.OmDetTurboHybridEncoder.build_2d_sincos_position_embedding, 4, 3, 16)[0]
    close(theirs, rows((4, 3), 16, "mae", order="hw"), bound(farthest((4, 3))))
    turned = posenc.grid((3, 4), 16, convention="mae", dtype="float64").swapaxes(0, 1).reshape(-1, 16)
    close(theirs, turned, bound(farthest((4, 3))))


def test_simple_vit_divides_by_zero_in_width_4():
    """It is 0 / 0, and 1 is meant."""
    package = real(SIMPLE_VIT, "grids of 'simplevit' of width 4")
    assert np.isnan(called(package.posemb_sincos_2d, 2, 3, 4)).any()
    close(rows((2, 3), 4, "simplevit"), rows((2, 3), 4, "mae"), 0.0)


def test_deformable_detr_is_far_away_where_nothing_is_seen():
    """Along a column without an image its coordinate is -0.5 / eps * scale."""
    package = real(hf("deformable_detr"), "grids of 'detr' with columns of which nothing is left")
    theirs = called(detr, package, 8, BATCH, "float64", normalize=True)[2, :8, :, 2]
    angle = -0.5 / 1e-6 * 2 * np.pi
    np.testing.assert_allclose(theirs[:2], np.array([[np.sin(angle)], [np.cos(angle)]]).repeat(5, 1), atol=1e-8)


# ---- what the comparisons can see ------------------------------------------------------------------------------------


def test_another_convention_would_show():
    """And another order, or height and width swapped."""
    normalized = {"normalize": True, "scale": 6.0}
    grids = [
        ("mae", {}),
        ("mae", {"order": "hw"}),
        ("mae", {"base_size": 16}),
        ("mae", {"interpolation_scale": 2.0}),
        ("mae", {"base": 500.0}),
        ("simplevit", {}),
        ("simplevit", {"order": "yx"}),
        ("timm", {}),
        ("timm", {"order": "wh"}),
        ("timm", {"first": 1}),
        ("multidim", {}),
        ("multidim", {"order": "yx"}),
        ("detr", {}),
        ("detr", {"order": "xy"}),
        ("detr", {"base": (10000.0, 20.0)}),
        ("detr", {"base": (20.0, 10000.0)}),
        ("detr", normalized),
        ("detr", {**normalized, "offset": -0.5}),
    ]
    for dim in (8, 16, 60):
        for shape in ((3, 4), (23, 17)):
            tables = [rows(size, dim, name, **options) for size in (shape, shape[::-1]) for name, options in grids]
            for (i, one), (j, other) in itertools.combinations(enumerate(tables), 2):
                assert np.abs(one - other).max() > 0.02, (dim, shape, grids[i % len(grids)], grids[j % len(grids)])

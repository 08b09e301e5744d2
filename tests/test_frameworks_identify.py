"""`posenc.identify` and ``posenc verify`` of tables that the frameworks' own functions make.

Each as it is made, as float16, and from a later row: the convention has to be named, and the first position found. What is said
of roundings is counted here again.
"""

import json

import numpy as np
import pytest
from frameworks import EMBEDDINGS, MULTIDIM, TIMM, called, hf, quietly, real
from test_frameworks import FAIRSEQ, FLOAT32_TABLES, FLOAT64_TABLES, RELATIVE, Z_IMAGE
from test_frameworks_grid import detr

import posenc
from posenc import _cli

TABLES = FLOAT64_TABLES | FLOAT32_TABLES
LENGTH = 300


def count(table, name, first, **extras):
    """Entries of a table that are not those of the convention."""
    ours = posenc.convention(name, table.shape[-1], **extras).table(table.shape[-2], start=first, dtype=table.dtype)
    return int((table != ours).sum())


@pytest.mark.parametrize("first", [0, 37])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("user", TABLES)
def test_tables(user, dtype, first):
    name, module, table, widths = TABLES[user]
    package = real(module, f"the name of tables of {name!r}")
    for dim in widths:
        made = called(table, package, LENGTH, dim)[first:].astype(dtype)
        match = posenc.identify(made)
        assert match is not None, dim
        assert name in match.names, (dim, match)
        assert (match.first, match.step, match.extras, match.others) == (first, 1, {}, ()), (dim, match)
        assert match.dtype == dtype
        assert match.entries == made.size
        assert match.misrounded == count(made, name, first), dim


@pytest.mark.parametrize("start", [10**5, 10**6, 10**7])
def test_far_positions(start):
    """Where float32 arithmetic is off by 0.01 and more."""
    package = real(Z_IMAGE, "the positions of tables far away")
    positions = package.torch.arange(start, start + 64, dtype=package.torch.float32)
    made = called(package.TimestepEmbedder.timestep_embedding, positions, 64)
    match = posenc.identify(made)
    assert match.names[0] == "diffusion"
    assert match.first == start
    assert match.worst.error > 1e-3


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("user", FAIRSEQ)
def test_fairseq(user, pad):
    """Whole tables, with the row of zeros, and what stands behind it."""
    package = real(hf(user), "the name of tables of 'fairseq'")
    for dim in [4, 6, 7, 64]:
        weights = called(getattr(package, FAIRSEQ[user]).get_embedding, LENGTH, dim, pad)
        match = posenc.identify(weights)
        assert match.names[0] == "fairseq"
        assert match.extras == ({} if pad == 1 else {"padding_idx": 0})
        assert (match.first, match.zero_rows) == (0, (pad,))
        of_zeros = np.count_nonzero(posenc.convention("fairseq", dim).encode(pad))
        assert match.misrounded == count(weights, "fairseq", 0) - of_zeros
        behind = posenc.identify(weights[pad + 1 :].astype(np.float16))
        assert "fairseq" in behind.names
        assert (behind.first, behind.dtype) == (pad + 1, np.float16)
        assert behind.names[0] == ("fairseq" if pad == 1 else "tensor2tensor" if dim % 2 else "opennmt-tf")


@pytest.mark.parametrize("user", RELATIVE)
def test_descending_positions(user):
    name, table, positions = RELATIVE[user]
    package = real(hf(user), f"the name of {name!r} at descending positions")
    match = posenc.identify(called(table, package, 50, 32))
    assert name in match.names
    assert (match.first, match.step) == (positions.start, -1)


ARGUMENTS = [
    ({}, "ddpm", {}),
    ({"flip_sin_to_cos": True}, "musicgen", {}),
    ({"downscale_freq_shift": 0}, "marian", {}),
    ({"downscale_freq_shift": 0, "flip_sin_to_cos": True}, "diffusion", {}),
    ({"downscale_freq_shift": 2}, "diffusers", {"downscale_freq_shift": 2}),
    (
        {"downscale_freq_shift": 0.5, "flip_sin_to_cos": True},
        "diffusers",
        {"downscale_freq_shift": 0.5, "flip_sin_to_cos": True},
    ),
    ({"max_period": 100}, "ddpm", {}),
    ({"max_period": 1000000, "downscale_freq_shift": 0, "flip_sin_to_cos": True}, "diffusion", {"max_period": 1e6}),
]


@pytest.mark.parametrize(("arguments", "name", "extras"), ARGUMENTS, ids=str)
@pytest.mark.parametrize("positions", [range(100), range(999, -1, -1), range(0, 1000, 20)], ids=str)
def test_diffusers(arguments, name, extras, positions):
    package = real(EMBEDDINGS, "the names of timestep embeddings")
    times = package.torch.tensor(list(positions))
    for dim, dtype in [(32, "float32"), (320, "float32"), (320, "float16")]:
        match = posenc.identify(called(package.get_timestep_embedding, times, dim, **arguments).astype(dtype))
        assert name in match.names
        assert "diffusers" in match.names
        assert (match.first, match.step) == (positions.start, positions.step)
        if "max_period" in arguments:
            (base,) = {match.extras[extra] for extra in ("base", "max_period") if extra in match.extras}
            assert base == arguments["max_period"]
        else:
            assert {extra: match.extras[extra] for extra in extras} == extras


def test_diffusers_scale_is_a_step():
    """Positions times a scale are other positions: nothing in a table tells them apart."""
    package = real(EMBEDDINGS, "the steps of timestep embeddings with a scale")
    for scale in (10, 0.125):
        made = called(package.get_timestep_embedding, package.torch.arange(100), 32, scale=scale)
        match = posenc.identify(made)
        assert "diffusers" in match.names
        assert (match.first, match.step) == (0, scale)


def test_shuffled_timesteps():
    package = real(EMBEDDINGS, "the positions of timesteps in no order")
    times = np.random.default_rng(1).permutation(1000)[:50]
    made = called(package.get_timestep_embedding, package.torch.from_numpy(times), 64)
    match = posenc.identify(made)
    assert "ddpm" in match.names
    np.testing.assert_array_equal(match.positions, times)


# ---- grids -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(3, 4), (14, 14), (23, 17), (5, 2)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("interleave", [False, True])
def test_timm(shape, reverse, interleave, dtype):
    package = real(TIMM, "the name of grids of 'timm'")
    made = called(package.build_sincos2d_pos_embed, list(shape), 64, reverse_coord=reverse, interleave_sin_cos=interleave)
    match = posenc.identify(made.astype(dtype))
    assert "timm" in match.names
    assert match.names[0] == ("mae" if interleave else "timm")
    assert match.shape == (shape[::-1] if reverse else shape)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("shape", [(3, 4), (16, 16), (23, 17)])
def test_diffusers_2d(shape, dtype):
    package = real(EMBEDDINGS, "the name of grids of 'mae' in diffusers")
    for base_size in (16, 8):
        made = called(package.get_2d_sincos_pos_embed, 64, shape, base_size=base_size)
        match = posenc.identify(made.astype(dtype))
        assert (match.names[0], match.shape) == ("mae", shape)
        assert match.extras.get("base_size", shape[0]) == base_size


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.875, 1.0), (2.0, 1.25)])
def test_diffusers_3d(scales):
    package = real(EMBEDDINGS, "the name of grids of 'video'")
    made = called(package.get_3d_sincos_pos_embed, 96, (5, 4), 3, *scales)
    for array in (made, made.reshape(-1, 96)):
        match = posenc.identify(array)
        assert (match.names, match.shape) == (("video",), (3, 4, 5))
        found = (match.extras.get(f"{axis}_interpolation_scale", 1.0) for axis in ("spatial", "temporal"))
        assert tuple(found) == scales


def test_diffusers_1d():
    package = real(EMBEDDINGS, "the name of get_1d_sincos_pos_embed_from_grid")
    made = called(package.get_1d_sincos_pos_embed_from_grid, 64, package.torch.arange(50))
    match = posenc.identify(made)
    assert (match.names[0], match.first) == ("marian", 0)


def test_positional_encodings():
    package = real(MULTIDIM, "the name of grids of 'multidim'")
    made = called(package.PositionalEncoding2D(24), package.torch.zeros(1, 3, 5, 24))
    match = posenc.identify(made)
    assert (match.names[0], match.shape) == ("multidim", (3, 5))


def test_vit_mae_has_a_row_of_zeros():
    package = real(hf("vit_mae"), "the name of ViT-MAE's embeddings")
    sizes = {"hidden_size": 32, "image_size": 20, "patch_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    embeddings = quietly(package.ViTMAEEmbeddings, package.ViTMAEConfig(**sizes))
    embeddings.initialize_weights()
    match = posenc.identify(embeddings.position_embeddings.detach().numpy())
    assert (match.names[0], match.shape, match.zero_rows, match.extras) == ("mae", (5, 5), (0,), {})


@pytest.mark.parametrize("user", ["rt_detr", "vit_mae", "aimv2"])
def test_height_first(user):
    package = real(hf(user), "the name of grids of 'mae' in the order 'hw'")
    made = called(package.build_2d_sinusoidal_position_embedding, 4, 5, 32, 10000.0)
    match = posenc.identify(made)
    assert (match.names[0], match.shape, match.extras) == ("mae", (4, 5), {"order": "hw"})


@pytest.mark.parametrize(
    "options", [{}, {"normalize": True}, {"temperature": 20}, {"temperature": 20, "normalize": True}], ids=str
)
@pytest.mark.parametrize(("user", "offset"), [("detr", 0.0), ("mask2former", 0.0), ("deformable_detr", -0.5)])
def test_detr(user, offset, options):
    package = real(hf(user), "the name of grids of 'detr'")
    made = called(detr, package, 16, np.ones((1, 6, 5), bool), **options)
    for array in (made, np.moveaxis(made, 1, -1)):
        match = posenc.identify(array)
        assert (match.names[0], match.shape, match.channels_first) == ("detr", (6, 5), array is made)
        assert match.extras.get("base", 10000.0) == options.get("temperature", 10000.0)
        assert match.extras.get("normalize", False) == options.get("normalize", False)
        if "normalize" in options:
            assert match.extras.get("offset", 0.0) == offset


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["marian", "whisper", "musicgen", "ctrl", "gptj", "informer"])
def test_verify(user, tmp_path, capsys):
    name, module, table, _ = TABLES[user]
    package = real(module, f"verify of tables of {name!r}")
    made = called(table, package, LENGTH, 64)
    for dtype, first in (("float32", 0), ("float16", 0), ("float32", 37)):
        file = tmp_path / "table.npy"
        np.save(file, made[first:].astype(dtype))
        assert _cli.main(["verify", str(file)]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"convention   {name}"), said
        assert f"\npositions    from {first}\n" in said
        assert f" {dtype}\n" in said
        assert _cli.main(["verify", "--json", str(file)]) == 0
        fields = json.loads(capsys.readouterr().out)
        assert fields["names"][0] == name
        assert fields["misrounded"] == count(made[first:].astype(dtype), name, first)


def test_recipe_in_half_precision_is_no_convention_or_said_to_be_bad():
    """The angles themselves in float16, as models in half precision have had them."""
    torch = real("torch", "angles in half precision")
    angles = torch.arange(600).half()[:, None] * (10000.0 ** -(torch.arange(32) / 32)).half()
    made = torch.cat([angles.sin(), angles.cos()], dim=1).numpy()
    match = posenc.identify(made)
    assert match is None or (match.names[0] == "marian" and match.worst.error > 0.1)

"""`posenc.identify` and ``posenc verify`` of tables made here, and of what follows no convention.

A table that is made by `posenc.table` has no misrounded entry; one with entries changed has these. What is not a table of a
convention has to be called none.
"""

import json

import numpy as np
import oracle
import pytest
from ml_dtypes import bfloat16

import posenc
from posenc import CONVENTIONS, GRIDS, _cli

DTYPES = ["float64", "float32", "float16", "bfloat16"]
EVEN_ONLY = {name for name, entry in CONVENTIONS.items() if entry.odd == "error"}


def recipe(positions, dim, base=10000.0):
    """The paper's encodings in float32 arithmetic, [s .. | c ..]."""
    frequencies = np.float32(base) ** -(np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))
    angles = np.asarray(positions, np.float32)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :dim]


# ---- every convention ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention(name, dtype):
    for dim in (4, 6, 32) if name in EVEN_ONLY else (4, 5, 32, 33):
        encoding = posenc.convention(name, dim)
        match = posenc.identify(encoding.table(80, dtype=dtype))
        assert name in match.names, dim
        assert match.first == encoding.first
        assert (match.step, match.extras, match.others, match.is_fitted) == (1, {}, (), False)
        assert (match.misrounded, match.worst, match.entries, match.dtype.name) == (0, None, 80 * dim, dtype)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_the_encoding_makes_the_table(name):
    table = posenc.convention(name, 16).table(50, start=3)
    match = posenc.identify(table)
    np.testing.assert_array_equal(match.encoding.table(50), table)
    np.testing.assert_array_equal(posenc.convention(match.names[0], 16, **match.extras).table(50, start=match.first), table)


@pytest.mark.parametrize("dim", [4, 5, 6, 7, 16, 17])
def test_no_convention_is_taken_for_another(dim):
    """Those that are named have the same values, bit by bit, and those that have them are named."""
    names = [name for name in CONVENTIONS if dim % 2 == 0 or name not in EVEN_ONLY]
    tables = {name: posenc.convention(name, dim).table(60, start=0, dtype="float64") for name in names}
    for name, table in tables.items():
        found = posenc.identify(table)
        assert found.others == ()
        for other in names:
            same = np.array_equal(tables[other], table)
            if other != "diffusers":  # which is many
                assert (other in found.names) == same, (name, other)
            elif same:
                assert other in found.names


@pytest.mark.parametrize("start", [-40, 2, 37, 10**6, 10**7])
@pytest.mark.parametrize("name", ["transformer", "whisper", "diffusion"])
def test_starts(name, start):
    for dtype in DTYPES[1:3]:
        match = posenc.identify(posenc.convention(name, 64).table(50, start=start, dtype=dtype))
        assert name in match.names
        assert (match.first, match.misrounded) == (start, 0)


@pytest.mark.parametrize("base", [20.0, 500000.0, 1e9, 1234.0, 10000.01])
@pytest.mark.parametrize("name", ["transformer", "whisper", "diffusion"])
def test_bases(name, base):
    for dtype in ("float64", "float32"):
        called = "max_period" if name == "diffusion" else "base"
        match = posenc.identify(posenc.convention(name, 32, **{called: base}).table(300, dtype=dtype))
        assert (match.names[0], match.extras) == (name, {called: base})
        assert (match.misrounded, match.is_fitted) == (0, False)


def test_a_base_that_is_not_round_is_an_estimate():
    table = recipe(range(500), 64, base=40890.1234)
    match = posenc.identify(table)
    assert (match.names[0], match.is_fitted, match.misrounded, match.worst) == ("marian", True, None, None)
    assert match.extras["base"] == pytest.approx(40890.1234, rel=1e-5)
    known = posenc.identify(table, base=40890.1234)
    assert (known.names[0], known.is_fitted) == ("marian", False)
    assert known.misrounded == (table != posenc.Encoding(64, base=40890.1234, layout="concatenated").table(500)).sum()


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("diffusers", {"downscale_freq_shift": 2}),
        ("diffusers", {"downscale_freq_shift": 0.5, "flip_sin_to_cos": True}),
        ("tensor2tensor", {"min_timescale": 3.0, "max_timescale": 20000.0}),
        ("diffusers", {"scale": 0.7}),
        ("depthcharge", {"min_wavelength": 0.7, "max_wavelength": 300.0}),
        ("mlx", {"full_turns": True}),
        ("mlx", {"cos_first": True}),
    ],
    ids=str,
)
def test_extras(name, extras):
    encoding = posenc.convention(name, 16, **extras)
    table = encoding.table(200, dtype="float64")
    match = posenc.identify(table)
    assert match.misrounded in (0, None)
    made = match.encoding.encode(match.first + match.step * np.arange(200), dtype="float64")
    np.testing.assert_allclose(made, table, atol=1e-9)


# ---- positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [range(0, 1000, 20), range(999, -1, -1), range(7, 7 + 300, 3)], ids=str)
def test_steps(positions):
    for dtype in DTYPES:
        match = posenc.identify(posenc.encode(positions, 64, dtype=dtype))
        assert (match.names[0], match.first, match.step) == ("transformer", positions.start, positions.step)
        assert match.misrounded == 0


def test_any_positions():
    positions = np.random.default_rng(0).integers(0, 5000, 70)
    match = posenc.identify(posenc.encode(positions, 64))
    assert (match.first, match.step, match.misrounded) == (None, None, 0)
    np.testing.assert_array_equal(match.positions, positions)


def test_half_turns_leave_the_parity_only():
    """Octaves of pi are at a multiple of pi at every whole position."""
    match = posenc.identify(posenc.convention("octaves", 16, pi=True).table(50))
    assert (match.names, match.extras, match.misrounded) == (("octaves",), {"pi": True}, 0)
    np.testing.assert_array_equal(np.abs(match.positions) % 2, np.arange(50) % 2)


def test_fractions():
    eighths = posenc.identify(posenc.encode(np.arange(60) / 8 + 3, 64))
    assert (eighths.first, eighths.step, eighths.misrounded, eighths.is_fitted) == (3.0, 0.125, 0, False)
    positions = np.random.default_rng(0).uniform(0.0, 1000.0, 50)
    any_ones = posenc.identify(posenc.encode(positions, 64))
    assert (any_ones.names[0], any_ones.is_fitted, any_ones.misrounded) == ("transformer", True, None)
    np.testing.assert_allclose(any_ones.positions, positions, rtol=1e-5)


def test_single_rows():
    for position in (1, 2, 100, 5000):
        match = posenc.identify(posenc.encode([position], 64))
        assert (match.names[0], match.first, match.others) == ("transformer", position, ())
    first = posenc.identify(posenc.table(1, 64))
    assert first.names[0] == "transformer"
    assert "octaves" in first.others  # any frequencies would do


@pytest.mark.parametrize("start", [0, 10**5, 10**6, 10**7, 2**24 - 100])
def test_float32_arithmetic(start):
    """Whatever it loses: 0.04 at a million."""
    table = recipe(range(start, start + 100), 64)
    match = posenc.identify(table)
    truth = posenc.convention("marian", 64).table(100, start=start)
    assert (match.names[0], match.first, match.extras) == ("marian", start, {})
    assert match.misrounded == (table != truth).sum() > 1000
    errors = np.abs(table.astype(np.float64) - truth)
    assert match.worst.error == errors.max() == errors[match.worst.at]
    assert (match.worst.got, match.worst.want) == (table[match.worst.at], truth[match.worst.at])
    assert match.worst.ulps == match.worst.error / np.spacing(np.abs(truth[match.worst.at]))


def test_worst_entry_against_mpfr():
    table = posenc.table(100, 8)
    table[60, 3] += np.float32(0.25)
    table[61, 2] = np.nextafter(table[61, 2], np.float32(2))
    match = posenc.identify(table)
    assert (match.misrounded, match.worst.at) == (2, (60, 3))
    cosine = oracle.sin_cos(60, oracle.power(10000, -2, 8))[1]
    assert match.worst.want == oracle.rounded(cosine, "float32")


def test_the_first_position_may_be_known():
    table = posenc.encode([7], 2)
    assert posenc.identify(table, first=7).first == 7
    assert posenc.identify(table, first=8) is None
    assert posenc.identify(posenc.table(50, 16), convention="marian") is None
    assert posenc.identify(posenc.table(50, 16), convention="multidim").names == ("multidim",)


# ---- dtypes, shapes, amplitudes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_widened_tables(narrow):
    for wide in (np.float32, np.float64):
        match = posenc.identify(posenc.table(60, 32, dtype=narrow).astype(wide))
        assert (match.names[0], match.dtype.name, match.misrounded) == ("transformer", narrow, 0)
    match = posenc.identify(posenc.table(60, 32).astype(np.float64))
    assert (match.dtype, match.misrounded) == (np.float32, 0)


def test_bfloat16_arrays():
    table = posenc.table(60, 32, dtype=bfloat16)
    table[5, 5] = 0
    match = posenc.identify(table)
    assert (match.misrounded, match.worst.at) == (1, (5, 5))


def test_axes_of_length_1_and_batches():
    table = posenc.table(40, 16)
    for array in (table[None], table[:, None], table[None, None], table.astype(">f4")):
        match = posenc.identify(array)
        assert (match.names[0], match.first, match.misrounded) == ("transformer", 0, 0)
    changed = table[:, None].copy()
    changed[3, 0, 4] = 0.5
    assert posenc.identify(changed).worst.at == (3, 0, 4)
    batch = posenc.identify(np.stack([table[:20], table[:20]]))
    np.testing.assert_array_equal(batch.positions, [*range(20), *range(20)])


def test_amplitudes():
    for amplitude in (8.0, 0.02, 0.125, 3.0):
        match = posenc.identify(posenc.Encoding(64, amplitude=amplitude).table(50))
        assert (match.names[0], match.encoding.amplitude, match.misrounded) == ("transformer", amplitude, 0)
    match = posenc.identify(posenc.table(50, 64) * np.float32(0.123456789))
    assert (match.is_fitted, match.misrounded) == (True, None)
    assert match.encoding.amplitude == pytest.approx(0.123456789, rel=1e-6)


def test_rows_of_zeros():
    table = posenc.convention("fairseq", 16).table(50, start=0)
    table[1] = 0
    match = posenc.identify(table)
    assert (match.names[0], match.extras, match.first, match.zero_rows) == ("fairseq", {}, 0, (1,))
    assert (match.misrounded, match.entries) == (0, 49 * 16)


def test_sample():
    table = posenc.table(5000, 16)
    table[1::2] = np.nextafter(table[1::2], np.float32(2))
    match = posenc.identify(table, sample=10)
    assert match.entries == 160
    assert 0 < match.misrounded <= 160


# ---- grids -----------------------------------------------------------------------------------------------------------

GRID_OPTIONS = {
    "mae": [{}, {"order": "hw"}, {"base_size": 8.0}],
    "timm": [{}, {"base": 500.0}],
    "simplevit": [{}, {"order": "yx"}],
    "detr": [{}, {"order": "xy"}, {"normalize": True}, {"normalize": True, "base": 20.0}],
    "multidim": [{}, {"order": "yx"}],
    "tensor2tensor": [{}],
}


@pytest.mark.parametrize("name", GRID_OPTIONS)
@pytest.mark.parametrize(("shape", "dim", "dtype"), [((3, 4), 16, "float16"), ((6, 6), 32, "float32"), ((9, 5), 16, "float32")])
def test_grids(name, shape, dim, dtype):
    for options in GRID_OPTIONS[name]:
        table = posenc.grid(shape, dim, convention=name, dtype=dtype, **options)
        for array in (table, table.reshape(-1, dim)):
            match = posenc.identify(array)
            assert name in match.names, options
            assert (match.shape, match.misrounded) == (shape, 0), options
            made = posenc.grid(match.shape, dim, convention=match.names[0], dtype=dtype, **match.extras)
            np.testing.assert_array_equal(made, table)


def test_grids_of_three_axes():
    assert set(GRID_OPTIONS) | {"video"} == set(GRIDS)
    for name, dim in (("video", 32), ("multidim", 24), ("tensor2tensor", 24)):
        table = posenc.grid((2, 3, 5), dim, convention=name)
        match = posenc.identify(table)
        assert (match.names[0], match.shape, match.misrounded) == (name, (2, 3, 5), 0)


def test_grids_with_a_wrong_entry_and_a_row_of_zeros():
    table = posenc.grid((5, 7), 16, convention="mae").reshape(-1, 16)
    table = np.concatenate([np.zeros((1, 16), np.float32), table])
    table[20, 3] = np.nextafter(table[20, 3], np.float32(2))
    match = posenc.identify(table[None])
    assert (match.shape, match.zero_rows, match.misrounded, match.worst.at) == ((5, 7), (0,), 1, (0, 20, 3))
    table[20, 3] += np.float32(0.5)
    assert posenc.identify(table) is None


# ---- what is none ----------------------------------------------------------------------------------------------------


def nothing():
    rng = np.random.default_rng(5)
    yield "normal", rng.normal(size=(200, 64))
    yield "trained", (rng.normal(size=(512, 256)) * 0.02).astype(np.float32)
    yield "uniform", rng.uniform(-1.0, 1.0, (100, 5))
    yield "phases", np.concatenate([np.sin(a := rng.uniform(0, 6, (100, 32))), np.cos(a)], axis=1)
    yield "few phases", np.concatenate([np.sin(a := rng.uniform(0, 6, (1, 8))), np.cos(a)], axis=1).astype(np.float16)
    yield "ones", np.ones((6, 8))
    yield "few ones", np.ones((4, 4))
    yield "half", np.full((6, 8), 0.5, np.float32)
    yield "zeros", np.zeros((6, 8))
    yield "unit", np.eye(16)
    yield "nan", np.full((6, 8), np.nan)
    yield "huge", rng.normal(size=(50, 8)) * 1e300
    yield "infinite", np.full((6, 8), np.inf)
    yield "integers", np.arange(64.0).reshape(8, 8)
    yield "shuffled columns", posenc.table(100, 16)[:, rng.permutation(16)]
    yield "one column more", np.concatenate([posenc.table(50, 16), posenc.table(50, 16)[:, :2]], axis=1)
    yield "other cosines", np.where(np.arange(32) % 2 == 0, posenc.table(99, 32), posenc.table(99, 32, base=500.0))
    yield "sines only", posenc.schemes.sine(60, 16)
    yield "sum", posenc.table(50, 16) + 0.1


NOTHING = dict(nothing())


@pytest.mark.parametrize("what", NOTHING)
def test_what_follows_no_convention(what):
    assert posenc.identify(NOTHING[what]) is None


def test_not_a_number_here_and_there():
    table = posenc.table(100, 16)
    table[50, 2] = np.nan
    match = posenc.identify(table)
    assert (match.names[0], match.misrounded, match.worst.at) == ("transformer", 1, (50, 2))
    assert np.isnan(match.worst.error)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.arange(8), TypeError, "table has dtype int64; it must be float32, float64, float16 or bfloat16"),
        (np.zeros(8), ValueError, r"table has shape \(8,\); it must have rows of two columns or more"),
        (np.zeros((0, 8)), ValueError, r"table has shape \(0, 8\); it must have rows of two columns or more"),
        (np.zeros((8, 1)), ValueError, r"table has shape \(8, 1\); it must"),
        (np.zeros((2, 2), complex), TypeError, "table has dtype complex128; it must"),
        ([[1.0], [2.0, 3.0]], ValueError, "table is a list that is no array"),
    ],
)
def test_refused_tables(table, error, words):
    if words.startswith("table has dtype int"):
        table = table.astype(np.int64)
    with pytest.raises(error, match=words):
        posenc.identify(table)


@pytest.mark.parametrize(
    ("hints", "error", "words"),
    [
        ({"convention": "nobody"}, ValueError, "convention is 'nobody'; it must be one of 'transformer', "),
        ({"base": 0.0}, ValueError, "base is 0.0; it must be positive"),
        ({"first": 0.5}, TypeError, "first must be an integer, not float 0.5"),
        ({"sample": 0}, ValueError, "sample is 0; it must be at least 1"),
    ],
)
def test_refused_hints(hints, error, words):
    with pytest.raises(error, match=words):
        posenc.identify(posenc.table(4, 4), **hints)


# ---- the command line ------------------------------------------------------------------------------------------------


def verify(capsys, *arguments):
    """The exit code and what is said."""
    try:
        code = _cli.main(["verify", *map(str, arguments)])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    return code, said.out, said.err


def test_verify(tmp_path, capsys):
    file = tmp_path / "table.npy"
    np.save(file, recipe(range(200), 16))
    code, out, err = verify(capsys, file)
    match = posenc.identify(np.load(file))
    worst = match.worst
    at = f"[{worst.at[0]}, {worst.at[1]}]"
    values = f"got {worst.got.hex()} ({worst.got:.9g}), want {worst.want.hex()} ({worst.want:.9g})"
    assert (code, err) == (0, "")
    assert out == (
        "convention   marian (the same values: diffusers)\n"
        "extras       base 10000\n"
        "positions    from 0\n"
        "table        (200, 16) float32\n"
        f"misrounded   {100 * match.misrounded / 3200:.3g} % of 3200 entries\n"
        f"worst        {at}: {values}, {worst.ulps:.3g} ulp, {worst.error:.2g}\n"
    )
    assert verify(capsys, file, "--strict") == (4, out, "")


def test_verify_says_what_else_there_is(tmp_path, capsys):
    file = tmp_path / "table.npy"
    table = posenc.convention("fairseq", 16, base=500000.0).table(50, start=0).astype(np.float64)
    table[1] = 0
    np.save(file, table)
    code, out, _ = verify(capsys, file, "--strict")
    assert code == 0
    assert out.splitlines()[1:] == [
        "extras       base 500000",
        "positions    from 0",
        "table        (50, 16) float64, of float32 numbers",
        "zero rows    1 (not compared)",
        "misrounded   none of 784 entries",
    ]
    np.save(file, posenc.grid((3, 4), 16, convention="timm"))
    assert "\ngrid         3 x 4\n" in verify(capsys, file)[1]
    np.save(file, posenc.encode(range(0, 100, 5), 16))
    assert "\npositions    from 0, 5 from row to row\n" in verify(capsys, file)[1]
    np.save(file, posenc.encode([3, 1, 4, 1, 5, 9, 2, 6], 16))
    assert "\npositions    3, 1, 4, 1, 5, 9, ..., not evenly spaced\n" in verify(capsys, file)[1]


def test_verify_json(tmp_path, capsys):
    file = tmp_path / "table.npy"
    np.save(file, posenc.convention("whisper", 16).table(50, start=9))
    code, out, _ = verify(capsys, file, "--json", "--first", "9", "--convention", "whisper", "--sample", "7")
    fields = json.loads(out)
    assert code == 0
    assert fields["table"] == {"shape": [50, 16], "dtype": "float32"}
    assert (fields["names"], fields["first"], fields["entries"], fields["misrounded"]) == (["whisper"], 9, 112, 0)
    np.save(file, np.ones((4, 4)))
    code, out, _ = verify(capsys, file, "--json")
    assert (code, json.loads(out)["names"]) == (3, [])


def test_verify_of_no_convention(tmp_path, capsys):
    file = tmp_path / "table.npy"
    np.save(file, NOTHING["normal"])
    assert verify(capsys, file) == (3, "convention   none that posenc knows\ntable        (200, 64) float64\n", "")


def test_verify_of_no_table(tmp_path, capsys):
    for name, data in {"text.npy": b"hello", "empty.npy": b""}.items():
        (tmp_path / name).write_bytes(data)
        code, out, err = verify(capsys, tmp_path / name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{name}'; it must be a .npy file" in err
    np.savez(tmp_path / "many.npz", a=np.ones(3))
    code, _, err = verify(capsys, tmp_path / "many.npz")
    assert (code, err) == (2, f"posenc: file is '{tmp_path / 'many.npz'}'; it must hold one array, as a .npy file does\n")
    code, _, err = verify(capsys, tmp_path / "none.npy")
    assert (code, err.count("\n")) == (1, 1)
    np.save(tmp_path / "ints.npy", np.ones((3, 3), np.int64))
    code, _, err = verify(capsys, tmp_path / "ints.npy")
    assert (code, err) == (2, "posenc: table has dtype int64; it must be float32, float64, float16 or bfloat16\n")

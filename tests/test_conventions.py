"""The named conventions against exact witnesses and MPFR, and what people report of others."""

import math
import pickle
from fractions import Fraction

import numpy as np
import oracle
import pytest

import posenc
from posenc import CONVENTIONS, convention

gmpy2 = pytest.importorskip("gmpy2", reason="conventions are compared with MPFR")

#: The nearest float64 to each entry, computed with MPFR.
WITNESSES = [
    ("transformer", 4, 1, "0.8414709848078965 0.54030230586813977 0.0099998333341666645 0.99995000041666526"),
    (
        *("transformer", 5, 1),
        "0.8414709848078965 0.54030230586813977 0.025116222909773781 0.99968453791520984 0.00063095730261542027",
    ),
    ("marian", 5, 3, "0.14112000805986721 0.075285292998888961 0.001892870903091888 -0.98999249660044542 0.99716203530723702"),
    ("tensor2tensor", 4, 1, "0.8414709848078965 9.999999983333333e-05 0.54030230586813977 0.99999999500000003"),
    (
        *("tensor2tensor", 7, 3),
        "0.14112000805986721 0.02999550020249566 0.00029999999550000005 "
        "-0.98999249660044542 0.99955003374898754 0.99999995500000038 0",
    ),
    ("tensor2tensor", 2, 3, "0.14112000805986721 -0.98999249660044542"),
    (
        *("musicgen", 6, 3),
        "-0.98999249660044542 0.99955003374898754 0.99999995500000038 "
        "0.14112000805986721 0.02999550020249566 0.00029999999550000005",
    ),
    ("diffusion", 4, 1, "0.54030230586813977 0.99995000041666526 0.8414709848078965 0.0099998333341666645"),
    (
        *("diffusion", 7, 0.5),
        "0.87758256189037276 0.99973070775099993 0.99999941980145191 "
        "0.47942553860420301 0.023205860890834911 0.0010772171366826206 0",
    ),
    ("multidim", 5, 3, "0.14112000805986721 -0.98999249660044542 0.13879810108005053 0.990320699135675 0.006463259070189643"),
]


@pytest.mark.parametrize(("name", "dim", "position", "row"), WITNESSES)
def test_witnesses(name, dim, position, row):
    got = convention(name, dim).encode(position, dtype="float64")
    assert got.tolist() == [float(value) for value in row.split()]


def real(value):
    with gmpy2.context(oracle.WIDE):
        return gmpy2.mpfr(gmpy2.mpq(value))


def power(base, exponent, *factors):
    """base**exponent times the factors, rationals or MPFR's numbers."""
    with gmpy2.context(oracle.WIDE):
        value = real(base) ** gmpy2.mpq(exponent)
        for factor in factors:
            value *= gmpy2.mpq(factor) if isinstance(factor, Fraction | int | float) else factor
        return value


def pi():
    with gmpy2.context(oracle.WIDE):
        return gmpy2.const_pi()


F = Fraction


def by_paper(base, d, n):
    return [power(base, F(-2 * k, d)) for k in range(n)]


def by_shift(base, n, shift):
    return [power(base, F(-k) / (n - F(shift)) if k else 0) for k in range(n)]


#: Name, extras, and the numbers of d and n = d // 2 by the formula.
FORMULAS = [
    ("transformer", {}, lambda d, n: by_paper(10000, d, (d + 1) // 2)),
    ("transformer", {"base": 77.7}, lambda d, n: by_paper(77.7, d, (d + 1) // 2)),
    ("marian", {}, lambda d, n: by_paper(10000, d, (d + 1) // 2)),
    ("tensor2tensor", {}, lambda d, n: by_shift(10000, n, 1)),
    (
        "tensor2tensor",
        {"min_timescale": 2.0, "max_timescale": 2e4},
        lambda d, n: [power(10**4, F(-k, max(n - 1, 1)), F(1, 2)) for k in range(n)],
    ),
    ("ddpm", {}, lambda d, n: by_shift(10000, n, 1)),
    ("fairseq", {"padding_idx": 5}, lambda d, n: by_shift(10000, n, 1)),
    ("opennmt-tf", {"base": 500.0}, lambda d, n: by_shift(500, n, 1)),
    ("whisper", {}, lambda d, n: by_shift(10000, n, 1)),
    ("musicgen", {}, lambda d, n: by_shift(10000, n, 1)),
    ("diffusion", {"max_period": 100.0}, lambda d, n: by_shift(100, n, 0)),
    ("diffusers", {}, lambda d, n: by_shift(10000, n, 1)),
    (
        "diffusers",
        {"downscale_freq_shift": 0.5, "scale": 0.3, "flip_sin_to_cos": True, "max_period": 123.0},
        lambda d, n: [power(123, F(-k) / (n - F(1, 2)), F(0.3)) for k in range(n)],
    ),
    ("mlx", {}, lambda d, n: [power(1e-4, F(k, max(n - 1, 1))) for k in range(n)]),
    ("mlx", {"full_turns": True, "scale": 2.0}, lambda d, n: [power(1e-4, F(k, max(n - 1, 1)), 2, pi()) for k in range(n)]),
    ("multidim", {}, lambda d, n: by_paper(10000, d + d % 2, (d + 1) // 2)),
    (
        "depthcharge",
        {"min_wavelength": 3.0, "max_wavelength": 700.0},
        lambda d, n: [power(F(700, 3), F(-k, max(n - 1, 1)), F(2, 3), pi()) for k in range(n)],
    ),
    ("rope", {}, lambda d, n: by_paper(10000, d, n)),
    ("rope_halves", {}, lambda d, n: by_paper(10000, d, n)),
    ("octaves", {}, lambda d, n: [real(2**k) for k in range(n)]),
    ("octaves", {"pi": True}, lambda d, n: [power(2, k, pi()) for k in range(n)]),
]


def test_every_convention_has_a_formula_here():
    assert {name for name, *_ in FORMULAS} == set(CONVENTIONS)


@pytest.mark.parametrize(("name", "extras", "numbers"), FORMULAS, ids=lambda value: "" if callable(value) else str(value))
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 30, 129])
def test_entries(name, extras, numbers, dim, dtype):
    entry = CONVENTIONS[name]
    if entry.odd == "error" and dim % 2:
        with pytest.raises(ValueError, match=f"dim is {dim}; for '{name}' it must be even"):
            convention(name, dim, **extras)
        return
    encoding = convention(name, dim, **extras)
    rng = np.random.default_rng(dim)
    most = 2.0 ** min(20, 60 - dim // 2) if name == "octaves" else 2.0**20
    positions = [
        encoding.first,
        *(rng.uniform(-1, 1, 6) * most).tolist(),
        *rng.integers(-int(most) - 1, int(most) + 1, 6).tolist(),
    ]
    settings = {"layout": entry.layout, "odd": entry.odd, "cos_first": encoding.cos_first, "amplitude": encoding.amplitude}
    frequencies = numbers(dim, dim // 2)
    columns = sorted({*rng.integers(0, dim, 40).tolist(), dim - 1})
    want = oracle.entries(positions, columns, dim, frequencies=frequencies, dtype=dtype, **settings)
    got = np.ascontiguousarray(encoding.encode(positions, dtype=dtype)[:, columns])
    doubles = oracle.entries(positions, columns, dim, frequencies=frequencies, dtype="float64", **settings)
    exact = np.abs(doubles) < 2.0**-300  # MPFR's sine of a rounded multiple of pi is not the 0 that it should be
    assert not got[exact].any()
    assert not np.signbit(got[exact]).any()
    number = oracle.INTEGERS[dtype]
    wrong = (got.view(number) != want.view(number)) & ~exact
    assert not wrong.any(), oracle.mismatches(got, want, positions, columns, (name, dim))


def test_amplitude_of_mlx():
    for dim in range(2, 400, 2):
        with gmpy2.context(oracle.WIDE):
            assert convention("mlx", dim).amplitude == oracle.rounded(gmpy2.sqrt(gmpy2.mpq(2, dim)), "float64")


def test_settings():
    assert convention("transformer", 6) == posenc.Encoding(6)
    assert hash(convention("transformer", 6)) == hash(posenc.Encoding(6))
    assert convention("fairseq", 6, padding_idx=1).first == 2
    assert convention("fairseq", 6, padding_idx=0).table(1).tobytes() == convention("ddpm", 6).table(1, start=1).tobytes()
    assert convention("opennmt-tf", 6).first == 1
    for name in CONVENTIONS:
        encoding = convention(name, 6)
        copy = pickle.loads(pickle.dumps(encoding))
        assert (copy, copy.table(3).tobytes()) == (encoding, encoding.table(3).tobytes())
        from_repr = eval(repr(encoding), {"Encoding": posenc.Encoding, "frequencies": posenc.frequencies})
        assert from_repr == encoding
        assert CONVENTIONS[name].users in repr(CONVENTIONS[name])
        assert CONVENTIONS[name].source in repr(CONVENTIONS[name])


def test_coincidences():
    """Where the table says that conventions are the same."""
    for dim in (4, 6, 7, 30):
        for p in (0, 3, -7, 0.5):
            row = {name: convention(name, dim).encode(p) for name in CONVENTIONS if CONVENTIONS[name].odd != "error"}
            assert (row["tensor2tensor"] == row["ddpm"]).all()
            assert (row["fairseq"] == row["ddpm"]).all()
            assert (row["diffusers"] == row["ddpm"]).all()
            turned = convention("diffusers", dim, flip_sin_to_cos=True, downscale_freq_shift=0).encode(p)
            assert (turned == row["diffusion"]).all()
            n = dim // 2
            assert (np.r_[row["musicgen"][n : 2 * n], row["musicgen"][:n], row["musicgen"][2 * n :]] == row["ddpm"]).all()
            if dim % 2 == 0:
                assert (row["transformer"] == row["multidim"]).all()
                assert (np.r_[row["transformer"][0::2], row["transformer"][1::2]] == row["marian"]).all()
                assert (convention("whisper", dim).encode(p) == row["ddpm"]).all()


def test_errors():
    for arguments, error, message in (
        (("nobody's", 4), ValueError, "name is \"nobody's\"; it must be one of 'transformer'"),
        ((4, 4), TypeError, "name must be a str"),
        (("marian", 0), ValueError, "dim is 0"),
        (("marian", -2), ValueError, "dim is -2"),
        (("marian", 4.0), TypeError, "dim must be an integer"),
        (("whisper", 3), ValueError, "dim is 3; for 'whisper' it must be even"),
    ):
        with pytest.raises(error, match=message):
            convention(*arguments)
    with pytest.raises(TypeError, match="padding_idx is no extra of 'whisper'; it has base"):
        convention("whisper", 4, padding_idx=1)
    with pytest.raises(TypeError, match="padding_idx must be an integer"):
        convention("fairseq", 4, padding_idx=0.5)
    with pytest.raises(ValueError, match=r"base is 0\.0"):
        convention("marian", 4, base=0.0)
    with pytest.raises(TypeError, match="flip_sin_to_cos must be a bool"):
        convention("diffusers", 4, flip_sin_to_cos=1)
    with pytest.raises(ValueError, match="shift is 2 and dim 4"):
        convention("diffusers", 4, downscale_freq_shift=2)


# ---- what people report of others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [7, 29])
def test_odd_widths_work(dim):
    for name, entry in CONVENTIONS.items():
        if entry.odd != "error":
            assert convention(name, dim).table(3).shape == (3, dim)


@pytest.mark.parametrize("name", ["tensor2tensor", "fairseq", "musicgen", "ddpm"])
def test_narrow_rows_under_shift_1(name):
    assert np.isfinite(convention(name, 2).table(5)).all()
    assert np.isfinite(convention(name, 3).table(5)).all()
    assert not convention(name, 3).table(5)[:, 2].any()


def test_min_timescale_divides():
    found = convention("tensor2tensor", 4, min_timescale=2.0, max_timescale=2e4)
    assert found.frequencies.tolist() == [0.5, 5e-5]


def test_each_cosine_has_the_frequency_of_its_sine():
    for name in CONVENTIONS:
        encoding = convention(name, 12)
        sines, cosines = encoding.sincos(np.arange(50), dtype="float64")
        assert np.allclose(sines**2 + cosines**2, encoding.amplitude**2, rtol=1e-15)


def test_no_half_precision_inside():
    """Position 1857 at width 32: angles in half precision are off by more than a half."""
    got = posenc.encode(1857, 32, dtype="float16")
    want = oracle.entries([1857], range(32), 32, dtype="float16")[0]
    assert got.tobytes() == want.tobytes()


def test_long_positions_and_lengths():
    want = oracle.entries([131071], range(64), 64, dtype="float32")[0]
    assert posenc.encode(131071, 64).tobytes() == want.tobytes()
    assert posenc.table(5002, 64)[5001].tobytes() == oracle.entries([5001], range(64), 64, dtype="float32")[0].tobytes()


def test_padding_on_the_left_and_other_pad_ids():
    assert posenc.positions_from_mask([0, 0, 1, 1]).tolist() == [0, 0, 0, 1]
    assert posenc.positions_from_ids([5, 6, 1], 1).tolist() == [2, 3, 1]
    ids = np.array([[7, 8, 9, 1], [5, 1, 1, 1]])
    rows = convention("fairseq", 6).encode(posenc.positions_from_ids(ids, 1), where=ids != 1)
    table = convention("fairseq", 6).table(3)
    assert (rows[0, :3] == table).all()
    assert (rows[1, 0] == table[0]).all()
    assert not rows[ids == 1].any()


def test_relative_tables_have_signs():
    """Descending positions, ESPnet's and Transformer-XL's: sines of the negative half change sign."""
    length = 6
    rows = posenc.encode(range(length - 1, -length, -1), 8)
    assert (rows[:, 0::2] == -rows[::-1, 0::2]).all()
    assert (rows[:, 1::2] == rows[::-1, 1::2]).all()
    assert (rows[:length][::-1] == posenc.table(length, 8)).all()
    assert math.copysign(1.0, rows[length - 1, 0]) == 1.0


def test_depthcharge_at_whole_turns():
    """Its last wave is rational in turns, too: these once went on for ever."""
    encoding = convention("depthcharge", 4)
    for position, pair in ((10000, [0.0, 1.0]), (2500, [1.0, 0.0]), (-5000, [0.0, -1.0])):
        assert encoding.encode(position, dtype="float64")[1::2].tolist() == pair

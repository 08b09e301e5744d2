"""What is true of sines and cosines is true of encodings: hypothesis chooses the settings."""

import numpy as np
import pytest

import posenc

hypothesis = pytest.importorskip("hypothesis", reason="the settings are chosen by hypothesis")
st = hypothesis.strategies

settings = hypothesis.settings(deadline=None, database=None, max_examples=150)
POSITIONS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.sampled_from([0, 1, 0.5, 2.0**20]))
DTYPES = st.sampled_from(["float64", "float32", "float16"])


@st.composite
def encodings(draw):
    dim = draw(st.integers(1, 40)) * 2 + draw(st.integers(0, 1))
    return posenc.Encoding(
        dim,
        base=draw(st.floats(1.5, 1e6)),
        layout=draw(st.sampled_from(["interleaved", "concatenated"])),
        cos_first=draw(st.booleans()),
        odd="zero",
        amplitude=draw(st.floats(0.1, 8.0)),
    )


@settings
@hypothesis.given(encodings(), POSITIONS)
def test_squares_sum_up_to_that_of_the_amplitude(encoding, position):
    sines, cosines = encoding.sincos(position, dtype="float64")
    assert np.allclose(sines**2 + cosines**2, encoding.amplitude**2, rtol=1e-15, atol=0)


@settings
@hypothesis.given(encodings(), POSITIONS, DTYPES)
def test_sines_are_odd_and_cosines_even(encoding, position, dtype):
    sines, cosines = encoding.sincos(position, dtype=dtype)
    negative_sines, negative_cosines = encoding.sincos(-position, dtype=dtype)
    assert (negative_sines == -sines).all()
    assert (negative_cosines == cosines).all()


@settings
@hypothesis.given(encodings(), st.integers(-(2**50), 2**50), st.integers(0, 200), DTYPES, st.randoms(use_true_random=False))
def test_tables_ranges_and_shuffled_positions_agree(encoding, start, length, dtype, random):
    table = encoding.table(length, start=start, dtype=dtype)
    positions = list(range(start, start + length))
    random.shuffle(positions)
    shuffled = encoding.encode(np.array(positions, np.int64), dtype=dtype)
    order = np.array(positions, np.int64) - start
    assert table.tobytes() == encoding.encode(range(start, start + length), dtype=dtype).tobytes()
    assert table[order].tobytes() == shuffled.tobytes()
    assert table[::-1].tobytes() == encoding.encode(range(start, start + length)[::-1], dtype=dtype).tobytes()


@settings
@hypothesis.given(encodings(), st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))
def test_rotating_is_shifting(encoding, position, delta):
    encoding = encoding.replace(amplitude=1.0)
    row, want = encoding.encode(position, dtype="float64"), encoding.encode(position + delta, dtype="float64")
    assert np.allclose(encoding.rotate(row, delta), want, rtol=0, atol=1e-11)
    assert np.allclose(encoding.shift_matrix(delta) @ row, want, rtol=0, atol=1e-11)


@settings
@hypothesis.given(encodings(), st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_similarity_is_the_symmetric_dot_product(encoding, position, delta):
    dot = encoding.encode(position, dtype="float64") @ encoding.encode(position + delta, dtype="float64")
    assert encoding.similarity(delta) == encoding.similarity(-delta)
    assert abs(encoding.similarity(delta) - dot) <= 1e-13 * encoding.dim * encoding.amplitude**2

"""Positions from masks, ids and lengths: loops in Python are the judge, and inputs stay as they were, byte for byte."""

import array
import math
from functools import partial

import numpy as np
import pytest

import posenc
from posenc._counting import positions_from_ids, positions_from_lengths, positions_from_mask

INTEGERS = [np.dtype(code) for code in "bBhHiIlLqQ"]
INTEGERS += [kind.newbyteorder() for kind in INTEGERS if kind.itemsize > 1]
SIGNED = [kind for kind in INTEGERS if kind.kind == "i"]
SHAPES = [(0,), (1,), (2,), (50,), (0, 4), (3, 0), (1, 1), (4, 9), (2, 3, 5), (2, 0, 3), (3, 1, 2, 4)]

BY_NAME = {
    "mask": positions_from_mask,
    "ids": partial(positions_from_ids, padding_idx=1),
    "lengths": positions_from_lengths,
}


def rows(shape):
    """The index of each row along the last axis."""
    return list(np.ndindex(shape[:-1]))


def loop_mask(mask):
    expected = np.full(mask.shape, -7, np.int64)
    for row in rows(mask.shape):
        seen = 0
        for j, kept in enumerate(mask[row].tolist()):
            expected[(*row, j)] = seen if kept else 0
            seen += bool(kept)
    return expected


def loop_ids(ids, padding_idx):
    expected = np.full(ids.shape, -7, np.int64)
    for row in rows(ids.shape):
        seen = 0
        for j, token in enumerate(ids[row].tolist()):
            seen += token != padding_idx
            expected[(*row, j)] = padding_idx + seen if token != padding_idx else padding_idx
    return expected


def loop_lengths(lengths):
    return np.array([p for n in lengths for p in range(int(n))], np.int64)


def same(result, expected):
    """The very numbers expected, in an array as every caller expects it."""
    assert type(result) is np.ndarray
    assert result.dtype == np.int64
    assert result.dtype.isnative
    assert result.shape == expected.shape
    assert result.tolist() == expected.tolist()
    assert result.flags.c_contiguous
    assert result.flags.writeable


def refused(error, message, call, *arguments):
    with pytest.raises(error) as info:
        call(*arguments)
    assert str(info.value) == message


# ---- what people report of others ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 0, 1]),
        ([1, 1, 0, 0], [0, 1, 0, 0]),
        ([1, 0, 1, 0, 1], [0, 0, 1, 0, 2]),
        ([0, 0, 0], [0, 0, 0]),
        ([True, True, True], [0, 1, 2]),
        ([[False, True], [True, True]], [[0, 0], [0, 1]]),
    ],
)
def test_mask(mask, expected):
    same(positions_from_mask(mask), np.array(expected))


@pytest.mark.parametrize(
    ("ids", "padding_idx", "expected"),
    [
        ([5, 6, 1], 1, [2, 3, 1]),
        ([1, 1, 5, 6], 1, [1, 1, 2, 3]),
        ([5, 1, 6, 1, 7], 1, [2, 1, 3, 1, 4]),
        ([5, 6, 0], 0, [1, 2, 0]),
        ([5, 6, 1], 2, [3, 4, 5]),
        ([5, -1, 6], -1, [0, -1, 1]),
        ([9, -100, 9], -100, [-99, -100, -98]),
        ([[1, 1], [1, 5], [5, 5]], 1, [[1, 1], [1, 2], [2, 3]]),
    ],
)
def test_ids(ids, padding_idx, expected):
    same(positions_from_ids(ids, padding_idx), np.array(expected))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([3, 2], [0, 1, 2, 0, 1]),
        ([1, 1, 1], [0, 0, 0]),
        ([0, 3, 0, 0, 2, 0], [0, 1, 2, 0, 1]),
        ([4], [0, 1, 2, 3]),
        ([0], []),
        ([0, 0], []),
        ([], []),
    ],
)
def test_lengths(lengths, expected):
    same(positions_from_lengths(lengths), np.array(expected, np.int64))


def test_packed_rows_are_those_of_tables():
    packed = posenc.encode(positions_from_lengths([3, 0, 5]), 6)
    assert packed.tobytes() == posenc.table(3, 6).tobytes() + posenc.table(5, 6).tobytes()


def test_left_padding_does_not_shift():
    mask = np.array([[0, 0, 1, 1, 1]])
    encoded = posenc.encode(positions_from_mask(mask), 6, where=mask == 1)
    assert encoded.tobytes() == np.zeros((2, 6), np.float32).tobytes() + posenc.table(3, 6).tobytes()


# ---- random inputs against loops -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.dtype(bool), *INTEGERS], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_mask_of_any_shape_and_dtype(shape, kind):
    rng = np.random.default_rng(len(shape))
    for share in (0.0, 0.3, 0.7, 1.0):
        mask = (rng.random(shape) < share).astype(kind)
        same(positions_from_mask(mask), loop_mask(mask))


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ids_of_any_shape_and_dtype(shape, kind):
    rng = np.random.default_rng(len(shape))
    limits = np.iinfo(kind)
    paddings = {0, 1, 3, limits.min, -1, -128, -129, 127, 255, 256, 2**31, 2**53, 2**62, -(2**63), min(limits.max, 2**62)}
    for padding_idx in paddings:
        near = range(max(padding_idx - 2, limits.min), min(padding_idx + 2, limits.max) + 1)
        values = np.array([*near, *near, limits.min, limits.max, 0], kind)
        ids = rng.choice(values, shape).astype(kind)
        same(positions_from_ids(ids, padding_idx), loop_ids(ids, padding_idx))


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_lengths_of_any_dtype(kind):
    rng = np.random.default_rng(7)
    for sequences in (0, 1, 2, 3, 10, 100):
        for largest in (0, 1, 2, 5, 127):
            lengths = rng.integers(0, largest, sequences, endpoint=True).astype(kind)
            same(positions_from_lengths(lengths), loop_lengths(lengths))


def test_lengths_that_sum_beyond_their_dtype():
    lengths = np.full(5, 100, np.int8)
    same(positions_from_lengths(lengths), loop_lengths(lengths))
    lengths = np.full(300, 255, np.uint8)
    same(positions_from_lengths(lengths), loop_lengths(lengths))


def test_long_rows():
    """Counts go beyond the dtype of the mask and of the ids."""
    same(positions_from_mask(np.ones(70000, np.int8)), np.arange(70000))
    same(positions_from_ids(np.zeros(70000, np.uint8), 1), np.arange(2, 70002))
    same(positions_from_lengths([70000, 2]), np.array([*range(70000), 0, 1]))


@pytest.mark.parametrize(
    ("kind", "token", "padding_idx"),
    [
        (np.uint8, 255, -1),
        (np.uint16, 2**16 - 1, -1),
        (np.uint32, 2**32 - 1, -1),
        (np.uint64, 2**64 - 1, -1),
        (np.uint64, 2**63, -(2**63)),
        (np.int8, -1, 255),
        (np.int8, 44, 300),
        (np.uint8, 44, 300),
        (np.int32, 0, 2**32),
        (np.uint64, 2**53 + 1, 2**53),
        (np.int64, 2**53, 2**53 + 1),
        (np.uint64, 2**62 + 1, 2**62),
    ],
)
def test_an_id_that_is_padding_only_once_rounded_or_wrapped(kind, token, padding_idx):
    same(positions_from_ids(np.array([token, token], kind), padding_idx), np.array([padding_idx + 1, padding_idx + 2]))


# ---- how the input lies in memory ------------------------------------------------------------------------------------


def spread(given):
    wide = np.full((*given.shape[:-1], 2 * given.shape[-1]), 1, given.dtype)
    wide[..., ::2] = given
    return wide[..., ::2]


def misaligned(given):
    memory = np.zeros(given.nbytes + 1, np.uint8)
    result = np.ndarray(given.shape, given.dtype, memory, 1)
    result[...] = given
    return result


def read_only(given):
    result = given.copy()
    result.flags.writeable = False
    return result


LAYOUTS = {
    "as it is": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "transposed": lambda given: np.ascontiguousarray(given.T).T,
    "every other": spread,
    "reversed": lambda given: np.ascontiguousarray(given[..., ::-1])[..., ::-1],
    "reversed rows": lambda given: np.ascontiguousarray(given[::-1])[::-1],
    "misaligned": misaligned,
    "byte order": lambda given: given.astype(given.dtype.newbyteorder()),
    "read-only": read_only,
    "subclass": lambda given: given.view(type("Own", (np.ndarray,), {})),
}


@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, kind):
    rng = np.random.default_rng(3)
    mask = LAYOUTS[layout](rng.integers(0, 2, (5, 8)).astype(kind))
    calls = [(positions_from_mask, loop_mask, mask)]
    if kind != "bool":
        ids = LAYOUTS[layout](rng.integers(0, 4, (5, 8)).astype(kind))
        lengths = LAYOUTS[layout](rng.integers(0, 6, 20).astype(kind))
        calls += [
            (partial(positions_from_ids, padding_idx=2), partial(loop_ids, padding_idx=2), ids),
            (positions_from_lengths, loop_lengths, lengths),
        ]
    for call, judge, given in calls:
        before = given.tobytes()
        result = call(given)
        same(result, judge(np.array(given)))
        assert given.tobytes() == before
        assert not np.shares_memory(result, given)


def test_one_element_that_stands_for_all():
    same(positions_from_mask(np.broadcast_to(np.True_, (3, 4))), np.array([[0, 1, 2, 3]] * 3))
    same(positions_from_ids(np.broadcast_to(np.int8(7), (3, 4)), 1), np.array([[2, 3, 4, 5]] * 3))
    same(positions_from_lengths(np.broadcast_to(np.int8(2), 3)), np.array([0, 1] * 3))


class WithArray:
    """Something that NumPy makes an array of."""

    def __init__(self, *values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


@pytest.mark.parametrize("make", [list, tuple, np.array, partial(array.array, "l"), lambda values: WithArray(*values)])
def test_array_likes(make):
    same(positions_from_mask(make([0, 1, 1])), np.array([0, 0, 1]))
    same(positions_from_ids(make([0, 1, 1]), 1), np.array([2, 1, 1]))
    same(positions_from_lengths(make([0, 1, 2])), np.array([0, 0, 1]))


def test_ranges():
    same(positions_from_mask(range(2)), np.array([0, 0]))
    same(positions_from_ids(range(4), 1), np.array([2, 1, 3, 4]))
    same(positions_from_lengths(range(4)), np.array([0, 0, 1, 0, 1, 2]))


@pytest.mark.parametrize("empty", [[], (), range(0), [[], []], [[[]]]], ids=repr)
def test_empty_lists_have_no_dtype(empty):
    shape = np.shape(empty)
    same(positions_from_mask(empty), np.empty(shape, np.int64))
    same(positions_from_ids(empty, 1), np.empty(shape, np.int64))
    if len(shape) == 1:
        same(positions_from_lengths(empty), np.empty(0, np.int64))


@pytest.mark.parametrize("padding_idx", [1, *(kind.type(1) for kind in INTEGERS[:10]), np.array(1)], ids=repr)
def test_padding_idx_of_any_integer(padding_idx):
    same(positions_from_ids([5, 1, 6], padding_idx), np.array([2, 1, 3]))
    same(positions_from_ids(np.array([5, 1, 6], np.uint64), padding_idx), np.array([2, 1, 3]))


# ---- what is refused -------------------------------------------------------------------------------------------------

RIGHT = {
    "mask": "bool, or integers that are 0 or 1",
    "ids": "integers, of int64 or uint64 at most",
    "lengths": "integers, of int64 or uint64 at most",
}
WRONG = {
    "float64": [1.0, 0.0],
    "float32": np.array([1, 0], np.float32),
    "float16": np.array([1, 0], np.float16),
    "complex128": [1j, 0],
    "complex64": np.array([1, 0], np.complex64),
    "object": [1, None],
    "<U1": ["1", "0"],
    "|S1": [b"1", b"0"],
    "datetime64[D]": np.array(["2020-01-01"], "M8[D]"),
    "timedelta64[s]": np.array([1, 0], "m8[s]"),
    "[('a', 'i1')]": np.array([(1,), (0,)], [("a", "i1")]),
}
WRONG_BY_SIZE = {"float64": np.empty(0), "object": [2**64], "<U4": "text"}


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize(("kind", "value"), [*WRONG.items(), *WRONG_BY_SIZE.items(), ("object", None), ("object", {})])
def test_wrong_dtype(name, kind, value):
    refused(TypeError, f"{name} has dtype {kind}; it must be {RIGHT[name]}", BY_NAME[name], value)


@pytest.mark.parametrize("name", BY_NAME)
def test_wrong_dtype_bfloat16(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a type of ml_dtypes")
    value = np.ones(2, ml_dtypes.bfloat16)
    refused(TypeError, f"{name} has dtype bfloat16; it must be {RIGHT[name]}", BY_NAME[name], value)


@pytest.mark.parametrize("name", ["ids", "lengths"])
@pytest.mark.parametrize("value", [[True, False], np.ones(3, bool), np.empty(0, bool), True])
def test_bool_is_for_masks(name, value):
    refused(TypeError, f"{name} has dtype bool; it must be {RIGHT[name]}", BY_NAME[name], value)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("hidden", [False, [True, False]])
def test_masked_arrays(name, hidden):
    value = np.ma.array([1, 0], mask=hidden)
    refused(TypeError, f"{name} is a masked array; it must be an ndarray", BY_NAME[name], value)


@pytest.mark.parametrize("name", BY_NAME)
def test_ragged(name):
    message = f"{name} is a list that is no array; its rows must be of one length"
    refused(ValueError, message, BY_NAME[name], [[1], [1, 0]])


@pytest.mark.parametrize("value", [1, np.int64(1), np.array(1, np.uint8)])
def test_scalars(value):
    for name in ("mask", "ids"):
        message = f"{name} has shape (); it must have at least one axis, the last that of the sequence"
        refused(ValueError, message, BY_NAME[name], value)
    refused(ValueError, "lengths has shape (); it must be one-dimensional", positions_from_lengths, value)


def test_a_mask_that_is_a_scalar():
    message = "mask has shape (); it must have at least one axis, the last that of the sequence"
    for value in (True, np.False_, np.array(True)):
        refused(ValueError, message, positions_from_mask, value)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (0, 2), (2, 0), (1, 2, 3)], ids=str)
def test_lengths_have_one_axis(shape):
    message = f"lengths has shape {shape}; it must be one-dimensional"
    refused(ValueError, message, positions_from_lengths, np.ones(shape, np.int64))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([2], "mask[0] is 2; it must be 0 or 1"),
        ([0, 1, -1, 2], "mask[2] is -1; it must be 0 or 1"),
        ([[0, 1], [1, 5]], "mask[1, 1] is 5; it must be 0 or 1"),
        ([[[0, 1, 9]], [[7, 1, 1]]], "mask[0, 0, 2] is 9; it must be 0 or 1"),
        (np.array([1, 255], np.uint8), "mask[1] is 255; it must be 0 or 1"),
        (np.array([1, 256], np.int16), "mask[1] is 256; it must be 0 or 1"),
        (np.array([0, -128], np.int8), "mask[1] is -128; it must be 0 or 1"),
        (np.array([2**64 - 1], np.uint64), "mask[0] is 18446744073709551615; it must be 0 or 1"),
        (np.array([[1, 2**32]]), "mask[0, 1] is 4294967296; it must be 0 or 1"),
        (np.array([0, 3], ">i4"), "mask[1] is 3; it must be 0 or 1"),
    ],
)
def test_masks_are_zeros_and_ones(mask, message):
    refused(ValueError, message, positions_from_mask, mask)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(1), "1", None, [1], np.array([1]), np.array(1.0)], ids=repr)
def test_padding_idx_is_an_integer(value):
    message = f"padding_idx must be an integer, not {type(value).__name__} {value!r}"
    refused(TypeError, message, positions_from_ids, [5, 1], value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, -(2**70), np.uint64(2**63)], ids=repr)
@pytest.mark.parametrize("ids", [[], [5, 1], np.array([2**63], np.uint64)], ids=repr)
def test_padding_idx_is_an_int64(ids, value):
    refused(ValueError, f"padding_idx is {value}; it must be an int64", positions_from_ids, ids, value)


def test_positions_of_ids_are_int64():
    last = 2**63 - 1
    same(positions_from_ids([last, last], last), np.array([last, last]))
    same(positions_from_ids([], last), np.array([], np.int64))
    same(positions_from_ids([[5, last - 1], [last - 1, 6]], last - 1), np.array([[last, last - 1], [last - 1, last]]))
    same(positions_from_ids([5, last - 2, 6], last - 2), np.array([last - 1, last - 2, last]))
    same(positions_from_ids([5, 6], -(2**63)), np.array([-(2**63) + 1, -(2**63) + 2]))
    for ids, padding_idx, most in (
        ([5], last, 1),
        ([last, 5, last], last, 1),
        ([5, 6], last - 1, 2),
        ([[last - 1, 5], [5, 6]], last - 1, 2),
        (np.array([2**63], np.uint64), last, 1),
        (np.zeros(200, np.int8), last - 100, 200),
    ):
        message = f"padding_idx is {padding_idx}; it must be at most {last - most}, as positions go {most} beyond it"
        refused(ValueError, message, positions_from_ids, ids, padding_idx)


@pytest.mark.parametrize("kind", SIGNED, ids=str)
def test_negative_lengths(kind):
    for lengths, index in (([-1], 0), ([3, 0, -5, -6], 2), ([1, np.iinfo(kind).min], 1), ([*range(50), -1], 50)):
        message = f"lengths[{index}] is {lengths[index]}; it must be at least 0"
        refused(ValueError, message, positions_from_lengths, np.array(lengths, kind))
        refused(ValueError, message, positions_from_lengths, lengths)


@pytest.mark.parametrize(
    "lengths",
    [
        [2**60],
        [2**63 - 1],
        [1, 2**63 - 1],
        [2**62] * 4,
        [2**63 - 1, 2**63 - 1, 2],
        np.array([2**63], np.uint64),
        np.array([2**64 - 1, 1], np.uint64),
        np.array([5, 2**64 - 1], np.uint64),
        np.array([2**63, 2**63], np.uint64),
    ],
    ids=repr,
)
def test_lengths_that_do_not_fit(lengths):
    """Also where their sum, in 64 bits, would be small again."""
    n = sum(map(int, lengths))
    message = f"an array of shape ({n},) and dtype int64 takes {8 * n} bytes, which cannot be allocated"
    refused(MemoryError, message, positions_from_lengths, lengths)


@pytest.mark.parametrize("shape", [(2**60,), (2**31, 2**30)], ids=str)
def test_positions_that_do_not_fit(shape):
    nbytes = 8 * math.prod(shape)
    message = f"an array of shape {shape} and dtype int64 takes {nbytes} bytes, which cannot be allocated"
    refused(MemoryError, message, positions_from_mask, np.broadcast_to(np.True_, shape))
    refused(MemoryError, message, positions_from_mask, np.broadcast_to(np.uint8(1), shape))
    refused(MemoryError, message, positions_from_ids, np.broadcast_to(np.uint8(1), shape), 1)


@pytest.mark.parametrize("call", [positions_from_mask, positions_from_lengths, partial(positions_from_ids, padding_idx=2)])
def test_results_are_not_kept(call):
    first = call([1, 1, 0])
    expected = first.tolist()
    first.fill(-9)
    assert call([1, 1, 0]).tolist() == expected

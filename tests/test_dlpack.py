"""Arrays of other packages, as DLPack and buffers have them: the bits are those with ndarrays, and ``out`` is written in place.

The lender is `lender.Lender`; `test_frameworks_dlpack` has torch and JAX.
"""

import array
import ctypes
import gc
import mmap
import subprocess
import sys

import numpy as np
import pytest
from lender import COPIED, READ_ONLY, Lender, LenderToNumPy

import posenc
from posenc import Encoding, _arrays, _foreign
from posenc._rows import Rows

VERSIONS = [(1, 0), (1, 7), None]
CUDA = (2, 0)


def numbers(shape, dtype="float32"):
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


def same(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def refused(error, call, *words):
    with pytest.raises(error) as info:
        call()
    assert all(word in str(info.value) for word in words), str(info.value)
    return info.value


# ---- arguments that are read -----------------------------------------------------------------------------------------

READ = {
    "x of add": (posenc.add, numbers((2, 5, 8))),
    "x of rotate": (lambda x: posenc.rotate(x, np.arange(5)), numbers((2, 5, 8))),
    "positions of add": (lambda p: posenc.add(numbers((2, 5, 8)), positions=p), np.arange(5)),
    "positions of encode": (lambda p: posenc.encode(p, 8), np.array([[3, -1], [7, 7]])),
    "positions of rotate": (lambda p: posenc.rotate(numbers((2, 5, 8)), p), np.arange(5) / 4),
    "positions of sincos": (lambda p: np.stack(posenc.sincos(p, 8)), np.array([0.5, 2.0])),
    "where of encode": (lambda w: posenc.encode(range(3), 8, where=w), np.array([True, False, True])),
    "where of add": (lambda w: posenc.add(numbers((2, 3, 8)), where=w), np.array([[True, False, True]])),
    "offsets": (lambda p: posenc.similarity(p, 8), np.array([0, 3, -4], np.int16)),
    "delta": (lambda p: Encoding(8).shift_matrix(p), np.array(2.5)),
    "mask": (posenc.positions_from_mask, np.array([[False, True, True], [True, True, False]])),
    "mask of integers": (posenc.positions_from_mask, np.array([[0, 1, 1]], np.uint8)),
    "ids": (lambda ids: posenc.positions_from_ids(ids, 1), np.array([[5, 6, 1]], np.int32)),
    "lengths": (posenc.positions_from_lengths, np.array([3, 0, 2])),
    "mask of grid": (lambda m: posenc.grid(None, 8, convention="detr", mask=m), np.array([[True, True], [True, False]])),
    "frequencies": (lambda w: Encoding(4, frequencies=posenc.frequencies.given(w)).table(3), np.array([1.0, 0.25])),
}


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("name", READ)
def test_read(name, version):
    call, value = READ[name]
    lender = Lender(value, version=version)
    same(call(lender), call(value))
    gc.collect()
    assert lender.out == 0
    assert lender.asked
    assert all(keywords == ({} if version is None else {"max_version": (1, 0)}) for keywords in lender.asked)


@pytest.mark.parametrize("name", READ)
def test_read_what_is_read_only(name):
    call, value = READ[name]
    same(call(Lender(value, flags=READ_ONLY)), call(value))


@pytest.mark.parametrize("name", [name for name in READ if READ[name][1].ndim])
def test_read_buffers(name):
    call, value = READ[name]
    same(call(memoryview(value)), call(value))


@pytest.mark.parametrize("name", READ)
def test_a_foreign_device_is_named_before_anything_else(name):
    call, value = READ[name]
    lender = Lender(value.astype(np.complex64), device=CUDA)
    parameter, place = name.split(" ")[0], "on device (2, 0) (CUDA); it must be on the CPU"
    parameter = "array" if parameter == "frequencies" else parameter
    refused(ValueError, lambda: call(lender), f"{parameter} is {place}")
    assert lender.asked == []


def test_every_dtype_is_read(dtype):
    value = numbers((3, 8), dtype)
    same(posenc.add(Lender(value)), posenc.add(value))
    whole = np.arange(7).astype(dtype)
    same(posenc.encode(Lender(whole), 8), posenc.table(7, 8))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_every_integer_is_read(kind):
    same(posenc.encode(Lender(np.arange(7, dtype=kind)), 8), posenc.table(7, 8))


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: np.broadcast_to(x[:1], x.shape), lambda x: x[:0]], ids=range(4)
)
def test_any_strides_are_read(view):
    value = view(numbers((8, 16)))
    same(posenc.add(Lender(value)), posenc.add(value))


def test_without_strides_elements_stand_as_in_c_and_the_offset_counts_bytes():
    value = numbers((4, 8))
    same(posenc.add(Lender(value, strides=None)), posenc.add(value))
    same(posenc.add(Lender(value, shape=(3, 8), byte_offset=32)), posenc.add(value[1:]))


def test_large_positions_are_taken_as_they_are():
    refused(ValueError, lambda: posenc.encode(Lender(np.array([2.0**54])), 4), "positions[0] is", "2**53")
    far = np.array([2**60 + 1])
    same(posenc.encode(Lender(far), 4), posenc.encode(far, 4))


def test_a_bfloat16_needs_its_package(monkeypatch):
    lender = Lender(np.zeros((2, 4), np.uint16), code=4)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for name, call in (("x", lambda: posenc.add(lender)), ("out", lambda: posenc.table(2, 4, out=lender))):
        refused(ImportError, call, f"{name} has dtype bfloat16, which needs the package ml_dtypes: pip install ml_dtypes")


def test_memory_is_lent_as_long_as_an_array_of_it_lives():
    value = numbers((3, 4))
    lender = Lender(value)
    borrowed = _foreign.as_array("x", lender)
    part = borrowed[1:].T
    assert np.shares_memory(borrowed, value)
    del borrowed
    gc.collect()
    assert lender.out == 1
    del part
    gc.collect()
    assert lender.out == 0


def test_no_deleter_is_none():
    value = numbers((3, 4))
    same(posenc.add(Lender(value, deleter=False)), posenc.add(value))


# ---- out -------------------------------------------------------------------------------------------------------------

X = numbers((2, 5, 8))
WRITTEN = {
    "table": (lambda out: posenc.table(5, 8, out=out), (5, 8)),
    "Encoding.table": (lambda out: Encoding(8).table(5, start=3, out=out), (5, 8)),
    "encode": (lambda out: posenc.encode([[1, 2.5], [7, 0]], 8, out=out), (2, 2, 8)),
    "encode a range": (lambda out: posenc.encode(range(9, 0, -1), 8, out=out), (9, 8)),
    "add": (lambda out: posenc.add(X.astype(out_dtype(out)), out=out), (2, 5, 8)),
    "rotate": (lambda out: posenc.rotate(X.astype(out_dtype(out)), range(5), out=out), (2, 5, 8)),
    "grid": (lambda out: posenc.grid((2, 3), 8, convention="mae", out=out), (2, 3, 8)),
}


def out_dtype(out):
    return out.value.dtype if isinstance(out, Lender) else np.asarray(out).dtype


@pytest.mark.parametrize("name", WRITTEN)
def test_out_is_written_in_place_and_returned(name, dtype):
    call, shape = WRITTEN[name]
    want = call(np.empty(shape, dtype))
    for make in (Lender, lambda value: LenderToNumPy(value, version=None), LenderToNumPy):
        value = np.full(shape, 7, dtype)
        lender = make(value)
        assert call(lender) is lender
        same(value, want)
        gc.collect()
        assert lender.out == 0
        assert lender.asked == [{} if lender.version is None else {"max_version": (1, 0), "copy": False}]


@pytest.mark.parametrize("kind", ["e", "f", "d"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_buffer_is_written_in_place_and_returned(name, kind):
    call, shape = WRITTEN[name]
    want = call(np.empty(shape, kind))
    memory = bytearray(want.nbytes)
    out = np.frombuffer(memory, kind).reshape(shape).data
    assert call(out) is out
    assert bytes(memory) == want.tobytes()


def test_buffers_of_many_kinds():
    want = posenc.table(4, 8)
    with mmap.mmap(-1, want.nbytes) as mapped, memoryview(mapped) as whole, whole.cast("f", (4, 8)) as out:
        assert posenc.table(4, 8, out=out) is out
        assert mapped[:] == want.tobytes()
    numbers = array.array("f", bytes(32))
    assert posenc.encode(3, 8, out=numbers) is numbers
    assert numbers.tobytes() == want[3].tobytes()
    rows = ((ctypes.c_float * 8) * 4)()
    assert posenc.table(4, 8, out=rows) is rows
    assert bytes(rows) == want.tobytes()
    padded = np.zeros((4, 12), np.float32)
    view = memoryview(padded)[::2]
    assert posenc.encode([0, 1], 12, out=view) is view
    same(padded[::2], posenc.table(2, 12))
    assert not padded[1::2].any()


def test_sines_and_cosines_are_written_in_place_and_returned(dtype):
    want = posenc.sincos(range(5), 8, dtype=dtype)
    both = np.empty((5, 4), dtype), np.empty((5, 4), dtype)
    out = Lender(both[0]), LenderToNumPy(both[1], version=None)
    got = posenc.sincos(range(5), 8, out=out)
    assert got[0] is out[0]
    assert got[1] is out[1]
    for value, half in zip(both, want, strict=True):
        same(value, half)
    refused(ValueError, lambda: posenc.sincos(range(5), 8, out=(both[0], Lender(both[0]))), "out holds two", "share memory")


@pytest.mark.parametrize(
    "function",
    [lambda x, out: posenc.add(x, out=out), lambda x, out: posenc.rotate(x, range(5), out=out)],
    ids=["add", "rotate"],
)
@pytest.mark.parametrize("version", [(1, 0), None], ids=str)
def test_in_place(function, version, dtype, monkeypatch):
    """Out is x, as the same object and as another one: no copy, and no stores that bypass the caches x was read into."""
    monkeypatch.setattr(_arrays, "STREAM_FROM", 1)
    streamed, add = [], Rows.add

    def watched(*arguments, **keywords):
        streamed.append(arguments[9])
        add(*arguments, **keywords)

    monkeypatch.setattr(Rows, "add", watched)
    want = function(X.astype(dtype), np.empty(X.shape, dtype))
    assert streamed == [True]
    for second in (lambda lender, _: lender, lambda _, value: LenderToNumPy(value, version=version), lambda _, value: value):
        value = X.astype(dtype)
        first = LenderToNumPy(value, version=version)
        out = second(first, value)
        assert function(first, out) is out
        same(value, want)
    assert streamed == [True, False, False, False]


def test_out_that_shares_some_memory_with_an_argument():
    value = numbers((6, 8))
    want = posenc.add(value[:5])
    posenc.add(Lender(value[:5]), out=Lender(value[1:]))
    same(value[1:], want)
    whole = np.zeros((4, 2))
    points = whole.reshape(-1)[4:]
    points[...] = 3, 1, 2, 0
    want = posenc.encode(points.copy(), 2, dtype="float64")
    posenc.encode(Lender(points), 2, out=Lender(whole))
    same(whole, want)


WRONG = {
    "read-only": (lambda a: Lender(a, flags=READ_ONLY), ValueError, "out is read-only"),
    "a copy": (lambda a: Lender(a, flags=COPIED), ValueError, "out is a Lender that lends a copy"),
    "unversioned": (lambda a: Lender(a, version=None), ValueError, "out is a Lender that does not say whether it is writeable"),
    "unversioned, NumPy has a copy": (
        lambda a: LenderToNumPy(a, a.copy(), version=None),
        ValueError,
        "that does not say whether it is writeable",
    ),
    "unversioned, NumPy has it read-only": (
        lambda a: LenderToNumPy(a, read_only(a), version=None),
        ValueError,
        "out is read-only",
    ),
    "CUDA": (lambda a: Lender(a, device=CUDA), ValueError, "out is on device (2, 0) (CUDA); it must be on the CPU"),
    "managed": (lambda a: Lender(a, device=(13, 1)), ValueError, "out is on device (13, 1) (CUDA, managed)"),
    "unknown device": (lambda a: Lender(a, device=(99, 3)), ValueError, "out is on device (99, 3) (not the CPU)"),
    "shape": (lambda a: Lender(a[:3]), ValueError, "out has shape (3, 4); it must be (4, 4)"),
    "columns": (lambda a: Lender(a.T), ValueError, "out has strides (4, 16)"),
    "integers": (lambda a: Lender(a.view(np.int32)), TypeError, "out has dtype int32"),
    "a list": (lambda a: a.tolist(), TypeError, "out must be an ndarray, or floats with a buffer or __dlpack__, not list"),
    "a number": (lambda a: a[0, 0], TypeError, "out must be an ndarray, or floats with a buffer or __dlpack__, not float32"),
    "read-only buffer": (lambda a: memoryview(a).toreadonly(), ValueError, "out is read-only"),
    "buffer of integers": (lambda a: memoryview(a.view(np.int32)), TypeError, "out has dtype int32"),
    "bytearray": (lambda _: bytearray(64), TypeError, "not the bytes of a bytearray; np.frombuffer(out, dtype).reshape(shape)"),
    "bytes": (lambda _: bytes(64), TypeError, "not the bytes of a bytes; np.frombuffer"),
    "letters": (lambda _: (ctypes.c_wchar * 2)(), TypeError, "out must be an ndarray, or floats with a buffer or __dlpack__"),
    "released": (lambda a: released(a), ValueError, "out is a memoryview whose memory cannot be used: operation forbidden"),
    "masked": (lambda a: np.ma.masked_array(a), TypeError, "out must be an ndarray, or floats with a buffer or __dlpack__"),
}


def read_only(value):
    view = value.view()
    view.flags.writeable = False
    return view


def released(value):
    view = memoryview(value)
    view.release()
    return view


@pytest.mark.parametrize("name", WRONG)
def test_wrong_out(name):
    make, error, words = WRONG[name]
    value = numbers((4, 4))
    before = value.tobytes()
    refused(error, lambda: posenc.table(4, 4, out=make(value)), words)
    refused(error, lambda: posenc.encode(range(4), 4, out=make(value)), words)
    refused(
        error, lambda: posenc.grid((4,), 4, convention="multidim", out=make(value)), words.replace(" it must be (4, 4)", "")
    )
    refused(error, lambda: posenc.sincos(range(4), 8, out=(np.empty((4, 4), np.float32), make(value))), words)
    if name != "columns":  # a sum is written with any strides
        refused(error, lambda: posenc.add(numbers((4, 4)), out=make(value)), words)
    assert value.tobytes() == before


def test_a_mapped_file():
    with mmap.mmap(-1, 128) as mapped:
        words = "not the bytes of a mmap; np.frombuffer(out, dtype).reshape(shape) makes them an array"
        refused(TypeError, lambda: posenc.table(4, 8, out=mapped), words)
    refused(ValueError, lambda: posenc.table(4, 8, out=mapped), "out is a mmap whose memory cannot be used: mmap closed")


# ---- what is on the host, and what lies ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [(1, 0), (1, 5), (3, 0), (3, 1), (11, 0)])
def test_memory_of_the_host(device):
    value = numbers((4, 4))
    same(posenc.add(Lender(value, device=device)), posenc.add(value))
    lender = Lender(value, device=device)
    assert posenc.table(4, 4, out=lender) is lender
    same(value, posenc.table(4, 4))


class Hostile(Exception):
    pass


class Raising:
    """Whatever is asked of it."""

    def __dlpack_device__(self):
        raise Hostile("no device")

    def __dlpack__(self, **keywords):
        raise Hostile("no capsule")

    @property
    def requires_grad(self):
        raise Hostile


class Other(Lender):
    """What it returns is another thing."""

    def __init__(self, thing):
        super().__init__(numbers((2, 4)))
        self._thing = thing

    def __dlpack__(self, **keywords):
        return self._thing


def used(value):
    lender = Other(Lender(value).__dlpack__())
    posenc.add(lender)
    return lender


LIES = {
    "raises": lambda a: Raising(),
    "None": lambda a: Other(None),
    "an array": lambda a: Other(a),
    "another capsule": lambda a: Other(np.empty(3).__array_struct__),
    "a used capsule": used,
    "version 2": lambda a: Lender(a, version=(2, 0)),
    "version 0": lambda a: Lender(a, version=(0, 8)),
    "another device": lambda a: Lender(a, device_type=2),
    "no axes but -1": lambda a: Lender(a, ndim=-1),
    "65 axes": lambda a: Lender(a, ndim=65, shape=(1,) * 65, strides=(1,) * 65),
    "no shape": lambda a: Lender(a, shape=None),
    "no memory": lambda a: Lender(a, data=None),
    "a negative size": lambda a: Lender(a, shape=(-1, 4)),
    "more than there can be": lambda a: Lender(a, shape=(2**62, 2**62)),
    "strides beyond all": lambda a: Lender(a, strides=(2**62, 2**62)),
    "four at once": lambda a: Lender(a, lanes=4),
    "four bits": lambda a: Lender(a, bits=4),
    "no bits": lambda a: Lender(a, bits=0),
    "floats of a byte": lambda a: Lender(a, bits=8),
    "float8": lambda a: Lender(a, code=10, bits=8),
    "an opaque handle": lambda a: Lender(a, code=3),
    "bfloat of 32 bits": lambda a: Lender(a, code=4),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(name):
    for parameter, call in (
        ("x", posenc.add),
        ("positions", lambda value: posenc.encode(value, 4)),
        ("ids", lambda value: posenc.positions_from_ids(value, 1)),
        ("out", lambda value: posenc.table(2, 4, out=value)),
    ):
        lender = LIES[name](numbers((2, 4)))
        error = refused((TypeError, ValueError), lambda call=call, lender=lender: call(lender), f"{parameter} ")
        assert str(error).startswith(f"{parameter} ")
        del error
        gc.collect()
        assert getattr(lender, "out", 0) == 0


@pytest.mark.parametrize("device", ["ab", None, (1,), (object(), 0), ("cpu", 0), 7], ids=range(6))
def test_a_device_that_is_none_is_that_of_the_capsule(device):
    value = numbers((2, 4))
    same(posenc.add(Lender(value, device=device, device_type=1)), posenc.add(value))
    refused(ValueError, lambda: posenc.add(Lender(value, device=device, device_type=2)), "x is on device (2, 0) (CUDA)")


class Unlent(LenderToNumPy):
    """DLPack cannot say what it is; NumPy is given an array."""

    def __dlpack__(self, **keywords):
        raise BufferError("cannot be exported")


def test_what_only_numpy_is_given_is_read_and_not_written():
    value = numbers((2, 4))
    same(posenc.add(Unlent(value)), posenc.add(value))
    words = "out is a Unlent whose memory cannot be used: BufferError('cannot be exported'); it must be dense and on the CPU"
    refused(ValueError, lambda: posenc.table(2, 4, out=Unlent(value)), words)
    refused(ValueError, lambda: posenc.add(Unlent(value, device=CUDA)), "x is on device (2, 0) (CUDA)")


class Training(Unlent):
    requires_grad = True

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not with a gradient")


def test_what_requires_a_gradient_is_to_be_detached():
    training = Training(numbers((2, 4)))
    for name, call in (
        ("x", lambda: posenc.add(training)),
        ("positions", lambda: posenc.encode(training, 4)),
        ("out", lambda: posenc.table(2, 4, out=training)),
    ):
        refused(ValueError, call, f"{name} is a Training that requires grad; it must be detached: {name}.detach() is")


def test_ndarrays_own_capsules():
    """NumPy's, of whatever version it makes."""

    class OfNumPy:
        def __init__(self, value):
            self._value = value
            self.__array__ = None

        def __dlpack_device__(self):
            return self._value.__dlpack_device__()

        def __dlpack__(self, **keywords):
            return self._value.__dlpack__(**keywords)

    value = numbers((3, 4))
    same(posenc.add(OfNumPy(value)), posenc.add(value))
    same(posenc.encode(OfNumPy(np.arange(3)), 4), posenc.table(3, 4))


def test_the_import_asks_for_no_framework():
    code = "import sys, posenc, posenc._foreign; assert not {'torch', 'jax', 'ml_dtypes', 'ctypes'} & set(sys.modules)"
    plain = "import sys, numpy; print('ctypes' in sys.modules)"
    if subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True).stdout == "True\n":
        code = code.replace(", 'ctypes'", "")  # NumPy's doing
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

"""Tensors of torch and arrays of JAX as arguments and as ``out``: the bits are those with ndarrays.

`test_dlpack` has what they may be without these packages.
"""

import gc
import sys

import numpy as np
import pytest
from frameworks import real

import posenc
from posenc import Encoding, _foreign

X = np.random.default_rng(1).normal(size=(2, 5, 8)).astype(np.float32)
TORCH_DTYPES = ["float32", "float64", "float16", "bfloat16"]


@pytest.fixture
def torch():
    return real("torch", "out= and arguments that are tensors")


@pytest.fixture
def jax():
    return real("jax", "arguments that are arrays of JAX")


def bits(value):
    """Of an ndarray, a tensor or an array of JAX."""
    if hasattr(value, "untyped_storage"):
        return bytes(value.detach().contiguous().untyped_storage()[: value.numel() * value.element_size()])
    return np.asarray(value).tobytes()


def tensor_of(torch, value, dtype):
    """A tensor that holds the array's values, and the same as an array."""
    tensor = torch.from_numpy(value.copy()).to(getattr(torch, dtype))
    if dtype != "bfloat16":
        return tensor, tensor.numpy().copy()
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NOT COMPARED: bfloat16 needs ml_dtypes")
    return tensor, tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()


def refused(error, call, *words):
    with pytest.raises(error) as info:
        call()
    assert all(word in str(info.value) for word in words), str(info.value)


# ---- torch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_tensors_as_x(torch, dtype):
    tensor, value = tensor_of(torch, X, dtype)
    for function in (posenc.add, lambda x: posenc.rotate(x, range(5)), Encoding(8).add):
        got, want = function(tensor), function(value)
        assert type(got) is np.ndarray
        assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())
    turned = posenc.add(tensor.transpose(0, 1), axis=0)
    assert turned.tobytes() == posenc.add(value.transpose(1, 0, 2), axis=0).tobytes()


@pytest.mark.parametrize("dtype", [*TORCH_DTYPES, "uint8", "int8", "int16", "int32", "int64"])
def test_tensors_as_positions(torch, dtype):
    positions = torch.arange(7).to(getattr(torch, dtype))
    assert posenc.encode(positions, 8).tobytes() == posenc.table(7, 8).tobytes()
    assert posenc.encode(positions[3], 8).tobytes() == posenc.table(1, 8, start=3).tobytes()
    assert posenc.add(X, positions=positions[:5]).tobytes() == posenc.add(X).tobytes()
    sines, cosines = posenc.sincos(positions, 8)
    assert (sines.tobytes(), cosines.tobytes()) == tuple(part.tobytes() for part in posenc.sincos(range(7), 8))
    assert posenc.similarity(positions, 8).tobytes() == posenc.similarity(range(7), 8).tobytes()


def test_tensors_as_masks_ids_and_lengths(torch):
    mask = np.array([[False, True, True], [True, True, False]])
    tensor = torch.from_numpy(mask)
    assert (posenc.positions_from_mask(tensor) == posenc.positions_from_mask(mask)).all()
    assert posenc.encode(range(2), 4, where=tensor[0][1:]).tobytes() == posenc.encode(range(2), 4, where=mask[0][1:]).tobytes()
    assert posenc.add(X[:, :3], where=tensor).tobytes() == posenc.add(X[:, :3], where=mask).tobytes()
    got, want = (posenc.grid(None, 8, convention="detr", mask=given) for given in (tensor, mask))
    assert got.tobytes() == want.tobytes()
    assert posenc.positions_from_ids(torch.tensor([[5, 6, 1]]), 1).tolist() == [[2, 3, 1]]
    assert posenc.positions_from_lengths(torch.tensor([3, 0, 2])).tolist() == [0, 1, 2, 0, 1]
    assert posenc.frequencies.given(torch.tensor([1.0, 0.25])) == posenc.frequencies.given([1.0, 0.25])


WRITTEN = {
    "table": (lambda out: posenc.table(5, 8, out=out), (5, 8)),
    "encode": (lambda out: posenc.encode([1, 2.5, 7], 8, out=out), (3, 8)),
    "grid": (lambda out: posenc.grid((2, 3), 8, convention="mae", out=out), (2, 3, 8)),
}


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_tensor_is_written_in_place_and_returned(torch, name, dtype):
    call, shape = WRITTEN[name]
    tensor, value = tensor_of(torch, np.zeros(shape, np.float32), dtype)
    address = tensor.data_ptr()
    assert call(tensor) is tensor
    assert tensor.data_ptr() == address
    assert bits(tensor) == call(value).tobytes()
    part = torch.zeros((*shape[:-1], 16), dtype=tensor.dtype)[..., :8]
    assert call(part) is part
    assert bits(part.clone(memory_format=torch.contiguous_format)) == bits(tensor)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_tensors_in_place(torch, dtype):
    for function in (posenc.add, lambda x, out: posenc.rotate(x, range(5), out=out)):
        tensor, value = tensor_of(torch, X, dtype)
        assert function(tensor, out=tensor) is tensor
        assert bits(tensor) == function(value, out=np.empty_like(value)).tobytes()
    both = [torch.zeros(5, 4, dtype=tensor.dtype) for _ in range(2)]
    got = posenc.sincos(range(5), 8, out=tuple(both))
    assert [part is given for part, given in zip(got, both, strict=True)] == [True, True]
    assert [*map(bits, both)] == [part.tobytes() for part in posenc.sincos(range(5), 8, dtype=dtype)]


def test_empty_tensors(torch):
    out = torch.empty(0, 8)
    assert posenc.table(0, 8, out=out) is out
    assert posenc.encode(torch.empty(0), 8).shape == (0, 8)
    assert posenc.add(torch.empty(0, 3, 8)).shape == (0, 3, 8)


def test_no_copy_and_no_reference_is_left(torch):
    tensor = torch.ones(4, 8)
    assert _foreign.as_array("x", tensor).__array_interface__["data"][0] == tensor.data_ptr()
    before = sys.getrefcount(tensor)
    for _ in range(100):
        posenc.add(tensor, out=tensor)
    assert sys.getrefcount(tensor) == before
    borrowed = _foreign.as_array("x", torch.full((1 << 16,), 3.0))
    gc.collect()
    assert (borrowed == 3.0).all()  # the memory lives, though its tensor does not


TENSORS = {
    "requires grad": (
        lambda torch: torch.ones(2, 8, requires_grad=True),
        "is a Tensor that requires grad; it must be detached",
    ),
    "a parameter": (
        lambda torch: torch.nn.Parameter(torch.ones(2, 8)),
        "is a Parameter that requires grad; it must be detached",
    ),
    "meta": (lambda torch: torch.empty(2, 8, device="meta"), "meta"),
    "sparse": (lambda torch: torch.eye(8).to_sparse(), "it must be dense and on the CPU"),
    "float8": (lambda torch: torch.ones(2, 8).to(torch.float8_e4m3fn), "dtype (10, 8, 1)"),
    "conjugated": (lambda torch: torch.ones(2, 8, dtype=torch.complex64).conj(), "conjugate"),
    "int64": (lambda torch: torch.ones(2, 8, dtype=torch.int64), "has dtype int64"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_are_refused(torch, name):
    make, words = TENSORS[name]
    for parameter, call in (("x", posenc.add), ("out", lambda tensor: posenc.table(2, 8, out=tensor))):
        refused((TypeError, ValueError), lambda call=call: call(make(torch)), f"{parameter} ", words)
        if "grad" in words:
            refused(ValueError, lambda call=call: call(make(torch)), f"{parameter}.detach()")
    if "grad" in words:
        refused(ValueError, lambda: posenc.encode(make(torch), 8), "positions.detach()")
        assert posenc.add(make(torch).detach()).shape == (2, 8)


# ---- JAX -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_arrays_of_jax_are_read(jax, dtype):
    given = jax.numpy.asarray(X).astype(dtype)
    value = np.asarray(given)
    for function in (posenc.add, lambda x: posenc.rotate(x, jax.numpy.arange(5))):
        got, want = function(given), function(value)
        assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())
    positions = jax.numpy.arange(7).astype(dtype)
    assert posenc.encode(positions, 8).tobytes() == posenc.table(7, 8).tobytes()
    assert posenc.encode(jax.numpy.arange(7), 8).tobytes() == posenc.table(7, 8).tobytes()
    assert posenc.add(X[:, :3], where=jax.numpy.ones(3, bool)).tobytes() == posenc.add(X[:, :3]).tobytes()
    assert posenc.positions_from_mask(jax.numpy.array([False, True, True])).tolist() == [0, 0, 1]
    assert posenc.positions_from_ids(jax.numpy.array([5, 6, 1]), 1).tolist() == [2, 3, 1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_arrays_of_jax_are_not_written(jax, dtype):
    given = jax.numpy.ones((2, 8), dtype)
    before = bits(given)
    for call in (lambda: posenc.table(2, 8, out=given), lambda: posenc.add(given, out=given)):
        refused(ValueError, call, "out is read-only; it must be writeable")
    assert bits(given) == before


def test_a_tensor_that_takes_what_jax_has(torch, jax):
    out = torch.empty(2, 5, 8)
    assert posenc.add(jax.numpy.asarray(X), out=out) is out
    assert bits(out) == posenc.add(X).tobytes()

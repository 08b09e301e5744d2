"""Arrays of other packages, at the door: read and written where they are, through DLPack or as a buffer.

`numpy.from_dlpack` is not used: it knows no bfloat16, and before NumPy 2.1 all it makes is read-only.
"""

import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posenc import _check
from posenc._load import core

# numbers of DLPack's header
_ON_HOST = (1, 3, 11)  # the CPU; its memory pinned for CUDA, for ROCm
_DEVICES = {2: "CUDA", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA, managed", 14: "oneAPI", 15: "WebGPU"}
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_BFLOAT16 = (4, 16, 1)
_IS_READ_ONLY, _IS_COPY = 1, 2

_PLAIN = {int, float, list, tuple}  # there is nothing to ask of these
_ORDER = "<" if sys.byteorder == "little" else ">"


class Lender(Protocol):
    """Has its memory read and written by others: tensors of torch, arrays of JAX, ndarrays."""

    def __dlpack__(self, *args: Any, **keywords: Any) -> Any:
        """A capsule."""


Out = NDArray[Any] | Lender | memoryview


def as_array(name: str, value: Any) -> NDArray[Any]:
    """An array, whatever it holds; a copy only of what has neither ``__dlpack__`` nor a buffer."""
    if type(value) is np.ndarray:
        return value
    if type(value) not in _PLAIN:
        if _check.is_masked(value):
            raise TypeError(f"{name} is a masked array; it must be an ndarray")
        if lends(value):
            return _lent(name, value)
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} is a {type(value).__name__} that is no array; its rows must be of one length") from None


def lends(value: Any) -> bool:
    """Whether it has ``__dlpack__`` and is none of NumPy's."""
    return hasattr(type(value), "__dlpack__") and not isinstance(value, np.ndarray)


def as_out(out: Any) -> NDArray[Any]:
    """The array of the very memory of ``out``; whether it may be written to is for the caller to ask."""
    if type(out) is np.ndarray:
        return out
    if isinstance(out, np.ndarray) and not _check.is_masked(out):
        return out
    if lends(out):
        return _lent_to_write(out)
    kind = type(out).__name__
    wanted = "out must be an ndarray, or floats with a buffer or __dlpack__"
    try:
        if isinstance(out, np.ndarray | np.generic):
            raise TypeError
        view = memoryview(out)
    except TypeError:
        raise TypeError(f"{wanted}, not {kind}") from None
    except (ValueError, BufferError) as error:  # released, closed
        raise ValueError(f"out is a {kind} whose memory cannot be used: {error}") from error
    if view.format in ("B", "b", "c"):
        view.release()  # or what raises holds it, and a mapped file is not closed
        raise TypeError(f"{wanted}, not the bytes of a {kind}; np.frombuffer(out, dtype).reshape(shape) makes them an array")
    try:
        array = np.asarray(view)
    except Exception as error:
        raise TypeError(f"{wanted}, not {kind} of format {view.format!r}: {error}") from error
    if not isinstance(array.base, memoryview):  # a copy
        raise TypeError(f"{wanted}, not {kind} of format {view.format!r}")
    return array


def _lent(name: str, value: Any) -> NDArray[Any]:
    _check_place(name, value)
    try:
        lent = core.Lent(_capsule(value, max_version=(1, 0)))
    except Exception as error:  # what its package, or DLPack, cannot export; NumPy may have a way
        if hasattr(type(value), "__array__"):
            with suppress(Exception):
                return np.asarray(value)
        raise _unusable(name, value, error) from error
    return _array(name, lent)


def _lent_to_write(out: Any) -> NDArray[Any]:
    _check_place("out", out)
    try:
        lent = core.Lent(_capsule(out, max_version=(1, 0), copy=False))
    except Exception as error:
        raise _unusable("out", out, error) from error
    array = _array("out", lent)
    if lent.flags is None:  # what its package gives NumPy tells, if it is the same memory
        with suppress(Exception):
            given = np.asarray(out)
            if _identity(given) == _identity(array):
                return given
        raise ValueError(f"out is a {type(out).__name__} that does not say whether it is writeable; DLPack does from 1.0 on")
    if lent.flags & _IS_COPY:
        raise ValueError(f"out is a {type(out).__name__} that lends a copy; it must lend its own memory")
    return array


def _identity(array: NDArray[Any]) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.dtype


def _capsule(value: Any, **keywords: Any) -> object:
    """Of a version, if its package knows of them."""
    try:
        return value.__dlpack__(**keywords)
    except TypeError:
        return value.__dlpack__()


def _check_place(name: str, value: Any) -> None:
    """Raise if it says that it is on a foreign device; if it cannot say where it is, its capsule will."""
    try:
        kind, number = value.__dlpack_device__()
        device = int(kind), int(number)
    except Exception:
        return
    _check_device(name, device)


def _check_device(name: str, device: tuple[int, int]) -> None:
    if device[0] not in _ON_HOST:
        kind = _DEVICES.get(device[0], "not the CPU")
        raise ValueError(f"{name} is on device {device} ({kind}); it must be on the CPU")


def _array(name: str, lent: core.Lent) -> NDArray[Any]:
    """An array of that memory, which lives as long."""
    _check_device(name, lent.device)
    code, bits, lanes = lent.dtype
    kind = "u" if lent.dtype == _BFLOAT16 else _KINDS.get(code)
    if kind is None or lanes != 1 or bits % 8:
        raise TypeError(f"{name} has DLPack's dtype {lent.dtype}, code, bits and lanes; it must be one that NumPy has")
    if lent.address == 0 and 0 not in lent.shape:
        raise ValueError(f"{name} has shape {lent.shape} and no memory; it must have some")
    size = bits // 8
    interface = {
        "version": 3,
        "shape": lent.shape,
        "strides": None if lent.strides is None else tuple(step * size for step in lent.strides),
        "typestr": f"{_ORDER}{kind}{size}",
        "data": (lent.address, lent.flags is None or bool(lent.flags & _IS_READ_ONLY)),
    }
    try:
        array = np.asarray(SimpleNamespace(__array_interface__=interface, lent=lent))
    except Exception as error:
        raise TypeError(f"{name} has DLPack's dtype {lent.dtype} and shape {lent.shape}; NumPy has no such array") from error
    return array.view(bfloat16(f"{name} has dtype bfloat16, which")) if lent.dtype == _BFLOAT16 else array


def bfloat16(what: str) -> Any:
    """The type, which ``what`` needs."""
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"{what} needs the package ml_dtypes: pip install ml_dtypes") from None
    return ml_dtypes.bfloat16


def _unusable(name: str, value: Any, error: Exception) -> ValueError:
    kind = type(value).__name__
    with suppress(Exception):
        if value.requires_grad is True:
            return ValueError(f"{name} is a {kind} that requires grad; it must be detached: {name}.detach() is")
    return ValueError(f"{name} is a {kind} whose memory cannot be used: {_check.shown(error)}; it must be dense and on the CPU")

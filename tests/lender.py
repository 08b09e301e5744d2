"""`Lender`: an array that is nothing but DLPack's, made here by hand, so that each part of what it says can be wrong."""

import ctypes
from contextlib import suppress

import numpy as np

CPU = (1, 0)
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT16 = 4
READ_ONLY, COPIED = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


NAMES = {Unversioned: b"dltensor", Versioned: b"dltensor_versioned"}
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_lent = {}  # by address: what is lent, and its lender's list of them


@DELETER
def take_back(address):
    _, addresses = _lent.pop(address)
    addresses.remove(address)


class Lender:
    """Lends the memory of an array. ``version`` None is DLPack before 1.0; ``parts`` take the place of a tensor's fields.

    ``out`` counts what is lent and not given back, ``asked`` the keywords of each call. With ``array``, NumPy is given that.
    """

    def __init__(self, value, *, version=(1, 0), flags=None, device=CPU, deleter=True, **parts):
        self.value, self.version, self.device, self.parts = value, version, device, parts
        self.flags = (0 if value.flags.writeable else READ_ONLY) if flags is None else flags
        self.deleter = take_back if deleter else DELETER()
        self.asked, self._addresses = [], []

    @property
    def out(self):
        return len(self._addresses)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if self.version is None and keywords:
            raise TypeError("__dlpack__ takes no keywords")
        self.asked.append(keywords)
        kind = Unversioned if self.version is None else Versioned
        tensor = self._tensor()
        managed = kind(tensor=tensor, deleter=self.deleter)
        if kind is Versioned:
            managed.major, managed.minor, managed.flags = *self.version, self.flags
        address = ctypes.addressof(managed)
        _lent[address] = (managed, tensor, self.value), self._addresses
        self._addresses.append(address)
        return new_capsule(address, NAMES[kind], None)

    def _tensor(self):
        value = self.value
        code = BFLOAT16 if value.dtype.name == "bfloat16" else CODES[value.dtype.kind]
        whole = all(step % value.itemsize == 0 for step in value.strides)
        strides = [step // value.itemsize for step in value.strides] if whole else None
        if not value.dtype.isnative or not whole:
            raise BufferError("nothing that DLPack can say")
        tensor = Tensor(ndim=value.ndim, code=code, bits=8 * value.itemsize, lanes=1, data=value.ctypes.data)
        with suppress(TypeError, ValueError):
            tensor.device_type, tensor.device_number = self.device
        tensor.shape, tensor.strides = numbers(value.shape), numbers(strides)
        for name, part in self.parts.items():
            setattr(tensor, name, numbers(part) if name in ("shape", "strides") else part)
        return tensor


def numbers(values):
    """A C array, or NULL for None."""
    if values is None:
        return ctypes.POINTER(ctypes.c_int64)()
    return ctypes.cast((ctypes.c_int64 * len(values))(*values), ctypes.POINTER(ctypes.c_int64))


class LenderToNumPy(Lender):
    """With ``__array__`` too: what NumPy is given, by default the same memory."""

    def __init__(self, value, given=None, **how):
        super().__init__(value, **how)
        self.given = value if given is None else given

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.given, dtype)

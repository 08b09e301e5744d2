"""Files of the command line: one that replaces another only when it is complete, and numbers read from front to back."""

import io
import math
import os
import shutil
import stat
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from posenc import _arrays, _check

_BLOCK_BYTES = 1 << 20  # of text, read at once
_LONGEST_WORD = 1 << 16  # that may be a number
_LARGEST_FLOAT = 2**53  # up to which every integer is a float

# ---- written ---------------------------------------------------------------------------------------------------------


class Failed(OSError):
    """What the system refused, in words for the user."""


@contextmanager
def replacing(output: str, nbytes: int, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file for ``nbytes`` that becomes ``output`` when the block is done, and vanishes when it is not.

    "-" is standard output, which nothing can be taken back from.
    """
    try:
        yield from _standard_output() if output == "-" else _replacing(output, nbytes, force)
    except (Failed, BrokenPipeError):
        raise
    except OSError as error:
        raise Failed(f"output is {output!r}; it cannot be written: {error.strerror}") from error


def _standard_output() -> Iterator[BinaryIO]:
    if sys.stdout.isatty():
        raise ValueError("output is '-'; standard output is a terminal, and must be a pipe or a file")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _replacing(output: str, nbytes: int, force: bool) -> Iterator[BinaryIO]:
    target, mode = _target(output, force)
    directory = os.path.dirname(target)
    usage = shutil.disk_usage(directory)
    if usage.total and nbytes > usage.free:  # some file systems do not tell
        raise Failed(f"output is {output!r}; it takes {nbytes} bytes, and {usage.free} are free there")
    temporary = os.path.join(directory, f".posenc-{os.urandom(8).hex()}")  # short, as output's name may be the longest allowed
    try:
        with open(temporary, "xb") as file:
            yield file
        if mode is not None:
            os.chmod(temporary, mode)
        _target(output, force)  # another process may have made it meanwhile
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _target(output: str, force: bool) -> tuple[str, int | None]:
    """Return the path to write, symbolic links followed, and the permissions of the file that is there, None without one."""
    mode = None
    try:
        target = os.path.realpath(output)
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = os.stat(output).st_mode
    except (OSError, ValueError) as error:
        raise ValueError(f"output is {output!r}; {getattr(error, 'strerror', error)}") from None
    if not os.path.basename(output) or (mode is not None and stat.S_ISDIR(mode)):
        raise ValueError(f"output is {output!r}; it must name a file, not a directory")
    if not os.path.isdir(os.path.dirname(target)):
        raise ValueError(f"output is {output!r}; there is no directory {os.path.dirname(target)!r}")
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"output is {output!r}; it exists and is not a regular file")
    if not force and os.path.lexists(output):
        raise ValueError(f"output is {output!r}; it exists, and only --force replaces it")
    return target, None if mode is None else mode & 0o777


def write_header(file: BinaryIO, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """Write what stands before the elements of a .npy file, as `numpy.save` does."""
    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": shape})


# ---- read ------------------------------------------------------------------------------------------------------------


class Numbers:
    """The numbers of a file in C order, read once, from front to back, of which only the slice at hand is held.

    Made by `npy_numbers` and `any_numbers`. A context manager, which closes the file.
    """

    def __init__(self, where: str, file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._where = where  # what errors begin with
        self._file = file
        self.shape = shape
        self.dtype = dtype
        self.size = math.prod(shape)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._file.close()

    def slices(self, count: int) -> Iterator[NDArray[Any]]:
        """Arrays of ``count`` numbers, the last of the rest, in one buffer; the file is closed after the last."""
        buffer = _arrays.fresh((min(count, self.size),), self.dtype)
        for begin in range(0, self.size, count):
            part = buffer[: self.size - begin]
            self._fill(part.view(np.uint8).data)
            yield part
        self._file.close()

    def _fill(self, memory: memoryview) -> None:
        while memory:
            with _reading(self._where):
                read = self._file.readinto(memory)  # type: ignore[attr-defined]
            if not read:
                raise ValueError(f"{self._where}; it ends before its last number")
            memory = memory[read:]


def npy_numbers(name: str, path: str) -> Numbers:
    """The numbers of a .npy file; ``name`` is the argument, and "-" standard input."""
    where = f"{name} is {path!r}"
    file = _opened(where, path)
    try:
        return _npy(where, file)
    except BaseException:
        file.close()
        raise


def any_numbers(name: str, path: str) -> Numbers:
    """The numbers of a .npy file or of text, where white space is between them; as `npy_numbers`.

    Text is held in memory, 8 bytes a number: int64 if all are integers, else float64.
    """
    where = f"{name} is {path!r}"
    file = _opened(where, path)
    try:
        with _reading(where):
            is_npy = file.peek(1)[:1] == npy.MAGIC_PREFIX[:1]  # which no text begins with
        if is_npy:
            return _npy(where, file)
        with _reading(where), file:
            numbers = _parsed(name, file)
    except BaseException:
        file.close()
        raise
    return Numbers(where, io.BytesIO(numbers), (len(numbers),), np.dtype(numbers.typecode))


@contextmanager
def _reading(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failed(f"{where}; it cannot be read: {error.strerror}") from error


def _opened(where: str, path: str) -> io.BufferedReader:
    try:
        with _reading(where):
            return open(0, "rb", closefd=False) if path == "-" else open(path, "rb")
    except Failed as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            raise ValueError(str(error)) from None
        raise
    except ValueError as error:
        raise ValueError(f"{where}; {error}") from None


def _npy(where: str, file: BinaryIO) -> Numbers:
    try:
        with _reading(where):
            version = npy.read_magic(file)
            read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
            shape, fortran_order, dtype = read_header(file)
    except Failed:
        raise
    except Exception:  # the header is a Python literal that anything may stand in
        raise ValueError(f"{where}; it must be a .npy file, as numpy.save writes it") from None
    if any(n < 0 for n in shape) or dtype.hasobject:
        raise ValueError(f"{where}, of shape {shape} and dtype {dtype}; it must be an array of numbers")
    if fortran_order and len(shape) > 1:
        raise ValueError(f"{where}, in Fortran order; it must be in C order, as numpy.save writes numpy.ascontiguousarray(...)")
    return Numbers(where, file, shape, dtype)


def _parsed(name: str, file: BinaryIO) -> "array[Any]":
    """Numbers of text."""
    numbers: array[Any] = array("q")
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        words = (rest + block).split()
        rest = b"" if block[-1:].isspace() else words.pop()
        numbers = _extended(name, numbers, words)
        if len(rest) > _LONGEST_WORD:
            break
    return _extended(name, numbers, [rest] if rest else [])


def _extended(name: str, numbers: "array[Any]", words: list[bytes]) -> "array[Any]":
    """``numbers`` and those of the words; of type "q", or "d" from the first float on."""
    for word in words:
        value = number(f"{name}[{len(numbers)}]", word)
        if isinstance(value, float) and numbers.typecode == "q":
            for i, integer in enumerate(numbers):
                _check_among_floats(f"{name}[{i}]", integer)
            numbers = array("d", numbers)
        elif isinstance(value, int) and numbers.typecode == "d":
            _check_among_floats(f"{name}[{len(numbers)}]", value)
        numbers.append(value)
    return numbers


def _check_among_floats(name: str, value: int) -> None:
    if abs(value) > _LARGEST_FLOAT:
        raise ValueError(f"{name} is {value} among floats; it must be at most 2**53 in size there")


def number(name: str, word: bytes | str) -> int | float:
    """An int64, exactly, or the float nearest to what is written; ``name`` is that of the argument."""
    try:
        integer = int(word)
    except ValueError:
        pass
    else:
        return _check.integer(name, integer)
    try:
        return float(word)
    except ValueError:
        text = word if isinstance(word, str) else word.decode("ascii", "backslashreplace")
        raise ValueError(f"{name} is {_check.shown(text)}; it must be an integer or a float") from None

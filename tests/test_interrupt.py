"""A large table is written in slices: signals are seen to between them, and the slices are one table."""

import signal

import numpy as np
import pytest

import posenc
from posenc import _rows
from posenc._load import core


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(_rows, "SLICE_BYTES", 1)


def test_slices_are_one_table(dtype, small_slices, monkeypatch):
    length = 2 * core.CHUNK + 77
    got = posenc.table(length, 40, start=-600, dtype=dtype)
    monkeypatch.undo()
    assert got.tobytes() == posenc.table(length, 40, start=-600, dtype=dtype).tobytes()


def test_interrupt_between_slices(small_slices, interruptible, monkeypatch):
    out = np.full((4 * core.CHUNK, 8), 7.0, np.float32)
    calls, fill = [], core.fill

    def interrupted(*arguments):
        calls.append(arguments)
        fill(*arguments)
        signal.raise_signal(signal.SIGINT)

    first = posenc.table(core.CHUNK, 8)
    monkeypatch.setattr(core, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        posenc.table(len(out), 8, out=out)
    assert len(calls) == 1
    assert out[: core.CHUNK].tobytes() == first.tobytes()
    assert (out[core.CHUNK :] == 7.0).all()

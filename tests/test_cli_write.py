"""What the commands that write share: the options of an encoding, threads, bounded memory."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import array_bytes, names, one_line, saved, written

import posenc
from posenc import _cli, _cli_write, _files

pytestmark = pytest.mark.usefixtures("folder")

# ---- the options of an encoding --------------------------------------------------------------------------------------

PARTS: list[tuple[list[str], dict[str, Any]]] = [
    (["--cos-first"], {"cos_first": True}),
    (["--odd", "zero"], {"odd": "zero"}),
    (["--amplitude", "2.5"], {"amplitude": 2.5}),
    (
        ["--amplitude=-0.1", "--cos-first", "--layout", "concatenated", "--base", "500"],
        {"amplitude": -0.1, "cos_first": True, "layout": "concatenated", "base": 500.0},
    ),
]


@pytest.mark.parametrize(("argv", "keywords"), PARTS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_parts(argv: list[str], keywords: dict[str, Any]) -> None:
    np.save("p.npy", np.arange(9))
    np.save("zeros.npy", np.zeros((9, 5), np.float32))
    expected = saved(9, 5, **keywords)
    assert expected != saved(9, 5)
    for command in (["table", "9", "5"], ["encode", "p.npy", "5"], ["add", "zeros.npy"]):
        assert written(*command, *argv, "--force") == expected, command


@pytest.mark.parametrize("name", posenc.CONVENTIONS)
def test_convention(name: str) -> None:
    np.save("zeros.npy", np.zeros((9, 6), np.float32))
    expected = array_bytes(posenc.convention(name, 6).table(9))
    assert written("table", "9", "6", "--convention", name) == expected
    assert written("add", "zeros.npy", "--convention", name, "--force") == expected


EXTRAS: list[tuple[list[str], str, dict[str, Any]]] = [
    (["-x", "padding_idx=0"], "fairseq", {"padding_idx": 0}),
    (["--extra=padding_idx=-5", "--base", "50"], "fairseq", {"padding_idx": -5, "base": 50.0}),
    (["-x", "base=50"], "whisper", {"base": 50.0}),
    (["-x", "min_timescale=2", "-x", "max_timescale=2e4"], "tensor2tensor", {"min_timescale": 2.0, "max_timescale": 2e4}),
    (["-x", "pi=True"], "octaves", {"pi": True}),
    (["-x", "scale=None", "-x", "cos_first=True"], "mlx", {"scale": None, "cos_first": True}),
]


@pytest.mark.parametrize(("argv", "name", "extras"), EXTRAS, ids=[" ".join(argv) for argv, *_ in EXTRAS])
def test_extras(argv: list[str], name: str, extras: dict[str, Any]) -> None:
    expected = array_bytes(posenc.convention(name, 6, **extras).table(9))
    assert expected != array_bytes(posenc.convention(name, 6).table(9))
    assert written("table", "9", "6", "--convention", name, *argv) == expected


BAD_OPTIONS: list[tuple[list[str], str]] = [
    (["--convention", "lstm"], "name is 'lstm'; it must be one of 'transformer', "),
    (
        ["--convention", "mlx", "--layout", "interleaved"],
        "convention is 'mlx' and layout 'interleaved'; a convention has its own layout, give one of them",
    ),
    (["--convention", "mlx", "--cos-first"], "convention is 'mlx' and cos-first True; a convention has its own cos-first"),
    (["--convention", "mlx", "--odd", "zero"], "convention is 'mlx' and odd 'zero'"),
    (["--convention", "mlx", "--amplitude", "1"], "convention is 'mlx' and amplitude 1.0"),
    (["--convention", "mlx", "--base", "7"], "base is no extra of 'mlx'; it has "),
    (["--convention", "mlx", "-x", "name=7"], "name is no extra of 'mlx'; it has "),
    (["--convention", "mlx", "-x", "dim=7"], "dim is no extra of 'mlx'; it has "),
    (["--convention", "whisper", "--base", "7", "-x", "base=7"], "extra is 'base=7'; base is given twice"),
    (["--convention", "octaves", "-x", "pi"], "extra is 'pi'; it must be KEY=VALUE"),
    (["--convention", "octaves", "-x", "=1"], "extra is '=1'; it must be KEY=VALUE"),
    (["--convention", "octaves", "-x", "pi=yes"], "extra is 'pi=yes'; its value must be a number, True, False or None"),
    (["--convention", "octaves", "-x", "pi="], "extra is 'pi='; its value must be"),
    (["--convention", "octaves", "-x", "pi=" + "(" * 1000], "its value must be"),
    (["--convention", "octaves", "-x", "pi=1"], "pi must be a bool, not int 1"),
    (["--convention", "fairseq", "-x", "padding_idx=0.5"], "padding_idx must be an integer, not float 0.5"),
    (["-x", "pi=True"], "extra is 'pi=True', of a convention; --convention must name it"),
    (["--odd", "even"], "odd is 'even'; it must be one of"),
    (["--amplitude", "0"], "amplitude is 0.0; it must not be 0"),
    (["--amplitude", "1e39"], "amplitude is 1e+39; it overflows float32"),
    (["--threads", "0"], "threads is 0; it must be at least 1"),
]


@pytest.mark.parametrize(("argv", "message"), BAD_OPTIONS, ids=[" ".join(argv)[:40] for argv, _ in BAD_OPTIONS])
@pytest.mark.parametrize("command", [["table", "9", "6"], ["encode", "p.npy", "6"], ["add", "x.in"]], ids=lambda c: c[0])
def test_bad_option(command: list[str], argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("p.npy", np.arange(9))
    Path("x.in").write_bytes(array_bytes(np.zeros((9, 6), np.float32)))
    assert _cli.main([*command, "-o", "x.npy", *argv]) == 2
    assert message in one_line(capsys)
    assert names() == ["p.npy", "x.in"]


@pytest.mark.parametrize("command", [["table", "9", "6"], ["encode", "p.npy", "6"]], ids=lambda c: c[0])
def test_bfloat16(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    np.save("p.npy", np.arange(9))
    assert _cli.main([*command, "-o", "x.npy", "--dtype", "bfloat16"]) == 2
    assert "dtype is 'bfloat16'; a .npy file holds float32, float64 or float16, posenc.table and" in one_line(capsys)


@pytest.mark.parametrize(
    ("method", "command"), [("table", ["table", "9", "6"]), ("encode", ["encode", "p.npy", "6"]), ("add", ["add", "z.npy"])]
)
@pytest.mark.parametrize("threads", [None, 3])
def test_threads(method: str, command: list[str], threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("p.npy", np.arange(9))
    np.save("z.npy", np.zeros((9, 6), np.float32))
    plain, expected, seen = getattr(posenc.Encoding, method), saved(9, 6), []

    def watched(self: posenc.Encoding, *args: Any, **keywords: Any) -> Any:
        seen.append(keywords["threads"])
        return plain(self, *args, **keywords)

    monkeypatch.setattr(posenc.Encoding, method, watched)
    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", 100)
    assert written(*command, *([] if threads is None else ["--threads", str(threads)])) == expected
    assert set(seen) == {threads}
    assert len(seen) > 1


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("argv", "shape"),
    [
        (["table", "65536", "128"], None),
        (["encode", "p.npy", "32"], None),
        (["add", "y.npy"], (1, 65536, 128)),
        (["add", "y.npy"], (65536, 4, 32)),
        (["add", "y.npy", "--axis", "0"], (65536, 4, 32)),
        (["add", "y.npy", "--positions", "p.npy"], (512, 512, 32)),
    ],
    ids=str,
)
def test_memory(argv: list[str], shape: tuple[int, ...] | None, traced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 32 MiB is made, in slices of 1 MiB, in a small part of that."""
    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", 1 << 20)
    with open("p.npy", "wb") as file:
        _files.write_header(file, (512, 512), np.dtype(np.float64))
        file.truncate(file.tell() + 8 * 512 * 512)
    if shape is not None:
        with open("y.npy", "wb") as file:
            _files.write_header(file, shape, np.dtype(np.float32))
            file.truncate(file.tell() + (32 << 20))
    posenc.clear_cache()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert _cli.main([*argv, "-o", "x.npy"]) == 0
    assert tracemalloc.get_traced_memory()[1] - before < 8 << 20
    assert Path("x.npy").stat().st_size == 128 + (32 << 20)

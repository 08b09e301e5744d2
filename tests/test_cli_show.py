"""The subcommands that show something: ``conventions``, ``info``, ``bench``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import names, one_line

import posenc
from posenc import _cli, _cli_show

pytestmark = pytest.mark.usefixtures("folder")


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert _cli.main(argv) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def as_json(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    return json.loads(said(capsys, *argv, "--json"))


# ---- conventions -----------------------------------------------------------------------------------------------------


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = said(capsys, "conventions")
    assert max(map(len, text.splitlines())) <= 100
    listed, grids = text.split("grids of two and more axes:")
    for part, table in ((listed, posenc.CONVENTIONS), (grids, posenc.GRIDS)):
        assert [line.split()[0] for line in part.splitlines() if line[:1].strip()] == list(table)
        words = " ".join(part.split())
        for name, entry in table.items():
            assert f"{name} {entry.source}; {entry.users}" in words


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    listed = as_json(capsys, "conventions")
    assert list(listed) == ["conventions", "grids"]
    for part, table in ((listed["conventions"], posenc.CONVENTIONS), (listed["grids"], posenc.GRIDS)):
        assert [entry["name"] for entry in part] == list(table)
        for told in part:
            entry = table[told["name"]]
            assert (told["formula"], told["users"], told["layout"]) == (entry.source, entry.users, entry.layout)
            assert (told["extras"], told["note"]) == (dict(entry.extras), entry.note)
    by_name = {entry["name"]: entry for entry in listed["conventions"]}
    assert (by_name["musicgen"]["cos_first"], by_name["opennmt-tf"]["first"], by_name["whisper"]["odd"]) == (True, 1, "error")
    assert (by_name["fairseq"]["first"], by_name["mlx"]["amplitude"]) == (None, None)  # extras and the width say


@pytest.mark.parametrize("name", posenc.CONVENTIONS)
@pytest.mark.parametrize(("dim", "position"), [(4, 1), (8, -3), (6, 0.5), (2, 2**51 + 1)])
def test_row(name: str, dim: int, position: float, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["conventions", name, "--dim", str(dim), "--position", str(position)]
    encoding = posenc.convention(name, dim)
    row = encoding.encode(position, dtype="float64").tolist()
    [told] = as_json(capsys, *argv)["conventions"]
    assert (told["dim"], told["position"], told["row"]) == (dim, position, row)
    assert told["frequencies"] == encoding.frequencies.tolist()
    lines = said(capsys, *argv).split("\n\n")[0].splitlines()
    assert lines[-1] == f"row:         {' '.join(map(repr, row))}"
    assert lines[0] == f"name:        {name}"


def test_row_of_an_integer_that_is_no_float(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        as_json(capsys, "conventions", "transformer", "--position", str(position))["conventions"][0]["row"]
        for position in (2**53, 2**53 + 1)
    ]
    assert rows == posenc.encode([2**53, 2**53 + 1], 4, dtype="float64").tolist()
    assert rows[0] != rows[1]


@pytest.mark.parametrize(
    ("name", "dim", "shape"),
    [
        ("detr", 4, (1, 2)),
        ("mae", 8, (1, 2)),
        ("simplevit", 8, (1, 2)),
        ("timm", 4, (1, 2)),
        ("tensor2tensor", 8, (1, 2)),
        ("multidim", 6, (1, 2)),
        ("video", 16, (1, 1, 2)),
    ],
)
def test_cell(name: str, dim: int, shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    cell = tuple(n - 1 for n in shape)
    [told] = as_json(capsys, "conventions", name, "--dim", str(dim))["grids"]
    assert (told["dim"], tuple(told["cell"])) == (dim, cell)
    assert told["row"] == posenc.grid(shape, dim, convention=name, dtype="float64")[cell].tolist()


def test_every_grid_has_a_width_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for name, entry in posenc.GRIDS.items():
        [told] = as_json(capsys, "conventions", name)["grids"]
        assert told["dim"] == max(4, entry.multiple) == len(told["row"])
        assert f"users:       {entry.users}\n" in said(capsys, "conventions", name)


def test_name_of_both_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    told = as_json(capsys, "conventions", "tensor2tensor")
    assert [len(told[key]) for key in ("conventions", "grids")] == [1, 1]
    told = as_json(capsys, "conventions", "tensor2tensor", "--dim", "2")  # too narrow for a grid
    assert ["row" in told[key][0] for key in ("conventions", "grids")] == [True, False]
    assert said(capsys, "conventions", "tensor2tensor").count("name:        tensor2tensor\n") == 2


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lstm"], "name is 'lstm'; it must be one of 'transformer', 'marian', "),
        (["whisper", "--dim", "5"], "dim is 5; for 'whisper' it must be even"),
        (["whisper", "--dim", "0"], "dim is 0; it must be at least 1"),
        (["whisper", "--dim", "x"], "argument --dim: invalid int value: 'x'"),
        (["whisper", "--position", "x"], "position is 'x'; it must be an integer or a float"),
        (["whisper", "--position", "nan"], "positions is nan; it must be finite"),
        (["whisper", "--position", str(2**63)], f"position is {2**63}; it must be an int64"),
        (["mae", "--dim", "6"], "dim is 6"),
    ],
)
def test_bad_convention(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["conventions", *argv]) == 2
    assert message in one_line(capsys)


# ---- info ------------------------------------------------------------------------------------------------------------


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    posenc.show_config()
    assert capsys.readouterr().out == said(capsys, "info")
    config = posenc.show_config("dicts")
    assert config is not None
    assert as_json(capsys, "info") == {**config, "kernels": list(config["kernels"])}


# ---- bench -----------------------------------------------------------------------------------------------------------


def bench(program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """``posenc bench`` where ``posenc.bench`` is that program."""
    package = Path("packages", "bench")
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(program)
    code = (
        "import sys, posenc; posenc.__path__.insert(0, 'packages'); sys.modules.pop('posenc.bench', None)\n"
        "from posenc._cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "bench", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("argv", [[], ["--quick"], ["--help"], ["--rows", "encode x", "--json", "-", "-q", "plain", "--quick"]])
@pytest.mark.parametrize("code", [0, 1, 2])
def test_bench(argv: list[str], code: int) -> None:
    """All arguments and the exit code are the bench's own."""
    done = bench(f"import json, sys; print(json.dumps(sys.argv[1:])); sys.exit({code})", *argv)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (code, argv, "")


def test_interrupted_bench() -> None:
    done = bench("raise KeyboardInterrupt")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "posenc: interrupted\n")


def test_no_bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_cli_show, "find_spec", lambda name: None)
    assert _cli.main(["bench", "--quick"]) == 1
    expected = "posenc: this installation has no posenc.bench; in a checkout, python -m bench measures the same\n"
    assert one_line(capsys) == expected
    assert names() == []

"""The example from text to Parquet, run small: the rows are what `posenc.add` makes of them, the usual recipe's are near."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from frameworks import bound, real

import posenc

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "pipeline.py"
LENGTH, DIM, DOCUMENTS = 32, 8, 12

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="not a checkout: an sdist has no docs")


@pytest.fixture
def pipeline():
    for name in ("torch", "pyarrow"):
        real(name, "the example from text to Parquet")
    spec = importlib.util.spec_from_file_location("pipeline", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(pipeline, tmp_path):
    pq = real("pyarrow.parquet", "Parquet")

    def written(**options):
        options = {"length": LENGTH, "dim": DIM, "batch": 3, "topics": DOCUMENTS, "out": tmp_path / "t.parquet", **options}
        clock = pipeline.main([word for name, value in options.items() for word in (f"--{name}", str(value))])
        assert set(clock) == {"tokenise", "pack", "positions", "embed", "write"}
        table = pq.read_table(options["out"])
        return {name: table[name].combine_chunks().to_numpy_ndarray() for name in table.column_names}

    return written


def embedded(pipeline, ids, dtype):
    """What the example's matrix, of a fixed seed, has for the ids."""
    torch = pipeline.torch
    matrix = torch.randn(pipeline.VOCABULARY, DIM, generator=torch.Generator().manual_seed(0))
    return matrix.to(getattr(torch, dtype)).numpy()[ids]


@pytest.mark.filterwarnings("default:.*multi-threaded.*fork:DeprecationWarning")  # of torch's workers, from Python 3.12 on
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_file_is_what_add_makes(pipeline, run, workers, dtype):
    got = run(recipe="posenc", workers=workers, dtype=dtype)
    want = posenc.add(embedded(pipeline, got["ids"], dtype), positions=got["positions"])
    assert (got["x"].dtype, got["x"].shape) == (want.dtype, want.shape)
    assert got["x"].tobytes() == want.tobytes()


def test_documents_are_packed_without_a_gap(pipeline, run):
    got = run(recipe="posenc", workers=0)
    documents = pipeline.tokenised(list(pipeline.topics.values())[:DOCUMENTS])
    flat = [(token, place) for document in documents for place, token in enumerate(document.tolist())]
    kept = len(flat) // LENGTH * LENGTH
    assert kept > 20 * LENGTH
    assert list(zip(got["ids"].ravel().tolist(), got["positions"].ravel().tolist(), strict=True)) == flat[:kept]
    assert got["positions"].max() > LENGTH  # a document goes on counting in the next row


def test_tokens_are_the_words_of_the_text(pipeline):
    first, second = pipeline.tokenised(["The cat, the hat.", "A cat!"])
    assert first.tolist() == [1, 2, 3, 1, 4, 5]
    assert second.tolist() == [6, 2, 7]


@pytest.mark.filterwarnings("default:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_usual_recipe_is_near(run, workers):
    usual, ours = run(recipe="usual", workers=workers), run(recipe="posenc", workers=workers)
    assert all(usual[name].tobytes() == ours[name].tobytes() for name in ("ids", "positions"))
    apart = np.abs(usual["x"].astype(np.float64) - ours["x"])
    assert (apart <= bound(ours["positions"].max()) + np.abs(ours["x"]) * 2.0**-23).all()
    assert apart.any()

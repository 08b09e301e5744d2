"""From text to Parquet: tokens packed into rows, embedded, their positions added in the workers of a DataLoader.

    python docs/examples/pipeline.py --recipe posenc --workers 2 --out rows.parquet

The text is what CPython's own help() tells of the language, which every CPython has. With --recipe usual, positions are added
from a table, as the tutorials do it; nothing else differs. What is printed is where the time went.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pydoc_data.topics import topics
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset

import posenc

VOCABULARY = 8192


class Clock(Counter[str]):
    """Seconds by stage, wherever the stage ran."""

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Add what the block takes."""
        begin = perf_counter()
        yield
        self[stage] += perf_counter() - begin


def tokenised(documents: list[str]) -> list[np.ndarray]:
    """The ids of each document's words and signs; 0 for those that are rarer than the vocabulary's."""
    words = [re.findall(r"\w+|[^\w\s]", document.lower()) for document in documents]
    common = Counter(word for document in words for word in document).most_common(VOCABULARY - 1)
    ids = {word: i for i, (word, _) in enumerate(common, 1)}
    return [np.array([ids.get(word, 0) for word in document], np.int64) for document in words]


def packed(documents: list[np.ndarray], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and positions, each (rows, length): documents one behind another, without padding, each from position 0.

    A document that ends in another row than it began in goes on counting there. The last tokens, less than a row, are left out.
    """
    ids = np.concatenate(documents)
    positions = posenc.positions_from_lengths([len(document) for document in documents])
    rows = len(ids) // length
    pair = (torch.from_numpy(flat[: rows * length].reshape(rows, length)) for flat in (ids, positions))
    return next(pair), next(pair)


def usual_table(length: int, dim: int) -> torch.Tensor:
    """The tutorial's, in float32; the length is that of the longest document, or indexing fails."""
    position = torch.arange(length).unsqueeze(1)
    frequencies = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(position * frequencies)
    table[:, 1::2] = torch.cos(position * frequencies)
    return table


class Embedded(Dataset):
    """Rows of ids as (rows, length, dim), with their positions' encodings: what a worker does."""

    def __init__(self, ids: torch.Tensor, positions: torch.Tensor, matrix: torch.Tensor, table: torch.Tensor | None) -> None:
        self.ids, self.positions, self.matrix, self.table = ids, positions, matrix, table

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: list[int]) -> tuple[list[int], torch.Tensor, dict[str, float]]:
        clock = Clock()
        with clock.of("embed"):
            x = self.matrix[self.ids[rows]]
        with clock.of("positions"):
            if self.table is not None:
                x += self.table[self.positions[rows]]
            else:  # in place, as nobody else has x; in a worker by one thread, without being told
                posenc.add(x, positions=self.positions[rows], out=x)
        return rows, x, dict(clock)


def column(x: torch.Tensor) -> pa.Array:
    """A column of tensors of a fixed shape, in the memory of ``x``."""
    array = x.numpy()
    kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), list(x.shape[1:]))
    values = pa.Array.from_buffers(kind.value_type, array.size, [None, pa.py_buffer(array)])
    lists = pa.FixedSizeListArray.from_arrays(values, math.prod(x.shape[1:]))
    return pa.ExtensionArray.from_storage(kind, lists)


def run(documents: list[str], recipe: str, workers: int, length: int, dim: int, dtype: str, batch: int, out: Path) -> Clock:
    """The whole way; seconds by stage, those in workers summed."""
    clock, kind = Clock(), getattr(torch, dtype)
    with clock.of("tokenise"):
        tokens = tokenised(documents)
    with clock.of("pack"):
        ids, positions = packed(tokens, length)
    matrix = torch.randn(VOCABULARY, dim, generator=torch.Generator().manual_seed(0)).to(kind)  # a model would have its own
    with clock.of("positions"):
        table = usual_table(int(positions.max()) + 1, dim).to(kind) if recipe == "usual" else None
    batches = BatchSampler(range(len(ids)), batch, drop_last=False)
    loader = DataLoader(Embedded(ids, positions, matrix, table), sampler=batches, batch_size=None, num_workers=workers)
    writer = None
    for rows, x, spent in loader:
        clock.update(spent)
        with clock.of("write"):
            columns = {"ids": column(ids[rows]), "positions": column(positions[rows]), "x": column(x)}
            table_of_rows = pa.table(columns)
            # noise in, noise out: neither a dictionary nor a codec makes embeddings smaller
            writer = writer or pq.ParquetWriter(out, table_of_rows.schema, compression="none", use_dictionary=False)
            writer.write_table(table_of_rows)
    with clock.of("write"):
        writer.close()
    return clock


def main(arguments: list[str] | None = None) -> Clock:
    """Read the command line, run, print the seconds by stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", choices=["posenc", "usual"], default="posenc")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--length", type=int, default=256, help="tokens of a row")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
    parser.add_argument("--batch", type=int, default=16, help="rows of a batch")
    parser.add_argument("--topics", type=int, help="take only so many documents")
    parser.add_argument("--out", type=Path, default=Path("rows.parquet"))
    given = parser.parse_args(arguments)
    documents = list(topics.values())[: given.topics]
    begin = perf_counter()
    clock = run(documents, given.recipe, given.workers, given.length, given.dim, given.dtype, given.batch, given.out)
    for stage, seconds in clock.items():
        print(f"{stage:10} {seconds:8.3f} s {seconds / clock.total():6.1%}")
    print(f"{'elapsed':10} {perf_counter() - begin:8.3f} s")
    return clock


if __name__ == "__main__":
    main()

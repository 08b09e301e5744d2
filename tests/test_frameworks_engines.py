"""The functions that the cookbook hands to Ray and Spark, run there: rows have the bits of the table."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "cookbook" / "dask.md"

CHECKS = {
    "ray": """
got = encoded.take_batch(100_000)
rows, positions = got["encoding"], got["position"]
ray.shutdown()
""",
    "pyspark": """
import numpy as np

got = encoded.toArrow()
rows, positions = np.stack(got["encoding"].to_numpy()), got["position"].to_numpy()
spark.stop()
""",
}
EQUAL = """
assert sorted(positions) == list(range(100_000))
assert rows.dtype == "float32" and rows.shape == (100_000, 64)
assert (rows == posenc.encode(positions, 64)).all() and (rows[positions == 7] == posenc.table(8, 64)[7]).all()
print("equal")
"""


@pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")
@pytest.mark.parametrize("engine", CHECKS)
def test_code_of_the_cookbook(engine, tmp_path):
    if not find_spec(engine) or not find_spec("pyarrow"):
        pytest.skip(f"NOT TESTED: the cookbook's code for {engine}, without {engine} and pyarrow")
    if engine == "pyspark" and not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("NOT TESTED: the cookbook's code for pyspark, without Java")
    [code] = [
        block
        for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if f"import {engine}\n" in block or f"from {engine}." in block
    ]
    script = tmp_path / "script.py"
    script.write_text(code + CHECKS[engine] + EQUAL)
    here = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "RAY_USAGE_STATS_ENABLED": "0"}
    ended = subprocess.run([sys.executable, str(script)], env=here, capture_output=True, text=True, timeout=600, check=False)
    assert ended.stdout.rstrip().endswith("equal"), ended.stdout[-2000:] + ended.stderr[-4000:]

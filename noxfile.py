#!/usr/bin/env -S uv run
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""What .ci/run and the workflows do, in parts: ``nox`` alone runs lint and doctests, ``nox -l`` lists the others.

Arguments after ``--`` go to pytest: ``nox -s tests-3.13 -- tests/test_add.py -x``.
"""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.14t", "3.15", "3.15t"]
TOOLS = ".github/tools.txt"
LOWEST = "tests/lowest.txt"


def built(session, **environment):
    """The sdist and the wheel made from it, which nothing that lies about in build/ gets into."""
    folder = Path(session.create_tmp()) / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder), env=environment)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return str(sdist), str(wheel)


@nox.session(python=PYTHONS, default=False)
def tests(session):
    """The tests on one Python; POSENC_OPENMP, POSENC_KERNEL and CC are heeded."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def lint(session):
    """Style, types, workflows."""
    session.install(".[test,lint]", "-r", TOOLS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("zizmor", "--offline", ".")


@nox.session
def doctests(session):
    """The examples in the docstrings and in README; those of PyTorch where it is installed."""
    session.install(".[test,dask]")
    session.run("python", "-m", "pytest", "--doctest-modules", "--doctest-ignore-import-errors", "--pyargs", "posenc")
    session.run("python", "-m", "pytest", "--doctest-glob=README.md", "README.md")


@nox.session(default=False)
def docs(session):
    """The site, in docs/_build, without a warning."""
    session.install(".[docs]")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-n", "docs", "docs/_build", *session.posargs)


@nox.session(default=False)
def wheel(session):
    """Sdist, a wheel made from it, checks of both, and the tests on the wheel."""
    session.install("-r", TOOLS)
    sdist, path = built(session)
    session.run("twine", "check", "--strict", sdist, path)
    session.run("check-wheel-contents", path)
    if "linux" in path:
        session.run("auditwheel", "show", path)
    session.install(f"{path}[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(default=False)
def bench(session):
    """The bench with every contender that installs here; arguments go to it: ``nox -s bench -- sweeps --quick``."""
    session.install(".[bench]")
    session.run("python", "-m", "bench", *session.posargs)


@nox.session(python="3.11", default=False)
def abi3(session):
    """A wheel of the limited API, its symbols, and the tests on it."""
    session.install("-r", TOOLS)
    _, path = built(session, POSENC_ABI3="1")
    session.run("abi3audit", "--strict", "--report", path)
    session.install(f"{path}[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11", default=False)
def lowest(session):
    """Built and tested with the lowest versions that pyproject.toml admits."""
    session.install("-r", LOWEST)
    session.install("--no-build-isolation", "-c", LOWEST, ".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


if __name__ == "__main__":
    nox.main()

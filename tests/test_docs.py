"""The site: every example in its pages runs, and every public name is in its reference."""

import doctest
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import posenc

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path for path in DOCS.glob("**/*.md") if "_build" not in path.parts)
MODULES = [f"posenc.{name}" for name in ("arrow", "conventions", "dask", "frequencies", "plot", "rope", "schemes")]
if importlib.util.find_spec("torch"):
    MODULES.append("posenc.torch")

pytestmark = pytest.mark.skipif(not PAGES, reason="not a checkout: an sdist has no docs")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    """A page that begins with ``<!-- needs: NAME ... -->`` is skipped where one of these packages is missing."""
    needed = re.match(r"<!-- needs: (.+?) -->", page.read_text(encoding="utf-8"))
    for package in needed[1].split() if needed else ():
        pytest.importorskip(package, reason=f"{page.name} has examples with {package}")
    monkeypatch.chdir(tmp_path)  # where examples write their files
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert not failed


def test_pages_with_code_have_examples_that_run():
    """A block of Python without a prompt is run by nobody."""
    for page in PAGES:
        for block in re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            assert block.lstrip().startswith(">>> "), f"{page.name}: {block}"
            assert block.endswith("\n\n"), f"{page.name}: without an empty line doctest takes the fence for output: {block}"


def test_links_of_the_readme_lead_somewhere():
    readme = DOCS.parent / "README.md"
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", readme.read_text(encoding="utf-8"))
    assert [link for link in links if not (readme.parent / link).exists()] == []
    assert links


def documented():
    """Names in the directives of the reference, each with its module."""
    names = set()
    for page in (DOCS / "api").glob("*.md"):
        module = ""
        for directive, argument in re.findall(r"^\.\. ([\w:]+):: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            if directive in ("automodule", "currentmodule"):
                module = argument
                names |= {module} if directive == "automodule" else set()
            else:
                names.add(f"{module}.{argument}")
    return {name for name in names if "posenc.torch" in MODULES or not name.startswith("posenc.torch")}


def test_every_public_name_is_in_the_reference():
    listed = documented()
    things = [pkgutil.resolve_name(name) for name in sorted(listed)]
    assert len(set(map(id, things))) == len(listed), "something is documented under two names"
    for module in (posenc, *map(importlib.import_module, MODULES)):
        for name in module.__all__:
            assert any(getattr(module, name) is thing for thing in things), f"{module.__name__}.{name} is not documented"

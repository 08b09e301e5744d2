"""What Sphinx builds the site with: ``python -m sphinx -W --keep-going -n docs docs/_build``."""

import sys
from importlib.util import find_spec
from pathlib import Path

import posenc

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "posenc"
author = "The posenc developers"
copyright = "The posenc developers"
version = release = posenc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "matplotlib.sphinxext.plot_directive",
    "generated",
    "names",
]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["attrs_block", "deflist"]
myst_heading_anchors = 3

# Docstrings say the types, so signatures need not.
autodoc_typehints = "none"
autosummary_generate = False
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]  # without it a signature is less than it is
numpydoc_show_class_members = False
default_role = "py:obj"

plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
plot_apply_rcparams = True
plot_rcparams = {
    "savefig.facecolor": "white",
    "savefig.bbox": "tight",
    "svg.hashsalt": "posenc",  # so that the same source makes the same file
}

html_theme = "furo"
html_title = f"posenc {version}"
html_static_path = ["_static"]
html_css_files = ["posenc.css"]
html_show_sphinx = False
html_copy_source = False

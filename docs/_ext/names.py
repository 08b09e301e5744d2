"""Names in backticks are links: in Markdown those that begin with ``posenc.``, in docstrings whatever is documented.

A name that begins with ``posenc.`` and is not documented is an error of the build; any other is just code.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

NAME = re.compile(r"(posenc(?:\.\w+)+)(?:\(.*\))?", re.DOTALL)
NOT_NAMES = re.compile(r"posenc\.(toml|npy|css)")


def link_names(app, doctree):
    """Make links of inline code in Markdown, and end blocks of code at their last line that is not empty."""
    if Path(app.env.doc2path(app.env.docname)).suffix == ".md":
        for literal in list(doctree.findall(nodes.literal)):
            found = NAME.fullmatch(literal.astext())
            if found and not isinstance(literal.parent, nodes.reference | addnodes.pending_xref):
                literal.replace_self(reference_to(found[1], literal, app.env.docname))
    for block in doctree.findall(nodes.literal_block):
        code = block.astext().rstrip("\n")
        block.children, block.rawsource = [nodes.Text(code)], code


def reference_to(name, literal, docname):
    """A reference that Sphinx resolves when all pages are read."""
    reference = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refdoc=docname)
    reference["refwarn"] = True
    reference += literal.deepcopy()
    return reference


def leave_as_code(app, env, node, shown):
    """What to show for a name that is not documented; None is an error of the build."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("posenc."):
        return None
    return nodes.literal("", node.astext())


def setup(app):
    """Connect to Sphinx."""
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", leave_as_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

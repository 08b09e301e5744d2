"""Compiler flags of a kernel source, as setup.py has them: ``python tests/kernel_flags.py FILE`` prints them, a line each."""

import ast
import sys
from pathlib import Path

SETUP = Path(__file__).parent.parent / "setup.py"


def constant(name):
    """A constant of setup.py, which cannot be imported: it would build."""
    for node in ast.parse(SETUP.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)


def flags(source):
    """The flags for GCC and clang of a source file, kernel_<isa>.c or another."""
    isa = Path(source).stem.removeprefix("kernel_")
    return [*constant("GNU_FLAGS"), *constant("GNU_ISA").get(isa, [])]


if __name__ == "__main__":
    print("\n".join(flags(sys.argv[1])))

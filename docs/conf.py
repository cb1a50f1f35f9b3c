"""Settings of the site: `make docs` builds it, without a network, and every warning is an error."""

# ruff: noqa: ARG001 - events have the arguments that Sphinx gives them
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpydoc.xref
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))

import figures
import reference
import sources

import lucid

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "lucid"
author = "lucid developers"
copyright = author
version = release = str(lucid.__version__)

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "inventories/scipy.inv"),
    "cupy": ("https://docs.cupy.dev/en/stable/", "inventories/cupy.inv"),
    "torch": ("https://docs.pytorch.org/docs/stable/", "inventories/torch.inv"),
}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
numpydoc.xref.DEFAULT_LINKS.clear()  # they are terms of Python's glossary, which is not asked
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    **{name: f"lucid.{name}" for name in ("Tensor", "Generator", "device", "dtype")},
    **{name: f"lucid.nn.{name}" for name in ("Module", "Parameter")},
    **{name: f"lucid.errors.{name}" for name in lucid.errors.__all__},
    **{name: f"builtins.{name}" for name in ("bool", "int", "float")},  # not the methods of Tensor
    **{name: f"collections.abc.{name.capitalize()}" for name in ("sequence", "iterable")},
    "Optimizer": "lucid.optim.Optimizer",
    "Dataset": "lucid.utils.data.Dataset",
}
numpydoc_xref_ignore = {"optional", "default", "of", "or", "to", "and", "a", "an", "array"}
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
add_module_names = False
default_role = "py:obj"  # what stands between backticks is a link, where it is a public name
html_math_renderer = "mathml"
linkcode_resolve = sources.link
suppress_warnings = ["ref.python"]  # `grad` is an attribute of tensors, and several functions
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_title = f"lucid {release}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what the pages need."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", prepare, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", keep_plain_text, priority=600)  # behind it
    app.connect("build-finished", sources.write)
    app.add_html_math_renderer("mathml", inline_renderers=(inline_math, None), block_renderers=(block_math, None))
    return {"parallel_read_safe": False}  # what is linked is gathered in one process


def write_pages(app: Sphinx) -> None:
    """Write the pages that follow from lucid, and from what was measured, before they are read."""
    docs = Path(app.srcdir)
    reference.write(docs / "reference")
    figures.write(docs.parent / "benchmarks" / "results", docs / "reference" / "figures.md")


def prepare(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Mark in a docstring what is code and what is a link."""
    lines[:] = reference.marked(lines, value)
    if what == "method" and name.startswith("lucid.Tensor."):
        lines[:] = reference.of_this_tensor(lines)


def keep_plain_text(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Take out of a docstring what markup would take otherwise than it is meant."""
    lines[:] = [reference.with_plain_text(line) for line in lines]


def inline_math(writer: Any, node: Any) -> NoReturn:
    """Write a formula as MathML, which browsers show without a script."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: Any) -> NoReturn:
    """Write a formula of its own line as MathML."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode

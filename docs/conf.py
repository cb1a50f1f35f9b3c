"""Settings of the site: `make docs` builds it, without a network, and every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

import reference

import lucid
from lucid.public import written_in

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "lucid"
author = "lucid developers"
copyright = author  # noqa: A001 - Sphinx's name
version = release = str(lucid.__version__)

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
add_module_names = False
default_role = "code"
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"lucid {release}"
html_static_path = ["_static"]
templates_path = []
nitpicky = False


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages of the reference before they are read."""
    app.connect("builder-inited", lambda app: reference.write(Path(app.srcdir) / "reference"))
    app.connect("viewcode-follow-imported", source_of)
    app.connect("autodoc-process-docstring", escape_stars, priority=600)  # behind numpydoc
    app.add_html_math_renderer("mathml", inline_renderers=(inline_math, None), block_renderers=(block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def source_of(app: Sphinx, module: str, attribute: str) -> str | None:
    """Return the module in which something public is written, for the link to its source."""
    owner: Any = sys.modules.get(module)
    for name in attribute.split("."):
        owner = getattr(owner, name, None)
    return written_in(owner) if isinstance(owner, FunctionType | type) else None


def escape_stars(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Escape the stars of shapes, as in ``(batch, *sizes)``, which would begin an emphasis."""
    lines[:] = [reference.with_escaped_stars(line) for line in lines]


def inline_math(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: Any) -> None:
    """Write a formula of its own line as MathML."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode

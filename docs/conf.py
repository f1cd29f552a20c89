"""The documentation site: `make docs` builds it into docs/_build/html, without asking the network for anything."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import corank

sys.path.insert(0, str(Path(__file__).parent))
import make_map

# the pictures of the gallery are the same on every machine: examples that know real data draw made-up ones here
os.environ.pop("CORANK_DATA", None)

project = "corank"
author = "The corank developers"
copyright = author
release = version = corank.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "**/*.ipynb", "**/README.md"]
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
highlight_language = "none"
# `SPD` in a docstring leads to its page where it has one
default_role = "py:obj"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("corank",),
    "abort_on_example_error": True,
    # its page of times asks other machines for scripts
    "write_computation_times": False,
    "within_subsection_order": "ExampleTitleSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "corank"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "navigation_with_keys": False,
}
html_sidebars = {"index": [], "install": [], "measured": [], "contributing": [], "map": []}
# addresses that a machine without network cannot ask for; `make linkcheck` asks for all others
linkcheck_timeout = 20


def _skip(app: Any, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator: it refers to pages of its own."""
    adds = re.fullmatch(r"get_metadata_routing|set_\w+_request|set_output", name)
    return True if adds else None


# literals and sessions, which stay as they are; else names that end in "_" and bars, which reStructuredText would read
PLAIN = re.compile(
    r"(``.*?``|`[^`]*`|^ *(?:>>>|\.\.\.)[^\n]*$)|(?<![\w*`\\])(\w+)_(?!\w)|(?<!\\)(\|)", re.DOTALL | re.MULTILINE
)


def _plain(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Let docstrings write coef_ and |x| as they do: no targets and substitutions are meant."""
    lines[:] = PLAIN.sub(lambda found: found[1] or (f"{found[2]}\\_" if found[2] else "\\|"), "\n".join(lines)).split(
        "\n"
    )


FIELD = re.compile(r"[A-Za-z]\w*(, \w+)*: ")


def _fields(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Make lists of lines such as `name: meaning`, whose continuation lines are indented; not in numpydoc sections."""
    if any(line.startswith("---") for line in lines):
        return
    out: list[str] = []
    is_list = False
    for line in lines:
        if FIELD.match(line):
            out += [f"* {line}"] if is_list else ["", f"* {line}"]
            is_list = True
        elif is_list and line.startswith("    "):
            out.append(f"  {line.strip()}")
        else:
            out += ["", line] if is_list and line else [line]
            is_list = False
    lines[:] = out


def _write_map(app: Any) -> None:
    """Write the page that lists all modules."""
    (Path(__file__).parent / "map.md").write_text(make_map.modules(), encoding="utf-8")


def setup(app: Any) -> None:
    """Register what is left out, and what is read as it is written, after numpydoc has made its sections."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("builder-inited", _write_map)
    app.connect("autodoc-process-docstring", _fields, priority=400)
    app.connect("autodoc-process-docstring", _plain, priority=600)

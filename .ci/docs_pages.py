"""Hooks of the documentation's build: the order of the pages, links out of docs/, and the reference.

Every Markdown file of docs/ becomes a page: those named here in this order, others after them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pydpmode"

SECTIONS = {
    "Start": ["index.md", "choosing.md", "limits.md"],
    "Guarantee": ["guarantee.md", "evidence.md", "where-we-differ.md"],
    "Models": ["bandwidth.md", "regression.md", "clustering.md", "preprocessing.md", "grams.md"],
    "Measured": ["accuracy.md", "paper.md", "tables.md", "peers.md"],
    "Data": ["big-data.md", "speed.md"],
}
REFERENCE = "reference.md"
# Short names for the side bar; other pages have their headings there.
SHORT = {
    "index.md": "Quick start",
    "choosing.md": "Choosing epsilon, bounds, bandwidth",
    "accuracy.md": "Accuracy",
    "grams.md": "DP-GRAMS",
    "guarantee.md": "The guarantee",
    "where-we-differ.md": "Where we differ",
    "tables.md": "Tables of the paper",
    "big-data.md": "Data that do not fit",
    "speed.md": "Speed",
}
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_config(config: Any) -> Any:
    """List the pages: sections as above, then what is in none of them, then the reference."""
    found = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    nav: list[dict[str, Any]] = []
    for title, pages in SECTIONS.items():
        here = [page for page in pages if page in found]
        if here:
            nav.append({title: [{SHORT[page]: page} if page in SHORT else page for page in here]})
        found -= set(here)
    found.discard(REFERENCE)
    if found:
        nav.append({"More": sorted(found)})
    nav.append({"Reference": [REFERENCE]})
    config.nav = nav
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write the reference, and turn links out of docs/ into the names of their files."""
    if page.file.src_uri == REFERENCE:
        return markdown.replace("<!-- reference -->", "\n\n".join(f"::: {name}" for name in public_names()))
    return _LINK.sub(lambda link: f"{link[1]} (`{link[2].removeprefix('../')}`)", markdown)


def public_names() -> list[str]:
    """Return what `import pydpmode` offers, by its full name, and the classes of results."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    lazy = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_LAZY"
    )
    names = {f"pydpmode.{module}" + ("" if module == name else f".{name}") for name, module in lazy.items()}
    for path in (PACKAGE / "results").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Results"):
                names.add(f"pydpmode.results.{path.stem}.{node.name}")
    names |= {"pydpmode.budget.Budget", "pydpmode.errors"}
    return sorted(names, key=_place)


def _place(name: str) -> tuple[int, str]:
    layers = [".models.", ".privacy.private_data", ".budget", ".privacy.", ".results.", ".numerics."]
    layer = next((i for i, part in enumerate(layers) if part in name), len(layers))
    return layer, name

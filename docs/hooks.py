"""What the site shows beside the pages: the API reference, files of the repository that pages link to, and its changelog.

``mkdocs`` calls these functions (``mkdocs.yml``, hooks).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(\.\./([^)#\s]+)\)")
# what the repository has at its root, as pages of the site
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
# a page of the reference, and the packages whose public names it has; of ``enfa`` those that come from the packages after it
API = {
    "plans": ("Plans and bags", ["enfa.nn.bag", "enfa.plan"], "From graphs, a policy and a model to a plan."),
    "models": ("Models", ["enfa.nn"], "What runs on plans. [A model of your own](../own_models.md) is any module."),
    "policies": ("Policies", ["enfa.edits"], "What makes the subgraphs, with pictures in [Policies](../policies.md)."),
    "batches": ("Batches", ["enfa.batch"], "Compiled datasets, and the batches cut out of them."),
    "datasets": ("Datasets", ["enfa.datasets"], "Benchmarks by name, and your own data."),
    "training": ("Training", ["enfa.training"], "What `enfa train` does, from Python. Needs the extra `enfa[train]`."),
    "testing": ("Testing", ["enfa.testing"], "Checks that you can run on your own models."),
    "power": ("Power", ["enfa.expressiveness"], "What a model class can tell apart, without training."),
}
# rooms whose other names are for those who change the package
BY_ENFA = ("enfa.nn.bag", "enfa.plan", "enfa.expressiveness", "enfa.edits")


def public(package: str) -> list[str]:
    """``__all__`` of a package, read without importing it."""
    tree = ast.parse((ROOT / "src" / package.replace(".", "/") / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError(f"Expected __all__ in {package}, got none")


def origins() -> dict[str, str]:
    """Where each public name of ``enfa`` comes from."""
    tree = ast.parse((ROOT / "src" / "enfa" / "__init__.py").read_text())
    found = {a.name: str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    return {name: found.get(name, "enfa") for name in public("enfa")}


def rooms(of_enfa: dict[str, str]) -> dict[str, tuple[str, list[str], str]]:
    """``API``, and a page for every other room that a public name comes from."""
    found = dict(API)
    known = [package for _, packages, _ in API.values() for package in packages]
    for home in of_enfa.values():
        package = ".".join(home.split(".")[:2])
        if home != "enfa" and not any(home == name or home.startswith(f"{name}.") for name in known):
            found[package.removeprefix("enfa.")] = (package.removeprefix("enfa.").capitalize(), [package], "")
    return found


def reference() -> dict[str, str]:
    """Path -> Markdown of every page of the reference. Each public name of ``enfa`` is on one of them."""
    pages, shown = {}, {"testing"}  # which is a package, and has its page
    of_enfa = origins()
    for page, (title, packages, lead) in rooms(of_enfa).items():
        names = {}
        for package in packages:
            names |= {name: f"enfa.{name}" for name, home in of_enfa.items() if re.match(rf"{package}(\.(?!bag)|$)", home)}
            if package not in BY_ENFA and page in API:
                names |= {name: f"{package}.{name}" for name in public(package) if name not in names}
        shown |= set(names)
        pages[f"api/{page}.md"] = "\n\n".join([f"# {title}", lead, *(f"::: {names[name]}" for name in sorted(names))])
    if missing := sorted(set(of_enfa) - shown):
        raise ValueError(f"Expected a page of the reference for every public name of enfa, got none for {missing}")
    return pages


def linked(pages: dict[str, str]) -> set[str]:
    """Files outside of docs that pages link to, as they stand in the repository."""
    return {target for text in pages.values() for target in LINK.findall(text)} - set(PAGES)


def _moved(text: str) -> str:
    """Links to files of the repository lead to the site's copies of them."""
    return LINK.sub(lambda m: f"]({PAGES.get(m[1], 'files/' + m[1])})", text)


def on_config(config: Any) -> None:
    """Pages that the navigation does not name stand at the end of their section."""
    sections = {title: pages for section in config.nav for title, pages in section.items()}
    named = {page for pages in sections.values() if isinstance(pages, list) for entry in pages for page in entry.values()}
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name not in named and path.name != "index.md":
            sections["Using it"].append(path.name)
    sections["Reference"] += [{title: f"api/{page}.md"} for page, (title, _, _) in rooms(origins()).items() if page not in API]


def on_files(files: Files, config: Any) -> Files:
    for path, text in reference().items():
        files.append(File.generated(config, path, content=text))
    pages = {page.name: page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))}
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):  # as seen from the folder of the pages
        text = re.sub(r"\]\((?!http|#)([^)\s]+)\)", r"](../\1)", (ROOT / name).read_text())
        pages[PAGES[name]] = text = text.replace("](../docs/", "](")
        files.append(File.generated(config, PAGES[name], content=text))
    for target in sorted(linked(pages)):
        if (ROOT / target).is_file():  # a broken link stays one, and the build says so
            files.append(File.generated(config, f"files/{target}", abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri == "porting.md":  # two columns of code want the room
        page.meta["hide"] = ["toc"]
    return markdown if page.file.src_uri.startswith("api/") else _moved(markdown)


def _cell(match: re.Match[str]) -> str:
    """A cell of a table: a sentence asks for room, numbers and dates stay on one line, paths break behind a slash."""
    style, text = match.groups()
    text = re.sub(r"<code>[^<]*</code>", lambda m: re.sub(r"(?<!<)/", "/<wbr>", m[0]), text)
    text = re.sub(r"\d{4}-\d{2}-\d{2}", r'<span class="whole">\g<0></span>', text).replace(" ± ", "&nbsp;±&nbsp;")
    sentence = len(re.sub(r"<[^>]*>", "", text)) > 40 and len(text.split()) > 4
    kind = ' class="sentence"' if sentence else ""
    return f"<td{style}{kind}>{text}</td>"


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name each other as Sphinx has it, :func:`~enfa.trace`; here that is code. Tables fit narrow screens."""
    html = re.sub(r"<td((?: style=\"[^\"]*\")?)>(.*?)</td>", _cell, html, flags=re.S)
    return re.sub(r":(?:func|class|meth|mod|attr):<code>~?([^<]*)</code>", r"<code>\1</code>", html)

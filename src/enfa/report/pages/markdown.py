"""The same sections as Markdown, with the figures as PNG files beside it. Long tables are in the page and in the JSON files."""

from collections.abc import Sequence
from pathlib import Path

from enfa.report.pages.figures import figure_png
from enfa.report.show.page import Section, Table

__all__ = ["write_markdown"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(table: Table) -> list[str]:
    lines = [f"| {' | '.join(map(_cell, table.header))} |", "|" + "---|" * len(table.header)]
    lines = [f"### {table.title}", "", *lines, *(f"| {' | '.join(map(_cell, row))} |" for row in table.rows)]
    return [*lines, "", f"*{table.note}*", ""] if table.note else [*lines, ""]


def write_markdown(path: Path, title: str, lead: str, sections: Sequence[Section], footer: str) -> None:
    """``report.md``, and ``figures/NAME.png`` for every figure."""
    (path.parent / "figures").mkdir(exist_ok=True)
    lines = [f"# {title}", "", lead, ""]
    headlines = [h for section in sections for h in section.headlines]
    lines += [f"- **{h.value}** {h.what}" + (f" ({h.beside})" if h.beside else "") for h in headlines]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        for sentence in section.sentences:
            lines += [sentence, ""]
        if section.html:
            lines += ["Step through the layers in [index.html](index.html).", ""]
        for figure in section.figures:
            figure_png(figure, path.parent / "figures" / f"{figure.name}.png")
            picture = f"![{figure.title}](figures/{figure.name}.png)"
            lines += [f"### {figure.title}", "", picture, "", f"*{figure.note}*", ""]
        for table in section.tables:
            lines += [] if table.folded else _table(table)
        if folded := [table.title for table in section.tables if table.folded]:
            names = "; ".join(folded)
            lines += [f"All numbers ({names}): [index.html](index.html), and [JSON](results/{section.name}.json).", ""]
    path.write_text("\n".join([*lines, "---", "", footer, ""]))

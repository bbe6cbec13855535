"""Sections as one HTML file that opens from disk: no network, no framework."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from enfa.report.pages.figures import panel_svg
from enfa.report.show.page import Figure, Headline, Section, Table

__all__ = ["page_html"]


def _headline(h: Headline) -> str:
    state = "" if h.ok is None else " good" if h.ok else " bad"
    return (
        f'<div class="tile{state}"><b>{escape(h.value)}</b><span>{escape(h.what)}</span>'
        + (f"<i>{escape(h.beside)}</i>" if h.beside else "")
        + "</div>"
    )


def _figure(figure: Figure) -> str:
    panels = "".join(
        f'<div class="panel">{panel_svg(panel, f"{figure.name}{i}")}</div>' for i, panel in enumerate(figure.panels)
    )
    key = "".join(f'<li><span class="s-{colour}"></span>{escape(text)}</li>' for text, colour in figure.legend)
    return (
        f'<h3>{escape(figure.title)}</h3><ul class="key">{key}</ul><div class="panels">{panels}</div>'
        f'<p class="note">{escape(figure.note)}</p>'
    )


def _is_word(text: str) -> bool:
    return bool(text) and not text.lstrip("✗ −-±")[:1].isdigit()


def _table(table: Table) -> str:
    columns = list(zip(*table.rows)) or [()] * len(table.header)
    word = [' class="word"' if any(_is_word(cell) for cell in column) else "" for column in columns]
    head = "".join(f"<th{w}>{escape(cell)}</th>" for w, cell in zip(word, table.header))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{w if not cell.startswith('✗') else ' class=fail'}>{escape(cell)}</td>" for w, cell in zip(word, row))
        + "</tr>"
        for row in table.rows
    )
    inside = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    inside = f'<div class="scroll" tabindex="0">{inside}</div>'
    if table.note:
        inside += f'<p class="note">{escape(table.note)}</p>'
    if table.folded:
        return f"<details><summary>{escape(table.title)}: all numbers</summary>{inside}</details>"
    return f"<h3>{escape(table.title)}</h3>{inside}"


def _section(section: Section) -> str:
    state = ' class="failed"' if section.ok is False else ""
    first, *others = section.sentences
    verdict = ' class="verdict"' if section.ok is not None else ""
    return (
        f'<section id="{section.name}"{state}><h2>{escape(section.title)}</h2><p{verdict}>{escape(first)}</p>'
        + "".join(f"<p>{escape(s)}</p>" for s in others)
        + section.html
        + "".join(map(_figure, section.figures))
        + "".join(map(_table, section.tables))
        + "</section>"
    )


def page_html(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The whole page."""
    style = (files("enfa.report") / "assets" / "page.css").read_text()
    tiles = "".join(_headline(h) for section in sections for h in section.headlines)
    links = "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>\n<style>{style}</style></head>\n<body>'
        f'<header><div><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p><div class="tiles">{tiles}</div>'
        f"<nav>{links}</nav></div></header>\n<main>"
        + "\n".join(map(_section, sections))
        + f"</main>\n<footer>{escape(footer)}</footer></body></html>\n"
    )

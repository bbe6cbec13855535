"""What a page consists of, before it is HTML or Markdown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes

__all__ = ["Figure", "Headline", "Panel", "Section", "Table"]


@dataclass
class Panel:
    """One small diagram: the same drawing serves the page (SVG) and report.md (PNG)."""

    title: str
    draw: Callable[[Axes], None]
    size: tuple[float, float] = (3.7, 2.7)  # inches


@dataclass
class Figure:
    """Panels with one legend, and under them what they were measured with."""

    name: str  # of its file
    title: str
    panels: list[Panel]
    legend: Sequence[tuple[str, str]]  # (text, colour of figures.COLOURS)
    note: str


@dataclass
class Table:
    """Cells are text; one that starts with ✗ is shown as a failure."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""
    folded: bool = True


@dataclass
class Headline:
    """One number that stands at the top."""

    value: str
    what: str
    beside: str = ""  # the paper's, mostly
    ok: bool | None = None


@dataclass
class Section:
    name: str
    title: str
    sentences: list[str]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    headlines: list[Headline] = field(default_factory=list)
    ok: bool | None = None  # False turns the section red
    html: str = ""  # what only a browser can show

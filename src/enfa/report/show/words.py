"""Numbers as a reader wants them, and the line under every figure."""

from collections.abc import Iterable
from typing import Any

__all__ = ["KIND_NAMES", "LEGEND", "bytes_text", "figure_note", "span", "times", "tiny"]

KIND_NAMES = {"full": "conventional", "ego": "ENFA as published", "distinct": "distinct rows"}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEGEND = [(text, kind) for kind, text in KIND_NAMES.items()]


def bytes_text(value: float) -> str:
    """
    >>> bytes_text(38_194_000_000), bytes_text(1_260_000), bytes_text(950)
    ('38.2 GB', '1.26 MB', '950 B')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{_three(value / size)} {unit}"
    return f"{value:.0f} B"


def _three(value: float) -> str:
    """Three digits that count.

    >>> _three(1.2345), _three(38.19), _three(4509.2)
    ('1.23', '38.2', '4,509')
    """
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def times(value: float) -> str:
    """
    >>> times(1.664), times(23.04), times(2349.3)
    ('1.66×', '23.0×', '2,349×')
    """
    return f"{_three(value)}×"


def tiny(value: float) -> str:
    """
    >>> tiny(3.21e-14), tiny(0.0), tiny(0.2), tiny(1e300)
    ('3×10⁻¹⁴', '0', '0.2', 'not comparable')
    """
    if value >= 1e200:
        return "not comparable"
    if value == 0 or value >= 0.01:
        return f"{value:.1g}"
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit}×10{str(int(power)).translate(RAISED)}"


def span(values: Iterable[int]) -> str:
    """
    >>> span([32, 32]), span([32, 8, 16]), span([])
    ('32', '8 to 32', '0')
    """
    found = sorted(set(values)) or [0]
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def figure_note(stored: dict[str, Any], *more: str) -> str:
    """Hardware and versions, then what the figure adds."""
    machine, settings = stored["machine"], stored["settings"]
    threads = settings["threads"]
    where = f"{machine['cpu']}, {machine['cores']} cores"
    if "gpu" in machine:
        where = f"{machine['gpu']}; host {where}"
    if settings["device"] == "cpu" and threads:
        where += f", {threads} thread{'s' if threads > 1 else ''}"
    versions = f"enfa {machine['enfa']}, torch {machine['torch']}, torch_geometric {machine['torch_geometric']}"
    return ". ".join([f"{where}; {versions}, Python {machine['python']}", *more]) + "."

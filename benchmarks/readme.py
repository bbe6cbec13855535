"""Write the figures of results/cpu and results/gpu between the marks of README.md and docs/figures.md: ``python
benchmarks/readme.py``."""

from __future__ import annotations

from pathlib import Path

from figure_parts.peers import best_of_peers, model_figures, peer_figures, whole_figures
from figure_parts.steps import compile_figures, figures, gpu_figures, sharing, sharing_figures

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: benchmarks/readme.py -->", "<!-- end of figures -->"


def between(page: str, parts: list[str]) -> str:
    """A page with everything between the marks replaced."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n" + "\n\n".join(part for part in parts if part) + f"\n{END}{rest.split(END)[1]}"


def in_short(results: Path) -> list[str]:
    """README's."""
    gpu = results / "gpu"
    whole = whole_figures(gpu / "whole.json").replace("](GPU.md", "](docs/gpu.md")
    return [figures(results / "cpu"), best_of_peers(gpu / "peers.json", sharing()), whole]


def in_full(results: Path) -> list[str]:
    gpu = results / "gpu"
    return [
        "## On a CPU", figures(results / "cpu"), compile_figures(results / "cpu"),
        "## On a GPU", gpu_figures(gpu), sharing_figures(),
        "## Rivals' own code", peer_figures(gpu / "peers.json"), model_figures(gpu / "peers.json"),
        "## Whole trainings", whole_figures(gpu / "whole.json").replace("](GPU.md", "](gpu.md"),
    ]  # fmt: skip


PAGES = {"README.md": in_short, "docs/figures.md": in_full}

if __name__ == "__main__":
    for name, parts in PAGES.items():
        page = ROOT / name
        page.write_text(between(page.read_text(), parts(ROOT / "results")))

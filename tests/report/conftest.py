import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from enfa.datasets import Benchmark, from_graphs
from enfa.report.pages.write import write_pages
from enfa.report.reproduce import measure, open_store
from enfa.report.settings import SECTIONS, TINY, Settings
from enfa.testing import random_graphs

SMALL = TINY.to(datasets=("EXP",))


def made_up(name: str) -> Benchmark:
    """Stands in for a dataset: classes without edge attributes, or yes/no tasks with some not measured."""
    molecules = name.startswith("ogbg")
    graphs = random_graphs(12, nodes=9, seed=len(name), channels=[3, 2], edge_channels=[2] if molecules else None)
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([[float(i % 2), float("nan") if i % 3 else 1.0]]) if molecules else torch.tensor([i % 2])
    return from_graphs(graphs, name=name, in_channels=[3, 2], edge_channels=[2] if molecules else None)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    """Measure and write a report of made-up data; returns its folder."""

    def report(sections: tuple[str, ...] = SECTIONS, settings: Settings = TINY, fresh: bool = False) -> Path:
        store = open_store(tmp_path / "report", settings, fresh)
        for _ in measure(sections, made_up, settings, store, tmp_path / "no results"):
            pass
        write_pages(tmp_path / "report")
        return tmp_path / "report"

    return report


@pytest.fixture
def measured(whole_report: Path, tmp_path: Path) -> Path:
    """The folder of ``run``, with the exactness of ``SMALL`` measured and written: what the whole report says of its data."""
    (tmp_path / "report" / "results").mkdir(parents=True)
    found = json.loads((whole_report / "results" / "exactness.json").read_text())
    found["results"] = {key: value for key, value in found["results"].items() if key.split(" | ")[0] in SMALL.datasets}
    (tmp_path / "report" / "results" / "exactness.json").write_text(json.dumps(found))
    assert write_pages(tmp_path / "report")
    return tmp_path / "report"


@pytest.fixture(scope="session")
def whole_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every section, made once, whichever process wants it first."""
    own = tmp_path_factory.mktemp("whole") / "report"
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    made = own if alone else tmp_path_factory.getbasetemp().parent / "whole_report"
    if not made.exists():
        for _ in measure(SECTIONS, made_up, TINY, open_store(own, TINY, False), own / "no results"):
            pass
        assert write_pages(own)
        if made != own:
            with suppress(OSError):  # another one was quicker
                own.rename(made)
    return made

"""Fewer layers of what was compiled are what compiling for fewer layers finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from program_cases import CASES, Case, Chain, assert_exact, graphs_of

import enfa
from enfa.plan.rows.truncate import shorter
from enfa.plan.step import Program, Step

NAMES = ["ds", "ds, kept nodes", "ds, edges", "ds, degrees", "ds, not counted", "full, kept nodes"]


def _shallow(case: Case, layers: int) -> Case:
    def model() -> torch.nn.Module:
        made = case.model()
        assert isinstance(made, Chain)
        made.convs = made.convs[:layers]
        return made

    return replace(case, model=model)


@pytest.mark.parametrize("name", NAMES)
def test_the_dataset_of_a_shallower_model(name: str, tmp_path: Path) -> None:
    case, graphs = CASES[name], graphs_of(CASES[name])
    deep = case.compiled(graphs)
    for layers in range(1, len(case.made().convs) + 1):
        less, there = _shallow(case, layers), deep.first_layers(layers)
        alone = less.compiled(graphs)
        assert there.program == alone.program and there.cost().rows == alone.cost().rows and there.key == alone.key
        np.testing.assert_array_equal(there.rows_per_graph(), alone.rows_per_graph())
        there.save(tmp_path / "x.enfa")
        for found in (there, enfa.load_compiled(tmp_path / "x.enfa", expect=alone.key)):
            for chosen in ([3, 0, 14], list(range(len(graphs)))):
                assert_exact(less, found[chosen], [graphs[g] for g in chosen])


def test_datasets_that_share_tables_are_extended_by_other_graphs() -> None:
    case, more = CASES["ds, edge marks"], graphs_of(CASES["ds, edge marks"], 6, 4, False)
    graphs = graphs_of(case)
    deep = case.compiled(graphs)
    shallow, before = deep.first_layers(1), deep.cost()
    shallow.extend(more[:3])  # with marks that the other one does not know
    assert deep.cost() == before
    assert_exact(case, deep[:], graphs)
    deep.extend(more[3:])
    assert_exact(case, deep[:], graphs + more[3:])
    assert_exact(_shallow(case, 1), shallow[:], graphs + more[:3])


def test_only_chains_have_fewer_layers() -> None:
    compiled = CASES["dss"].compiled(graphs_of(CASES["dss"]))
    with pytest.raises(ValueError, match="Expected steps that pass messages one after the other and pool the last"):
        compiled.first_layers(1)
    deep = CASES["ds"].compiled(graphs_of(CASES["ds"]))
    for count in (0, 4):
        with pytest.raises(ValueError, match=f"Expected 1 to 3 layers, as compiled, got {count}"):
            deep.first_layers(count)


def test_needs_follow_their_steps() -> None:
    steps = [Step("start", "pairs"), *(Step("propagate", "pairs", (i,)) for i in range(3))]
    steps += [Step("pool", "subgraphs", (3,)), Step("pool", "graphs", (4,))]
    needs = {(0, "identity"), (1, "merged"), (3, "merged"), (4, "lowered 1"), (4, "lowered 2"), (4, "written out"), (5, "sum")}
    found = shorter(Program(tuple(steps), needs=frozenset(needs)), 1)
    assert found.needs == {(0, "identity"), (1, "merged"), (2, "lowered 1"), (2, "written out"), (3, "sum")}

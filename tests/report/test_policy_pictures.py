from __future__ import annotations

from pathlib import Path

import yaml

import enfa
from enfa.edits import POLICIES
from enfa.report.policies import PICTURES, draw_policies, draw_policy
from enfa.testing import random_graph
from enfa.training.build import make_model, make_policy
from enfa.training.problem import Problem
from enfa.training.settings.config import Config

DOCS = Path(__file__).parents[2] / "docs"


def test_every_policy_has_a_picture_in_the_documentation(tmp_path):
    assert {type(p) for p in PICTURES.values()} == set(POLICIES.values())
    drawn = draw_policies(tmp_path)
    text = (DOCS / "policies.md").read_text()
    for path in drawn:
        assert f"policies/{path.name}" in text and (DOCS / "policies" / path.name).exists()
    assert len({path.read_bytes() for path in drawn}) == len(drawn)
    for name in POLICIES:
        assert f"`{name}`" in text


def test_every_picture_has_its_yaml_which_makes_what_it_shows():
    """The block behind each picture is a config that works."""
    text = (DOCS / "policies.md").read_text()
    for name, policy in PICTURES.items():
        behind = text.split(f"](policies/{name}.png)")[1]
        assert behind.startswith("\n\n```yaml\n"), name
        settings = yaml.safe_load(behind.split("```yaml\n")[1].split("```")[0])
        config = Config.make({"dataset": "PROTEINS", **settings})
        assert make_policy(config) == policy
        make_model(config, Problem("multiclass", "accuracy", 2, 3, None))


def test_a_graph_of_ones_own():
    figure = draw_policy(enfa.EgoNets(1, mark=True), random_graph(5, 3.0, seed=1), subgraphs=3)
    assert len(figure.axes) == 3
    # five nodes each, present or not
    assert all(len(ax.collections) == 5 for ax in figure.axes)


def test_the_examples_in_the_documentation_run():
    """One after the other, in one session."""
    blocks = [part.split("```")[0] for part in (DOCS / "policies.md").read_text().split("```python\n")[1:]]
    names: dict = {}
    for code in blocks:
        exec(compile(code, "policies.md", "exec"), names)
    assert len(blocks) == 3 and len(names["train"]) == 20 and len(names["nodes"]) == 8

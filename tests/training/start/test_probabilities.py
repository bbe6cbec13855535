"""Models of the user's own that end in a sigmoid or a softmax are told of before they are trained."""

from collections.abc import Callable
from typing import Any

import endings
import numpy as np
import pytest
from torch import Tensor

import enfa
from enfa.testing import random_graphs
from enfa.training import fit, read_config
from enfa.training.start.probabilities import tell_probabilities

TASKS = (np.arange(80).reshape(40, 2) % 3 == 0).astype(float)
LABELS = {"classes": np.arange(40) % 3, "tasks": TASKS, "numbers": np.arange(40) + 0.5}


@pytest.mark.parametrize(
    ("labels", "model", "said"),
    [
        (
            "tasks",
            "Sigmoid",
            "between 0 and 1, whatever its weights), but the loss takes them for logits: leave out the sigmoid",
        ),
        ("tasks", "Logits", None),
        ("tasks", "Positive", None),
        ("tasks", "Dead", None),
        ("tasks", "Constant", None),
        ("tasks", "Zero", None),
        ("classes", "Softmax", "between 0 and 1 and add up to 1, whatever"),
        ("classes", "Sigmoid", "between 0 and 1, whatever"),
        ("classes", "Logits", None),
        ("classes", "LogSoftmax", None),  # of which a softmax changes nothing
        ("numbers", "Sigmoid", None),
    ],
)
def test_told_of_what_no_weights_change(
    labels: str, model: str, said: str | None, config_file: Callable, make_npz: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    lines: list[str] = []
    monkeypatch.setattr("enfa.training.start.probabilities.tell", lines.append)
    monkeypatch.setenv("ENFA_CODE", endings.__file__)
    config = read_config(config_file(dataset=str(make_npz(LABELS[labels])), model=model, epochs=1, jk=None))
    assert fit(config, progress=False) is not None
    assert [str(said) in line and line.startswith(model) for line in lines] == [True] * (said is not None)


def test_models_of_the_package_are_not_tried(config_file: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.training.start.probabilities.make_plan", lambda *args: pytest.fail("tried"))
    assert fit(read_config(config_file(epochs=1)), progress=False) is not None


def test_the_first_logit_is_enough(config_file: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Counting(enfa.DSGNN):
        def forward(self, bag: enfa.Bag) -> Tensor:
            calls.append(len(bag.feature))
            return super().forward(bag)

    monkeypatch.setenv("ENFA_CODE", endings.__file__)
    problem: Any = type("Tasks", (), {"task": "tasks"})
    tell_probabilities(
        read_config(config_file(model="Logits", jk=None)), Counting(3, 4, 2, 2), problem, random_graphs(3, 6, channels=3)
    )
    assert len(calls) == 2  # traced, and tried

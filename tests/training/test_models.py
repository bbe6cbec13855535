"""Any model by name, with the arguments of its own constructor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import code_of_mine
import pytest
import torch
from code_of_mine import Own

from enfa.nn import DSGNN, DSSGNN
from enfa.nn.models.arguments import arguments
from enfa.training import Config, fit, load_model, read_config
from enfa.training.build import make_model
from enfa.training.problem import Problem
from enfa.training.settings.folder import LAST, folder_of

Write = Callable[..., Path]
PROBLEM = Problem("multiclass", "accuracy", 2, [3], [4])


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own file."""
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)


def config(**settings: Any) -> Config:
    return Config(**{"dataset": "", "model": "Own", "model_params": {"power": 3}, **settings})


def test_settings_that_a_constructor_takes_reach_it() -> None:
    model = make_model(config(num_layers=2, model_params={"power": 3, "slope": 0.5}), PROBLEM)
    assert isinstance(model, Own) and model.given == {"num_layers": 2, "edge_channels": [4], "power": 3, "slope": 0.5}
    assert make_model(config(precision="64"), PROBLEM).head.weight.dtype == torch.float64
    one, other = (make_model(config(seed=seed), PROBLEM) for seed in (0, 1))
    assert not torch.equal(one.head.weight, other.head.weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": "Owm"},
            r"Expected model to be one of .*Own, .*got 'Owm' \(did you mean 'Own'\?\); code_of_mine.py has no other",
        ),
        ({"model_params": {"pover": 3}}, r"argument of Own to be one of power, slope, got 'pover' \(did you mean 'power'\?\)"),
        ({"model_params": {}}, "Expected power among model_params, which Own needs, got none"),
        (
            {"model": "misspelt", "model_params": {}},
            r"misspelt needs, got none \(an argument called in_channels is given by itself\)",
        ),
        ({"model_params": {"power": 3, "num_layers": 2}}, "Expected num_layers as a setting of its own"),
        ({"model_params": {"power": 3, "in_channels": 2}}, "argument of Own to be one of power, slope, got 'in_channels'"),
        ({"jk": "concat"}, "Expected no jk for the model Own, which has none, got 'concat'"),
        ({"model": "ds", "model_params": {"power": 1}}, "argument of ds to be one of independent_dropout, got 'power'"),
        ({"model": "ds", "context": "mpnn", "model_params": {}}, "Expected no context for the model ds, which has none"),
        ({"conv": "gine", "dropout": 0.5}, "Expected no conv for the model Own"),
    ],
)
def test_others_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_model(config(**settings), PROBLEM)


def test_a_model_has_defaults_of_its_own() -> None:
    made = config(model="Means", model_params={})
    assert (made.readout, made.conv, made.residual) == ("mean", "gin", True) and Config.make(made.to_dict()) == made
    assert make_model(made, PROBLEM).readout == "mean" and make_model(made, PROBLEM).adds
    made = config(model="Means", model_params={}, readout="sum", residual=False)
    assert make_model(made, PROBLEM).readout == "sum" and not make_model(made, PROBLEM).adds
    with pytest.raises(TypeError, match=r"^Means takes no bag"):  # as it was raised, in the user's own file
        make_model(config(model="Means", model_params={}, bag="sum"), PROBLEM)


@pytest.mark.parametrize("name", ["ds", "Attends"])
def test_a_conv_takes_two_widths(name: str) -> None:
    with pytest.raises(ValueError, match=r"Expected three\(in_channels, out_channels\) to make a conv: three\(\) missing 1 "):
        make_model(config(model=name, model_params={}, conv="three"), PROBLEM)


def test_a_model_has_a_forward() -> None:
    with pytest.raises(ValueError, match=r"^Expected Still to have a method forward\(bag\), got none"):
        make_model(config(model="Still", model_params={}), PROBLEM)


def test_edges_reach_models_that_read_them() -> None:
    for conv, edges in ((None, [4]), ("gine", [4]), ("gin", None)):  # what the package has no conv of, reads what it likes
        model = make_model(config(model="Attends", model_params={}, conv=conv), PROBLEM)
        assert model.given["edge_channels"] == edges and model.given["conv"] == (conv or "gat")


def test_arguments_that_are_handed_on_are_known() -> None:
    assert list(arguments(DSSGNN))[:6] == ["in_channels", "hidden_channels", "out_channels", "num_layers", "conv", "context"]
    assert arguments(DSSGNN).keys() - arguments(DSGNN).keys() == {"context"}
    assert "independent_dropout" in arguments(DSSGNN)


def test_it_trains_and_comes_back(config_file: Write) -> None:
    path = config_file(model="Own", model_params={"power": 2}, jk=None, epochs=2)
    made = read_config(path, ["model_params.slope=0.25"])
    fit(made, progress=False)
    model, read, _ = load_model(folder_of(made) / LAST)
    assert isinstance(model, Own) and model.given["slope"] == 0.25 and read == made


def test_only_means_over_a_bag_may_be_drawn(config_file: Write) -> None:
    draw = {"policy": "subsample", "policy_params": {"policy": "node_marking", "count": 2}}
    made = read_config(config_file(model="Across", model_params={"power": 2}, jk=None, **draw))
    with pytest.raises(ValueError, match=r"Expected model=ds or model=dss with the policy subsample, .* got Across"):
        fit(made, progress=False)

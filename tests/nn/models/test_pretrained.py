"""Folders of models: the same model comes back, and whatever else a folder holds is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import enfa
from enfa.nn.models.pretrained import CONFIG, load_pretrained
from enfa.nn.models.registry import MODELS
from enfa.testing import random_graphs

POLICY = enfa.EgoNets(2, mark=True)


def trained(name: str = "ds", **options: Any) -> Any:
    """A model whose running statistics are not those that it was made with."""
    torch.manual_seed(3)
    model = MODELS[name](3, 12, 2, 2, mark_channels=POLICY.mark_channels, **options)
    model(enfa.make_plan(random_graphs(3, seed=4), POLICY, model))
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_comes_back(name: str, tmp_path: Path) -> None:
    model, graphs = trained(name), random_graphs(4, seed=5)
    model.save_pretrained(tmp_path, POLICY)
    before = torch.random.get_rng_state()
    again = enfa.load(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert type(again) is type(model) and again.policy == POLICY and again.task is None and not again.training
    assert again.arguments == model.arguments
    plan = enfa.make_plan(graphs, again.policy, again)
    assert torch.equal(again(plan), model(plan))


def test_precision_categories_and_what_is_not_the_default(tmp_path: Path) -> None:
    options = {"edge_channels": (4, 2), "conv": "gine", "readout": "max", "bag": "sum", "jk": "concat", "norm": "layer"}
    model = enfa.DSGNN([5, 3], 4, 1, num_layers=3, **options).double()
    model.save_pretrained(str(tmp_path / "new" / "folder"))
    again: Any = load_pretrained(tmp_path / "new" / "folder")
    assert again.policy is None and again.readout == "max" and again.edge_encoder.channels == [4, 2]
    for (name, one), (_, other) in zip(model.state_dict().items(), again.state_dict().items()):
        assert one.dtype == other.dtype and torch.equal(one, other), name


def test_a_folder_is_written_again(tmp_path: Path) -> None:
    trained().save_pretrained(tmp_path, POLICY)
    other = trained("dss")
    other.save_pretrained(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 and type(enfa.load(tmp_path)) is enfa.DSSGNN


def test_a_write_that_breaks_off_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = trained()
    old.save_pretrained(tmp_path)
    from enfa.nn.models import pretrained

    def full(path: Path, parts: Any, write: Callable = pretrained.write_atomically) -> None:
        if path.name == CONFIG:
            raise OSError(28, "No space left on device", str(path))
        write(path, parts)

    monkeypatch.setattr(pretrained, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        trained("sun").save_pretrained(tmp_path)
    again = enfa.load(tmp_path)
    assert type(again) is enfa.DSGNN and torch.equal(again.head[0].weight, old.head[0].weight)


class Own(enfa.DSGNN):
    pass


class Rings(enfa.Policy):
    pass


def test_what_cannot_be_said_in_json_is_refused(tmp_path: Path) -> None:
    changed, bounded, dropping, rooted, bent = (trained() for _ in range(5))
    changed.head = torch.nn.Linear(6, 5)
    bounded.head.append(torch.nn.Sigmoid())
    dropping.layers[0].dropout.p = 0.25
    rooted.readout, bent.head[1] = "root", torch.nn.GELU()
    for model, policy, message in [
        (Own(3, 4, 1, 2), None, "Expected one of the models that enfa ships, .*, got Own: keep its weights with torch.save"),
        (trained(), Rings(), "Expected a policy that enfa ships, to be saved by its name, got Rings"),
        (changed, None, "the model, which was changed after it was made: Expected 'head.0.bias' of shape .12., got none"),
        (bounded, None, "the model, which was changed after it was made: Expected none as head.4, got Sigmoid$"),
        (bent, None, "after it was made: Expected ReLU as head.1, got GELU$"),
        (dropping, None, r"after it was made: Expected p=0.0 in layers.0.dropout, got 0.25$"),
        (rooted, None, "after it was made: Expected readout='sum' in the model, got 'root'$"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.save_pretrained(tmp_path / "x", policy)
    assert not (tmp_path / "x").exists()


def test_what_training_changes_may_be_saved(tmp_path: Path) -> None:
    """The momentum of norms, norms of several processes, and numbers written in another way."""
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(enfa.DSGNN(3, 4, 1, 2, dropout=0))
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = 0.01
        module.noted = 3
    model.save_pretrained(tmp_path)
    assert torch.equal(enfa.load(tmp_path).head[0].weight, model.head[0].weight)


def test_a_conv_of_ones_own_is_refused(tmp_path: Path) -> None:
    from torch_geometric.nn import SAGEConv

    model = enfa.DSGNN(3, 4, 1, 2, conv=lambda i, o: SAGEConv((i, i), o))
    with pytest.raises(ValueError, match="Expected the argument conv to be plain values, to be saved in JSON, got <function"):
        model.save_pretrained(tmp_path)


def test_damage_is_refused_by_name(tmp_path: Path) -> None:
    model = trained()
    model.save_pretrained(tmp_path, POLICY)
    config = tmp_path / CONFIG
    said = json.loads(config.read_text())
    weights = tmp_path / said["weights"]

    def refused(message: str, **change: Any) -> None:
        config.write_text(json.dumps({k: v for k, v in {**said, **change}.items() if v != "gone"}))
        with pytest.raises(ValueError, match=message):
            enfa.load(tmp_path)

    refused("is of format 9, and this version reads 1: use the version that has written it", format=9)
    refused("describes no model", format="gone")
    for part in ("model", "arguments", "policy", "task", "weights"):
        refused(f"Expected '{part}' of the model, got 'none'", **{part: "gone"})
    refused("Expected the model to be one of ds, dss.*got 'dz'", model="dz")
    refused("Expected an argument of .* to be one of in_channels, .*, got 'depth'", arguments={**said["arguments"], "depth": 3})
    refused("Expected the policy to be one of", policy={"name": "ego_net"})
    for name in ("../x.safetensors", "weights-0000000000000000.safetensors", "/etc/hosts"):
        refused("Expected a file of weights beside it", weights=name)
    refused(
        r"Expected 'encoder.embed.weight' of shape \[7, 12\], got none", arguments={**said["arguments"], "in_channels": [4, 3]}
    )
    config.write_text("{")
    with pytest.raises(ValueError, match="damaged, or no JSON"):
        enfa.load(tmp_path)
    config.write_text(json.dumps(said))
    state = load_file(weights)

    def refused_weights(message: str, new: dict[str, torch.Tensor]) -> None:
        save_file(new, weights)
        with pytest.raises(ValueError, match=message):
            enfa.load(tmp_path)

    first = "head.0.weight"
    refused_weights(rf"Expected '{first}' of shape \[12, 12\], got none", {k: v for k, v in state.items() if k != first})
    refused_weights(
        rf"Expected '{first}' of shape \[12, 12\], got of shape \[12, 5\]", {**state, first: state[first][:, :5].clone()}
    )
    refused_weights("Expected 'more' none, got of shape", {**state, "more": torch.ones(2)})
    refused_weights("Expected weights of one precision", {**state, first: state[first].double()})
    weights.write_bytes(weights.read_bytes()[:50])
    with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
        enfa.load(tmp_path)
    config.unlink()
    with pytest.raises(FileNotFoundError, match="There is no model in"):
        enfa.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        enfa.load(tmp_path / "missing")

from __future__ import annotations

import json

import pytest

from enfa.edits import POLICIES, EgoNets, NodeMarking, policy_from


def test_by_name():
    assert policy_from("node_marking") == NodeMarking()
    assert policy_from("ego_nets", hops=2, mark=True) == EgoNets(2, mark=True)
    assert policy_from("ego_nets", hops=2) != EgoNets(3)


def test_params_make_the_same_policy_again():
    needed = {
        "ego_nets": {"hops": 1},
        "neighbor_marking": {"hops": 2, "mark": "distances"},
        "most_central": {"policy": "node_marking", "count": 2},
        "reconstruction": {"k": 3},
        "subsample": {"policy": {"name": "ego_nets", "hops": 2}, "count": 3},
    }
    for name in POLICIES:
        policy = policy_from(name, **needed.get(name, {}))
        assert policy.name() == name
        assert policy_from(name, **json.loads(json.dumps(policy.params))) == policy


@pytest.mark.parametrize(
    "name, params, message",
    [
        ("node_markin", {}, "did you mean 'node_marking'"),
        ("ego_nets", {}, "Expected the parameter 'hops' for the policy ego_nets, got none"),
        ("ego_nets", {"hops": 1, "marks": True}, "did you mean 'mark'"),
        ("edge_deletion", {"k": 1}, "edge_deletion has no parameters, got 'k'"),
    ],
)
def test_errors(name, params, message):
    with pytest.raises(ValueError, match=message):
        policy_from(name, **params)


@pytest.mark.parametrize("wrong", [True, 1.5, "2"])
@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ({"name": "node_marking"}, "distances"),
        ({"name": "ego_nets"}, "hops"),
        ({"name": "neighbor_marking"}, "hops"),
        ({"name": "edge_marking", "structure": "degrees"}, "hops"),
        ({"name": "edge_marking", "structure": "degrees"}, "bins"),
        ({"name": "reconstruction"}, "k"),
        ({"name": "reconstruction", "k": 2}, "max_subgraphs"),
        ({"name": "reconstruction", "k": 2}, "seed"),
        ({"name": "subsample", "policy": "node_marking"}, "count"),
        ({"name": "most_central", "policy": "node_marking"}, "count"),
        ({"name": "subsample", "policy": "node_marking", "count": 2}, "seed"),
    ],
)
def test_numbers_are_whole(policy: dict, name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=f"^Expected {name} to be an integer .*, got {wrong!r}$"):
        policy_from(**policy, **{name: wrong})


@pytest.mark.parametrize(
    "policy", [{"name": "reconstruction", "k": 2}, {"name": "subsample", "policy": "node_marking", "count": 2}]
)
def test_seeds_are_not_negative(policy: dict) -> None:
    with pytest.raises(ValueError, match=r"^Expected seed to be an integer >= 0, got -1$"):
        policy_from(**policy, seed=-1)

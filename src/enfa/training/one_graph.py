"""Nodes and links of one graph: every labelled node, or pair of nodes, is the root of a subgraph, and batches are of these."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.batch.parts import SubgraphLoader
from enfa.datasets.known import dataset_file
from enfa.datasets.one_graph import OneGraph, graph_from_npz, links_from_npz, nodes_from_npz
from enfa.draws import drawn_late
from enfa.edits import Policy
from enfa.edits.policies import policy_from
from enfa.nn.bag import compile as compile_dataset
from enfa.nn.bag import trace
from enfa.training.build import make_policy
from enfa.training.problem import Problem
from enfa.training.settings.config import Config

__all__ = ["compile_roots", "labels_of_roots", "open_one_graph", "predict_roots"]


def open_one_graph(config: Config) -> OneGraph:
    path = dataset_file(config.dataset)
    if config.level == "nodes":
        return nodes_from_npz(path, metric=config.metric, fold=config.fold)
    if config.fold:
        raise ValueError(f"Expected fold 0 for links, whose split is drawn by fold_seed, got fold {config.fold}")
    return links_from_npz(path, metric=config.metric, seed=config.fold_seed)


def policy_for(config: Config, pairs: np.ndarray | None) -> Policy:
    """The policy of a config, for some pairs where it is about these."""
    if pairs is None:
        return make_policy(config)
    if "pairs" in config.policy_params:
        raise ValueError("Expected no pairs among policy_params, because the dataset has them, got some")
    return policy_from(config.policy, **config.policy_params, pairs=[pairs])


def compile_roots(
    config: Config, graph: Data, pairs: np.ndarray | None, model: nn.Module, progress: bool = False
) -> tuple[CompiledDataset, np.ndarray]:
    """The compiled graph, and for every subgraph the node, or the number of the pair, that it is about."""
    policy = policy_for(config, pairs)
    program = trace(model, [graph], policy)
    if any(step.kind == "nodes" or step.along == "subgraphs" for step in program.steps):
        raise ValueError(
            f"Expected model=ds for nodes and links of one graph, whose subgraphs are batched, got {config.model}, whose rows "
            f"read other subgraphs"
        )
    # where all rows of a batch count, as with BatchNorm, whole bags do not tell of their parts
    with drawn_late(config.seed):
        compiled = compile_dataset(
            [graph], policy, model, config.cache, progress, kind=config.plan, threads=config.threads,
            ahead=not program.counted,
        )  # fmt: skip
    held: Any = compiled.graphs[1] if compiled.graphs is not None else compiled.sources
    roots = held.root  # of these very subgraphs: a policy of the user's own may draw others when it is asked again
    if pairs is None:
        if roots is None or roots.shape[1] != 1 or len(np.unique(roots)) != len(roots) or roots.min() < 0:
            raise ValueError(f"Expected a policy with one subgraph for every node, such as ego_nets, got {config.policy}")
        about = roots[:, 0]
    else:
        about = np.arange(len(pairs))
    return compiled, about


def labels_of_roots(data: OneGraph, about: np.ndarray) -> tuple[Tensor, dict[str, np.ndarray]]:
    """The label of every subgraph, and the subgraphs to train, validate and test on."""
    place = np.full(len(data.labels), -1, np.int64)
    place[about] = np.arange(len(about))
    parts = {part: place[of] for part, of in data.parts.items()}
    missing = next((of[at < 0][0] for of, at in zip(data.parts.values(), parts.values()) if (at < 0).any()), None)
    if missing is not None:
        raise ValueError(f"{data.name}: Expected a subgraph for every labelled node, got none for node {missing}")
    return data.labels.index_select(0, torch.from_numpy(about)), parts


@torch.no_grad()
def predict_roots(
    models: list[tuple[nn.Module, Config, Problem]], path: Path, batch_size: int
) -> tuple[list[dict[str, Any]], list[Tensor]]:
    """The nodes of a graph, or the pairs in the file's array ``pairs``, and each model's outputs for them."""
    model, config, problem = models[0]
    config = replace(config, cache=None, threads=None)
    graph, pairs = graph_from_npz(path, problem.needs)
    if problem.level == "links" and pairs is None:
        raise ValueError(f"{path}: Expected pairs of nodes to predict links for in an array 'pairs' [k, 2], got none")
    if pairs is not None and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise ValueError(f"{path}: Expected 'pairs' of shape [k, 2], got {list(pairs.shape)}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    compiled, about = compile_roots(config, graph, pairs if problem.level == "links" else None, model.to(device))
    none = torch.zeros(compiled.num_subgraphs)
    loader = SubgraphLoader(compiled, none, np.arange(compiled.num_subgraphs), batch_size)
    each = [torch.cat([one.to(device)(plan.to(device)).cpu() for plan in loader]) for one, _, _ in models]
    if problem.level == "nodes":
        return [{"node": root} for root in about.tolist()], each
    return [dict(zip("uv", pair)) for pair in np.asarray(pairs)[about].tolist()], each

"""``enfa compile``: a dataset into shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from enfa.batch.shards.manifest import Manifest
from enfa.batch.shards.stream import SIZE, Block, Deferred, blocks, shard_sizes
from enfa.cli.choices import PolicyName, Root, policy_of, words
from enfa.cli.training.bad_rows import opened
from enfa.cli.training.settings import config_of
from enfa.datasets import stream
from enfa.edits import Policy
from enfa.graphs.graphset import channels
from enfa.graphs.names import check_named
from enfa.graphs.numbers import how_many
from enfa.nn.bag import compile as compile_dataset
from enfa.nn.models.registry import MODELS, SHIPPED
from enfa.training.build import make_model
from enfa.training.compiling import compile_for
from enfa.training.models import build_model
from enfa.training.problem import Problem
from enfa.training.settings.config import Config
from enfa.training.start.unread import tell_unread

__all__ = ["compile"]

OF_A_CONFIG = {"policy": "policy", "model": "model", "layers": "num_layers", "conv": "conv", "target": "targets",
               "labels": "targets", "skip_bad": "skip_bad", "root": "root"}  # fmt: skip
"""Options, and the settings that say it in a config."""


def compile(
    context: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help="A training config (.yaml), a dataset's name, an .npz file, or a .csv or .tsv file with a column 'smiles'.",
            show_default=False,
        ),
    ],
    out: Annotated[str, typer.Option(help="Folder of the shards, or a URL such as s3://bucket/data.", show_default=False)],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace the config's.")
    ] = None,
    policy: PolicyName = "node_marking",
    model: Annotated[str, typer.Option(help=f"One of {', '.join(SHIPPED)}, or of --code FILE.")] = "ds",
    layers: Annotated[int, typer.Option(min=1, help="Message-passing layers.")] = 4,
    conv: Annotated[str | None, typer.Option(help="gin, gine, graphconv or gcn, or what else the model takes.")] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="So many shards.")] = None,
    shard_size: Annotated[int | None, typer.Option(min=1, help=f"Graphs of a shard; {SIZE:,} by default.")] = None,
    engine: Annotated[
        str, typer.Option(help="local (processes of this machine), dask, or the address of a Dask scheduler.")
    ] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; as many as there are cores by default.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column of a .csv or .tsv file to learn; may be given several times.", show_default="no labels"),
    ] = None,
    labels: Annotated[str, typer.Option(help="The former name of --target: columns with commas between them.")] = "",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines of molecules that cannot be read.")] = False,
    root: Root = Path("data"),
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Compile a dataset of any size, shard by shard, into a folder: of a config, what enfa train reads with shards=FOLDER;
    of anything else, what loops of your own read.

    What is done is not done again: after an interruption, or a crash, the same command goes on where it ended.
    """
    how: dict[str, Any] = {"shards": shards, "shard_size": shard_size, "engine": engine, "workers": workers}
    if Path(dataset).suffix in (".yaml", ".yml"):
        for option, setting in OF_A_CONFIG.items():
            source = context.get_parameter_source(option)
            if source is not None and source.name == "COMMANDLINE":
                raise ValueError(f"Expected {setting}=VALUE beside a config, got --{option.replace('_', '-')}")
        _tell(_of_config(config_of(Path(dataset), overrides, shards=out), progress, how), out)
        return
    if overrides:
        raise ValueError(f"Expected settings beside a config (.yaml) only, got {overrides[0]!r} beside {dataset}")
    rule = policy_of(policy)
    check_named("the model", model, MODELS)
    if target and labels:
        raise ValueError(f"Expected --target, or --labels, which is its former name, got both: {target[0]} and {labels}")
    columns = list(dict.fromkeys(target)) if target else words(labels)  # a column may have a comma in its name
    graphs: Any = stream(dataset, root, labels=columns, skip_bad=skip_bad)
    sizes, _ = shard_sizes(graphs, shards, shard_size)
    made = _model(next(blocks(graphs, sizes), None), rule, Config(dataset=dataset, model=model, num_layers=layers, conv=conv))
    _tell(compile_dataset(graphs, rule, made, out=out, progress=progress, **how), out)


def _of_config(config: Config, progress: bool, how: dict[str, Any]) -> Manifest:
    """What training with that config would compile."""
    if config.level != "graphs":
        raise ValueError(f"Expected a config with labels of graphs, got level={config.level}: shards are for many graphs")
    data = opened(config)
    tell_unread(config, data.edge_channels)
    found: Any = compile_for(config, data.graphs, make_model(config, Problem.of(data)), progress, data.level, **how)
    return found.manifest


def _tell(found: Manifest, out: str) -> None:
    size = sum(shard.bytes for shard in found.shards)
    told = f"{how_many(found.graphs, 'graph')} in {how_many(len(found.shards), 'shard')}, {size / 1e6:,.1f} MB, in {out}"
    Console().print(told, markup=False, soft_wrap=True)


def _model(first: Block | Deferred | None, policy: Policy, config: Config) -> Any:
    """A model whose steps are asked for: how many values its columns have is not, so it need take no more than those of the
    first shard, on which it is tried."""
    if first is None:
        raise ValueError(f"{config.dataset}: expected at least one graph, got none")
    checked = first.load().graphs
    given = {
        "in_channels": channels(checked.x), "out_channels": 1,
        "edge_channels": None if checked.edge_attr is None else channels(checked.edge_attr),
        "mark_channels": len(policy.marks[0]), "edge_mark_channels": len(policy.edge_marks[0]),
    }  # fmt: skip
    tell_unread(config, given["edge_channels"], "--conv ")
    return build_model(config, given)

"""What a training run is: every setting, its default and its meaning, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal, get_type_hints

from enfa.datasets.known import TU_NAMES, is_table, names
from enfa.graphs.names import Unnamed, check_file_name, check_named
from enfa.graphs.numbers import bytes_of, real, whole
from enfa.nn.models.registry import MODELS, SHIPPED
from enfa.training.settings.arguments import OWN_DEFAULT, default_of
from enfa.training.settings.freeze import groups
from enfa.training.settings.types import checked, described

__all__ = ["Config", "settings"]


def _setting(meaning: str, default: Any = MISSING) -> Any:
    """A field with its meaning, which ``--help`` prints."""
    return field(default=default, metadata={"meaning": meaning})


_OWN = "(None: the model's default)"
_LIMITS: dict[str, dict[str, float]] = {
    "lr": {"above": 0}, "lr_decay": {"above": 0}, "min_lr": {"least": 0}, "weight_decay": {"least": 0},
    "dropout": {"least": 0, "below": 1}, "stop_at": {"least": 0, "most": 1},
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """The settings of one run; ``enfa train --help`` says what each of them means. Wrong types and values are refused when it
    is made, in one sentence each.

    >>> Config(dataset="PROTEINS", lr="1e-2").lr
    0.01
    >>> Config.make({"dataset": "PROTEINS", "epoch": 3})
    Traceback (most recent call last):
    ValueError: Expected a setting that exists, got 'epoch' (did you mean 'epochs'?)
    """

    dataset: str = _setting(
        f"by name ({', '.join(name for name in names() if name not in TU_NAMES)}, {TU_NAMES[0]} or another of the TU "
        "collection), or the path of an .npz file of graphs or a .csv file of molecules"
    )
    root: str = _setting("folder of the raw files (or of NAME.npz)", "data")
    metric: Literal["accuracy", "rocauc", "ap", "mae", "mse", "r2"] | None = _setting(
        "for an .npz or .csv file: another than its labels suggest (mae, mse and r2 for numbers)", None
    )
    target: str | None = _setting("of a dataset with several targets, one by its name (None: all of them)", None)
    level: Literal["graphs", "nodes", "links"] = _setting(
        "what is predicted; nodes and links of one graph in an .npz file (PyG's Planetoid layout), with readout root", "graphs"
    )
    smiles: str | None = _setting("of a .csv file: the column of SMILES strings (None: the one named so)", None)
    targets: list[str] | None = field(
        default=None, metadata={"meaning": "of a .csv file: the columns to learn (None: the one other column)"}
    )
    task: Literal["auto", "classification", "regression"] = _setting("of a .csv file: what its targets are", "auto")
    split: str | None = _setting(
        "of a .csv file: random (drawn by fold_seed), scaffold, or column:NAME of train, valid and test (None: random)", None
    )
    skip_bad: bool = _setting("of a .csv file: leave out rows that cannot be read", False)
    use_node_attr: bool = _setting("read the continuous node attributes of a TU dataset or .npz file too", False)
    fold: int = _setting("which fold is tested", 0)
    fold_seed: int = _setting("which drawing of the folds", 0)
    validation: Literal["test", "next"] | None = _setting(
        "with folds: 'test' validates on the test fold (GIN's and ESAN's practice), 'next' on the fold after it; a .csv file, "
        "nodes and links have a part to validate on, and null here",
        "test",
    )

    model: str = _setting(f"which model: {', '.join(SHIPPED)}; or a class of your own out of --code FILE", "ds")
    model_params: dict[str, Any] = field(
        default_factory=dict, metadata={"meaning": "arguments of the model's constructor that are no settings of their own"}
    )
    policy: str = _setting("what makes the subgraphs: a name such as node_marking, or a class of your own", "node_marking")
    policy_params: dict[str, Any] = field(
        default_factory=dict, metadata={"meaning": "the policy's parameters, such as isolate"}
    )
    # None here and below: the default of the model's own constructor, which stands here as soon as the config is made
    conv: str | None = _setting(f"gin, gine, graphconv or gcn, what else the model takes, or one of your own {_OWN}", None)
    context: str = _setting("of dss: dss, identity or mpnn", "dss")
    num_layers: int = _setting("message-passing layers", 4)
    hidden_channels: int = _setting("width", 32)
    norm: Literal["batch", "layer"] | None = _setting("norm after each layer and in its MLP", "batch")
    dropout: float = _setting("between layers and in the head", 0.0)
    readout: str | None = _setting(
        f"over the nodes of a subgraph: sum, mean or max; for labels of nodes root or node {_OWN}", None
    )
    bag: str | None = _setting(f"over the subgraphs of a graph: mean or sum {_OWN}", None)
    jk: str | None = _setting(f"jumping knowledge: last, concat or sum {_OWN}", None)
    residual: bool | None = _setting(f"add each layer's input {_OWN}", None)
    share: Literal["dataset", "graph"] | None = _setting("how far rows are shared (None: graph with dropout)", None)

    init: str | None = _setting(
        "start from the weights in a folder of save_pretrained, or a checkpoint; without its head, where sizes differ", None
    )
    freeze: str | None = _setting("what of init stays as it is: encoder, layers (with a comma: both), or 'all but head'", None)

    plan: Literal["distinct", "ego", "full"] = _setting("how the same numbers are computed", "distinct")
    cache: str | None = _setting("folder for compiled datasets (None: compile every time)", None)
    shards: str | None = _setting(
        "folder or URL of a dataset that is compiled in shards, and read as it is needed (None: all of it in memory); what is "
        "not there so far is compiled into it",
        None,
    )
    shard_memory: str = _setting("for shards, in each process that makes batches", "2 GiB")
    epochs: int = _setting("passes over the training graphs", 350)
    batch_size: int = _setting("graphs per step, over all devices together", 32)
    max_rows: int | None = _setting("at most so many rows per batch", None)
    lr: float = _setting("Adam's learning rate", 0.001)
    schedule: Literal["step", "plateau", "cosine"] = _setting(
        "step: lr times lr_decay every lr_decay_every epochs; plateau: after patience epochs without a better validation "
        "score; cosine: down to min_lr in the last epoch",
        "step",
    )
    lr_decay: float = _setting("factor on the learning rate …", 0.5)
    lr_decay_every: int = _setting("… every so many epochs (step)", 50)
    patience: int = _setting("… or after so many epochs that are no better, and one more (plateau)", 20)
    min_lr: float = _setting("where the learning rate stops falling (plateau, cosine)", 0.0)
    loss: Literal["l1", "mse"] | None = _setting(
        "for numbers: absolute or squared errors (None: l1 where the metric is mae, else mse)", None
    )
    weight_decay: float = _setting("Adam's L2 penalty", 0.0)
    early_stopping: int | None = _setting("stop after so many epochs without a better validation score", None)
    stop_at: float | None = _setting("stop once the validation score (0 to 1) is reached", None)
    seed: int = _setting("weights, shuffling and dropout", 0)
    precision: Literal["32", "64", "bf16", "16"] = _setting("float32, float64, or mixed with bfloat16 or float16", "32")
    accelerator: Literal["auto", "cpu", "gpu"] = _setting("where to run", "auto")
    devices: int = _setting("processes of distributed training, a device each", 1)
    num_workers: int | None = _setting(
        "processes that make batches ahead (None: on a GPU one per core but one, at most 15, with shards 2; else none)", None
    )
    graphed: Literal["auto"] | bool = _setting(
        "pad batches to a few sizes and replay captured steps (auto: on one GPU, with the distinct plan)", "auto"
    )
    threads: int | None = _setting("threads of PyTorch on the CPU (None: as many as there are cores)", None)

    name: str = _setting("name of the run (by default the name of the config file)", "run")
    out: str = _setting("folder of checkpoints and logs: OUT/NAME/fold-F-seed-S", "runs")
    paper: str | None = _setting("the number that the paper reports, to stand beside ours", None)

    def __post_init__(self) -> None:
        hints = get_type_hints(Config)
        for f in fields(self):
            object.__setattr__(self, f.name, checked(f.name, getattr(self, f.name), hints[f.name]))
        for name in (
            "num_layers", "hidden_channels", "epochs", "batch_size", "max_rows", "lr_decay_every", "patience", "devices",
        ):  # fmt: skip
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        if self.early_stopping is not None and self.early_stopping < 1:
            raise ValueError(f"Expected early_stopping >= 1, or null, which turns it off, got {self.early_stopping}")
        for name in ("fold", "num_workers"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        for name in ("fold_seed", "seed"):
            whole(name, getattr(self, name), 0, 2**63 - 1)  # what PyTorch takes
        for name, limits in _LIMITS.items():
            if getattr(self, name) is not None:
                real(name, getattr(self, name), **limits)
        check_file_name("name", self.name)
        _check_of_tables(self)
        if is_table(self.dataset) or self.level != "graphs":
            object.__setattr__(self, "validation", None)  # also of files from when 'test' stood there, and was not done
        elif self.validation is None:
            raise ValueError(f"Expected validation to be test or next for {self.dataset}, got null")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"Expected threads >= 1, or null for as many as there are cores, got {self.threads}")
        check_named("model", self.model, MODELS)
        for name in OWN_DEFAULT:
            if getattr(self, name) is None:
                object.__setattr__(self, name, default_of(self.model, name))
        bytes_of(self.shard_memory)
        if self.shards is not None and self.cache is not None:
            raise ValueError(f"Expected either cache or shards, got cache={self.cache!r}, shards={self.shards!r}")
        if self.freeze is not None:
            if self.init is None:
                raise ValueError(f"Expected init beside freeze, whose weights are to stay, got freeze={self.freeze!r} alone")
            groups(self.freeze)
        if self.level != "graphs":
            self._check_one_graph()
        if self.min_lr > self.lr:
            raise ValueError(f"Expected min_lr <= lr, got {self.min_lr} and {self.lr}")
        if self.schedule == "plateau" and self.lr_decay >= 1:
            raise ValueError(f"Expected lr_decay < 1 for schedule=plateau, got {self.lr_decay}")
        if self.graphed is True and (reason := self.not_graphed()):
            raise ValueError(f"Expected settings that can be graphed with graphed=true, got {reason}")

    def not_graphed(self) -> str | None:
        """The setting with which steps cannot be captured, if there is one."""
        wrong = {
            "plan": self.plan != "distinct",  # others are made anew for every batch
            "devices": self.devices > 1,
            "max_rows": self.max_rows is not None,  # the number of graphs must not vary
            "precision": self.precision == "16",  # whose loss is scaled by what the CPU decides
            "readout": self.readout in ("root", "node"),
            "policy": self.policy == "subsample",  # each epoch draws other sizes
        }
        return next((f"{name}={getattr(self, name)}" for name, is_wrong in wrong.items() if is_wrong), None)

    def _check_one_graph(self) -> None:
        """Refuse what has no meaning for the nodes or links of one graph."""
        if not self.dataset.endswith(".npz"):
            raise ValueError(f"Expected an .npz file of one graph for level={self.level}, got {self.dataset!r}")
        unfit = {"devices": self.devices > 1, "max_rows": self.max_rows is not None, "use_node_attr": self.use_node_attr,
                 "target": self.target is not None, "shards": self.shards is not None}  # fmt: skip
        if any(unfit.values()):
            raise ValueError(f"Expected no {', '.join(unfit)} with level={self.level}, got one of them")
        if (self.policy == "pair_marking") != (self.level == "links"):
            raise ValueError(f"Expected the policy pair_marking for links, and for these alone, got {self.policy}")

    @classmethod
    def make(cls, values: Mapping[str, Any]) -> Config:
        """From a mapping, whose keys must all exist."""
        from enfa.training.settings.files import no_such_setting

        known = {f.name for f in fields(cls)}
        for key in values:
            if key not in known:
                raise no_such_setting(key)
        if "dataset" not in values:
            raise ValueError("Expected a setting 'dataset', got none")
        return cls(**values)

    @classmethod
    def filed(cls, values: Mapping[str, Any]) -> Config:
        """As results have it, which can be read without the file that defines their model: what was left to it stands there."""
        try:
            return cls.make(values)
        except Unnamed:
            made = cls.make({**values, "model": SHIPPED[0]})
            for name in ("model", *OWN_DEFAULT):
                object.__setattr__(made, name, values.get(name))
            return made

    def to_dict(self) -> dict[str, Any]:
        """Plain values only: goes into checkpoints and result files."""
        return asdict(self)


def _check_of_tables(config: Config) -> None:
    """Settings that only a CSV file has a meaning for."""
    if is_table(config.dataset):
        return
    for f in fields(config):
        if f.name in ("smiles", "targets", "task", "split", "skip_bad") and getattr(config, f.name) != f.default:
            value = getattr(config, f.name)
            other = ": metric says what the labels of others are (metric=mae: numbers)" if f.name == "task" else ""
            raise ValueError(
                f"Expected no {f.name}={value} but for a .csv file of molecules, got dataset={config.dataset}{other}"
            )


# What may differ between a run and its continuation: where and how long it runs, not what it computes.
RUNS_ON = frozenset(
    {"root", "cache", "epochs", "early_stopping", "stop_at", "accelerator", "devices", "num_workers", "graphed",
     "threads", "name", "out", "paper"}
)  # fmt: skip
# What makes a model that a checkpoint's weights fit into.
MODEL = (
    "model", "model_params", "policy", "policy_params", "conv", "context", "num_layers", "hidden_channels", "norm", "readout",
    "bag", "jk", "residual",
)  # fmt: skip


def settings() -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of every setting."""
    hints = get_type_hints(Config)
    for f in fields(Config):
        default = "required" if f.default is MISSING and f.default_factory is MISSING else str(f.default)
        if f.default_factory is not MISSING:
            default = "{}"
        yield f.name, described(hints[f.name]), default, f.metadata["meaning"]

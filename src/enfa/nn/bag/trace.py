"""Which steps a model asks for: it is run once, on one small graph, and what it asks is noted."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.modules.module import register_module_forward_pre_hook
from torch_geometric.data import Data

from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.attributes import GraphAttributes, graph_attributes
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.one_graph import norms_of_one_graph
from enfa.nn.bag.trial.unread import warn_of_unread_marks
from enfa.nn.convs.exact import check_called
from enfa.nn.convs.widths import told_widths
from enfa.nn.cuda.boxes import put_back
from enfa.nn.rowwise.rows import Rows
from enfa.plan.arrays import tensor
from enfa.plan.check import check_step
from enfa.plan.reference.expand import edge_tables
from enfa.plan.reference.full import Written, full_step_plan, full_table
from enfa.plan.step import Program, Step

__all__ = ["TracingBag", "in_precision_of", "trace", "traced"]

LARGEST = 200  # nodes of a graph that is written out as it is; of a larger one, a piece
PIECE = 8
FEW = 5  # nodes; in larger graphs more rows differ, and a conv that mixes them is noticed


class TracingBag(Bag):
    """Writes every subgraph out and makes each table when it is first asked for."""

    written: Written
    policy: str
    dropout: bool
    loopless: bool
    apart: bool
    counted: bool
    marks_read: bool
    needs: set[tuple[int, str]]
    tracing = True

    @property
    def mark(self) -> Rows:
        self.marks_read = True
        return super().mark

    def need(self, number: int, *names: str) -> None:
        self.needs.update((number, name) for name in names)

    def step(self, step: Step) -> int:
        if step.op == "start":
            # the rows stay: here every pair has one of its own
            self.program = Program((step, *self.program.steps[1:]))
            self.degrees = torch.bincount(torch.from_numpy(self.written.bag.dst), minlength=len(self.feature)).to(self.device)
            return 0
        if step not in self.program.steps:
            check_step(step, self.written.graphs, self.written.edits, self.policy)
            table = full_table(self.written, step, [self.program.steps[r] for r in step.reads])
            self.tables.append(table if self.device.type == "cpu" else table.to(self.device))
            self.program = Program((*self.program.steps, step))
            self.cache = {name: value for name, value in self.cache.items() if value is not None}
        return self.program.steps.index(step)

    def note_dropout(self, draws: bool) -> None:
        self.dropout = True

    def note_graphs(self) -> None:
        self.apart = True

    def note_counts(self, reads: bool) -> None:
        self.counted = True

    def note_loops(self) -> None:
        self.loopless = True


def _small(graphs: GraphSet, among: np.ndarray | None = None) -> tuple[GraphSet, int]:
    """One graph for it, and its place: the smallest with FEW nodes, one of which hears of two others, because a conv that mixes
    rows is not noticed where each gets one message; the largest of smaller ones; or any. Of a large one, a node and what sends
    to it. ``among``: bool, the graphs that it may be.
    """
    nodes, edges = np.diff(graphs.node_ptr), np.diff(graphs.edge_ptr)
    heard = np.bincount(graphs.dst[graphs.src != graphs.dst], minlength=graphs.num_nodes)
    alone = np.bincount(graphs.graph[heard > 1], minlength=graphs.num_graphs) == 0
    size = np.where(nodes < FEW, -nodes, nodes)
    keys = size, nodes < FEW, alone, nodes < 1, edges < 1
    place = int(np.lexsort(keys if among is None else (*keys, ~among))[0])
    one = replace(graphs.subset([place]), first=graphs.first + place)  # by which a policy may know it
    if one.num_nodes <= LARGEST:
        return one, place
    inside = np.zeros(one.num_nodes, bool)
    inside[:PIECE] = one.num_edges == 0
    if one.num_edges:
        hears = np.argmax(np.diff(one.in_ptr))
        inside[np.append(one.src[one.dst == hears][: PIECE - 1], hears)] = True
    number, edge = np.cumsum(inside) - 1, np.flatnonzero(inside[one.src] & inside[one.dst])
    piece = replace(
        one, node_ptr=np.array([0, inside.sum()]), src=number[one.src[edge]], dst=number[one.dst[edge]],
        order=np.argsort(np.argsort(one.order[edge])), node_kind=one.node_kind[inside], edge_kind=one.edge_kind[edge],
    )  # fmt: skip
    return piece, place


def trace(
    model: nn.Module, graphs: Sequence[Data] | GraphSet, policy: Policy, graph_attr: dict[str, Tensor] | None = None, *,
    edits: Edits | None = None,
) -> Program:  # fmt: skip
    """The steps that a model asks for. It is run in evaluation mode, without gradients, and stays as it was.

    The smallest of the graphs is enough: what a model asks may depend neither on sizes nor on values. What it asks while it
    is trained must be the same; where it is not, running it on a plan says so. ``graph_attr``: what ``bag.graph_attr`` is made
    of, where the graphs are no longer those of PyG. ``edits``: what the policy makes of all graphs, where it was asked before.
    """
    checked = graphs if isinstance(graphs, GraphSet) else check_graphs(graphs)
    if graph_attr is None:
        graph_attr = {} if isinstance(graphs, GraphSet) else graph_attributes(graphs)
    bag = traced(model, checked, policy, graph_attr, TracingBag)
    share = _asked(model) or ("graph" if bag.dropout or bag.apart else "dataset")
    found = Program(bag.program.steps, share, not bag.loopless, bag.counted, bag.dropout, frozenset(bag.needs))
    if not bag.marks_read:
        warn_of_unread_marks(type(model).__name__, found, bag.written.edits, checked, policy, edits)
    return found


def _asked(model: nn.Module) -> str | None:
    """How far rows are to be shared, where a model says so. Its attribute of that name may be something else, too."""
    share = getattr(model, "share", None)
    if isinstance(share, str) and share not in ("dataset", "graph"):
        raise ValueError(f"Expected share of {type(model).__name__} to be 'dataset', 'graph' or None, got {share!r}")
    return share if isinstance(share, str) else None


B = TypeVar("B", bound=TracingBag)


def traced(model: nn.Module, graphs: GraphSet, policy: Policy, graph_attr: dict[str, Tensor], cls: type[B]) -> B:
    """The bag that the model was run on, with what it noted."""
    small, place = _small(graphs)
    anywhere = policy.for_any_graph() if isinstance(policy, Policy) else policy
    edits = edits_by(anywhere, small)
    if edits.root is None and not len(edits.node) and not len(edits.edge):  # nothing to edit here, but maybe in others
        every = edits_by(policy, graphs)
        if every.root is not None:
            small, place = _small(graphs, np.bincount(every.graph[every.root[:, 0] >= 0], minlength=graphs.num_graphs) > 0)
            edits = edits_by(anywhere, small)
            if edits.root is None:  # it finds nothing in a piece of that graph either
                edits = replace(edits, root=np.full((edits.num_subgraphs, every.root.shape[1]), -1))
    written = Written(small, edits, True)
    bag: Any = full_step_plan(small, edits, Program((Step("start", "pairs"),)), cls, written)
    attr, mark = edge_tables(small.edge_attr, edits.edge_marks)  # no step so far, but some may read edges
    bag.edge_rows, bag.edge_mark_rows = None if attr is None else tensor(attr), tensor(mark)
    bag.root_nodes = None if edits.root is None else tensor(edits.root)
    bag.graph_attr = {name: value[place : place + 1].detach() for name, value in graph_attr.items()}
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    bag = in_precision_of(model, bag if device.type == "cpu" else bag.to(device))
    bag.graph_attr = GraphAttributes(bag.graph_attr)
    bag.written, bag.policy, bag.needs, bag.of_graph = written, repr(policy), set(), torch.zeros_like(bag.feature)
    bag.dropout = bag.loopless = bag.apart = bag.counted = bag.marks_read = False
    with _as_it_was(model), _uncompiled(model), _checked_modules(), torch.no_grad(), torch.random.fork_rng(devices=[]):
        model.eval()
        try:
            with norms_of_one_graph(model), told_widths(model, bag):
                out = model(bag)
        except TypeError as error:
            _check_takes_a_bag(model, error)
            raise
        _check_output(out, type(model).__name__)
    return bag


def _uncompiled(model: nn.Module) -> AbstractContextManager[Any]:
    """A compiler (``torch.compile``) keeps out of a pass that is only noted."""
    compiled = any(module._compiled_call_impl is not None or "_orig_mod" in module._modules for module in model.modules())
    return _EAGER if compiled else nullcontext()


class _Eager:
    """The compiler's stance is that of all threads: the first one in sets it, the last one out sets it back."""

    def __init__(self) -> None:
        self.lock, self.within, self.stance = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self.lock:
            if not self.within:
                self.stance.enter_context(torch.compiler.set_stance("force_eager"))
            self.within += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.within -= 1
            if not self.within:
                self.stance.close()


_EAGER = _Eager()


def _check_takes_a_bag(model: nn.Module, error: TypeError) -> None:
    """Whether a model that failed takes something else than a bag: ``forward(x, edge_index)``, say."""
    given = inspect.signature(model.forward).parameters.values()
    needed = [p.name for p in given if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(needed) > 1:
        lifted = ": use enfa.lift(model)" if "edge_index" in needed else ""
        name = type(model).__name__
        raise TypeError(f"Expected a model with forward(bag), got {name} with forward({', '.join(needed)}){lifted}") from error


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Put back what a pass changes in a model: its mode, buffers, attributes, and what is in lists and dictionaries that are
    attributes. Modules that wait for a first pass (``nn.LazyLinear``), or make parts of theirs in it, have had it."""
    kept, buffers, training = [], [], [module for module in model.modules() if module.training]
    for module in model.modules():
        own: dict[str, Any] = module.__dict__
        held = [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None]
        if isinstance(module, LazyModuleMixin) or any(map(nn.parameter.is_lazy, held)):  # also one whose weights were loaded
            continue
        boxes = [own, *(value for value in own.values() if isinstance(value, (list, dict, set, deque)))]
        kept.append((module, [(box, box.copy()) for box in boxes], _parts(module)))
        # of parameters, an embedding shortens what it reads (max_norm)
        buffers += [(b, b._version, b.detach().clone()) for b in held if not b.is_inference()]
    try:
        yield
    finally:
        for module in training:
            module.training = True
        for module, contents, parts in kept:
            if _parts(module) - parts:
                continue
            # weights that hooks compute (weight_norm) have no history here, and so the model can be copied
            computed = {name: vars(module)[name] for hook in module._forward_pre_hooks.values()
                        if (name := getattr(hook, "name", None)) in vars(module)}  # fmt: skip
            vars_before: Any = contents[0][1]
            vars_before |= computed
            for box, before in contents:
                put_back(box, before)
        for buffer, version, value in buffers:  # of a model that counts its calls
            if buffer._version != version:
                buffer.detach().copy_(value)


def _parts(module: nn.Module) -> set[str]:
    return {*module._modules.keys(), *module._parameters.keys(), *module._buffers.keys()}  # those of scripted modules only tell


@contextmanager
def _checked_modules() -> Iterator[None]:
    """Refuse norms per graph, picked nodes, and backward hooks on Rows: PyTorch runs none, as Rows are no tensors."""

    def check(module: nn.Module, args: tuple[Any, ...]) -> None:
        if not any(isinstance(arg, Rows) for arg in args):
            return
        check_called(module)
        if module._backward_hooks or module._backward_pre_hooks:
            raise TypeError(
                f"{type(module).__name__} has a backward hook, but computes rows that stand for many: which ones, and so their "
                f"gradients, depend on the plan. Remove it, or hook what acts on whole graphs, behind the last pool"
            )

    handle = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def _check_output(out: Any, name: str) -> None:
    """Whatever a model returns, it is no Rows: nothing outside of it knows what to do with them."""
    if isinstance(out, Rows):
        raise TypeError(
            f"Expected {name} to return tensors, got Rows of {out.kind}: pool them (bag.pool, as often as it takes to come to "
            f"graphs), or take one row for every node or subgraph (bag.each)"
        )
    for part in out.values() if isinstance(out, dict) else out if isinstance(out, (list, tuple)) else ():
        _check_output(part, name)


def in_precision_of(model: nn.Module, bag: Bag) -> Bag:
    """Float features in the precision of a model's parameters."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    if bag.categories and dtype not in (torch.float32, torch.float64):
        raise ValueError(f"Expected a model in float32 or float64 for graphs with 'x_cat', got {dtype}: use torch.autocast")
    for name in ("x_rows", "mark_rows", "edge_rows", "edge_mark_rows"):
        value = getattr(bag, name)
        if value is not None and value.is_floating_point():
            setattr(bag, name, value.to(dtype))
    bag.graph_attr = {name: v.to(dtype) if v.is_floating_point() else v for name, v in bag.graph_attr.items()}
    return bag

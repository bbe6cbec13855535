"""The modules of a user, for one pass over Rows, without touching them.

A view of a module is another object with the same parameters, buffers and hooks, whose children are views. What passes messages
asks the bag for a step; and of the module's own methods, those that call PyG's utilities for edge lists and batch vectors
(``gcn_norm``, ``add_self_loops``, ``global_add_pool``) call ours (:mod:`enfa.nn.bag.utilities`). Neither the module nor PyG is
changed, so other threads may use both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import Aggregation

from enfa.nn.bag.batch import Pool
from enfa.nn.bag.rounds import pass_messages, update_edges
from enfa.nn.bag.utilities import INSTEAD

__all__ = ["run_view"]


def view(module: nn.Module, memo: dict[int, nn.Module] | None = None) -> Any:
    """A module for Rows. Made anew for every pass: what a module holds may change."""
    memo = {} if memo is None else memo
    if id(module) in memo:
        return memo[id(module)]
    compiled = _compiled_edges(module)
    if compiled and "_orig_mod" in module._modules:
        return view(module._modules["_orig_mod"], memo)  # type: ignore[arg-type]
    memo[id(module)] = new = object.__new__(type(module))  # modules with parametrizations refuse to be copied
    new.__dict__.update(module.__dict__)
    within = isinstance(module, MessagePassing)  # an aggregation there is one of messages, which are plain tensors
    new.__dict__["_modules"] = {
        name: child if child is None or (within and isinstance(child, Aggregation)) else view(child, memo)
        for name, child in module._modules.items()
    }
    for name, method in _methods(type(module)):
        changed = _rebound(method, {})
        if changed is not method and name not in new.__dict__:
            new.__dict__[name] = MethodType(changed, new)
    for name, own in module.__dict__.items():  # such as those of PyG's Sequential
        if isinstance(own, MethodType) and own.__self__ is module:
            function: Any = own.__func__
            new.__dict__[name] = MethodType(_rebound(function, {}) if isinstance(function, FunctionType) else function, new)
        elif isinstance(own, FunctionType):
            new.__dict__[name] = _replaced(own, {})
        elif type(own) in (list, tuple) and any(isinstance(part, nn.Module) for part in own):
            new.__dict__[name] = type(own)(view(part, memo) if isinstance(part, nn.Module) else part for part in own)
    if compiled:
        new.__dict__["_compiled_call_impl"] = None
    if isinstance(module, MessagePassing):
        _lift_messages(module, new)
    elif isinstance(module, Aggregation):
        memo[id(module)] = new = Pool(new)
    return new


def _compiled_edges(module: nn.Module) -> bool:
    """Whether it was compiled with what passes messages or pools, whose edge lists a compiler would take for tensors."""
    compiled = module._compiled_call_impl is not None or "_orig_mod" in module._modules
    return compiled and any(isinstance(part, (MessagePassing, Aggregation)) for part in module.modules())


def run_view(module: nn.Module, *args: Any, **arguments: Any) -> Any:
    """What a module gives on Rows. Attributes that its methods set are the module's own afterwards."""
    memo: dict[int, nn.Module] = {}
    shown = view(module, memo)
    before = {key: dict(vars(new)) for key, new in memo.items()}
    lists = [(v, len(v)) for had in before.values() for v in had.values() if type(v) is list]
    out = shown(*args, **arguments)
    parts = [(part, memo[id(part)]) for part in module.modules() if id(part) in memo]
    known = {id(new): part for part, new in parts} | {id(new.pool): part for part, new in parts if isinstance(new, Pool)}
    for grown, length in lists:  # a part may have been added
        if len(grown) > length:
            grown[length:] = [_original(value, known) for value in grown[length:]]
    for part, new in parts:
        if isinstance(new, Pool):  # which stands around the view, and is nothing of the module's
            continue
        had = before[id(part)]
        for name, value in vars(new).items():
            if name not in had or had[name] is not value:
                vars(part)[name] = _original(value, known)
            elif type(value) is list and type(own := vars(part).get(name)) is list and own is not value:
                own[:] = [_original(one, known) for one in value]  # it has modules in it, and the view had views in its place
        part._modules.update({n: _original(m, known) for n, m in vars(new)["_modules"].items() if n not in part._modules})
    return out


def _original(value: Any, known: dict[int, nn.Module], within: tuple[int, ...] = ()) -> Any:
    """The module that a view is of, and lists and dictionaries with modules instead of views."""
    if id(value) in known:
        return known[id(value)]
    if id(value) in within:
        return value
    within = (*within, id(value))
    if type(value) is tuple:
        return tuple(_original(part, known, within) for part in value)
    if type(value) is list:
        value[:] = [_original(part, known, within) for part in value]
    elif type(value) is dict:
        value.update({key: _original(part, known, within) for key, part in value.items()})
    return value


def _lift_messages(conv: MessagePassing, new: Any) -> None:
    from enfa.nn.bag.pyg_convs import prepared

    def propagate(edge_index: Any, size: Any = None, **arguments: Any) -> Any:
        return pass_messages(conv, new, edge_index, arguments)

    def edge_updater(edge_index: Any, size: Any = None, **arguments: Any) -> Any:
        return update_edges(conv, new, edge_index, arguments)

    new.__dict__["forward"] = prepared(conv, new.forward)
    new.__dict__["propagate"], new.__dict__["edge_updater"] = propagate, edge_updater


def _methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """The methods that a class has of its author's, not of torch.nn's or of PyG's base class."""
    seen: set[str] = set()
    for parent in kind.__mro__:
        if parent.__module__.startswith("torch.") or parent is MessagePassing or parent is object:
            continue
        for name, method in vars(parent).items():
            if isinstance(method, FunctionType) and name not in seen and not name.startswith("__init"):
                yield name, method
            seen.add(name)


def _names(code: CodeType) -> set[str]:
    """What a function looks up, functions within it too."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*(_names(part) for part in inner))


class _Super:
    """What ``super()`` is in a method of a view: methods of the parents, calling our utilities too."""

    def __init__(self, kind: type | None = None, of: Any = None) -> None:
        if kind is None:  # as Python finds both: the class that the method was written in, and its first argument
            frame = sys._getframe(1)
            there: Any = frame.f_locals
            kind, of = there["__class__"], there[frame.f_code.co_varnames[0]]
            if type(there) is dict:  # before Python 3.13 a copy, which would keep all variables for as long as the frame
                there.clear()
        vars(self).update(_kind=kind, _of=of)

    def __setattr__(self, name: str, value: Any) -> None:
        super(self._kind, self._of).__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        from enfa.nn.bag.pyg_convs import with_pairs

        found = getattr(super(self._kind, self._of), name)  # type: ignore[arg-type]
        if not isinstance(getattr(found, "__func__", None), FunctionType) or found.__self__ is not self._of:
            return found
        method = MethodType(_rebound(found.__func__, {}), self._of)
        return with_pairs(method) if name == "forward" and isinstance(self._of, MessagePassing) else method


def _rebound(function: FunctionType, done: dict[int, Any]) -> Any:
    """The same function, calling our utilities where it calls PyG's; itself where it calls none."""
    if id(function) in done:
        return done[id(function)]
    done[id(function)] = function  # one that calls itself
    names = _names(function.__code__)
    changed: dict[str, Any] = {"super": _Super} if "super" in names and "__class__" in function.__code__.co_freevars else {}
    for name in names & function.__globals__.keys():
        old = function.__globals__[name]
        new = _replaced(old, done)
        if new is not old:
            changed[name] = new
    if changed:
        space = {**function.__globals__, **changed}
        new = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
        new.__kwdefaults__, new.__annotations__ = function.__kwdefaults__, function.__annotations__
        done[id(function)] = new
    return done[id(function)]


def _replaced(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, FunctionType):
        if value in INSTEAD:
            return INSTEAD[value]
        return value if (value.__module__ or "").startswith(("torch.", "torch_geometric.")) else _rebound(value, done)
    if isinstance(value, ModuleType) and value.__name__.split(".")[0] == "torch_geometric":
        return _Replaced(value)
    return value


class _Replaced:
    """A module of PyG's, as in ``torch_geometric.nn.global_add_pool``."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _replaced(getattr(self._module, name), {})

"""Models that replay captured graphs when they are called with a batch on a GPU: the package's own, and :func:`captured`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any

from torch import nn

from enfa.batch.static.arriving import OnDevice
from enfa.nn.cuda.replay import Replays

__all__ = ["Captures", "captured", "eagerly"]


class _Here(local):
    eagerly = False


_here = _Here()


@contextmanager
def eagerly() -> Iterator[None]:
    """In here every model runs eagerly, as any module does: to look at what it computes, say, or to differentiate twice."""
    before, _here.eagerly = _here.eagerly, True
    try:
        yield
    finally:
        _here.eagerly = before


class Captures(nn.Module):
    """A module that is captured."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        if len(args) != 1 or more or not isinstance(args[0], OnDevice) or _here.eagerly or self._compiled_call_impl is not None:
            return super().__call__(*args, **more)
        if "_replays" not in self.__dict__:
            for part in self.modules():  # all at once, before any of them is watched
                if isinstance(part, Captures):
                    part.__dict__.setdefault("_replays", Replays())
        return self.__dict__["_replays"](self, super().__call__, args[0])


@cache
def _kind(kind: Any) -> Any:
    """Modules of this class that are captured."""

    def reduced(self: nn.Module) -> Any:
        return _shared, (kind, dict(self.__dict__))  # the class is made here, and nowhere to be found by its name

    return type(kind.__name__, (Captures, kind), {"__module__": kind.__module__, "__reduce__": reduced})


def _shared(kind: Any, attributes: dict[str, Any]) -> nn.Module:
    new = object.__new__(_kind(kind))
    object.__setattr__(new, "__dict__", attributes)
    return new


def captured(model: nn.Module) -> nn.Module:
    """The model, captured as CUDA graphs where it is called with batches of ``enfa.DataLoader(..., device="cuda")``.

        model = enfa.captured(Net()).to("cuda")

    It is of the model's class and has everything in common with it: parameters and their names, training mode, attributes.
    Models of this package do it by themselves, and come back as they are. Each bucket's first batch runs eagerly, its second is
    captured, forwards and backwards, all others are replayed. What cannot be captured runs eagerly, with one warning that says
    why: hooks; a forward that changes attributes, draws on the CPU or waits for the GPU; checkpointing; features that need
    gradients. What Python reads (a dropout probability, ``training``, lists, dictionaries and objects that a module holds,
    attributes of classes, numbers and lists among the globals that its methods name) may change at any time: the model is then
    captured again.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"Expected a torch.nn.Module to capture, got {type(model).__name__}")
    return model if isinstance(model, Captures) else _shared(type(model), model.__dict__)

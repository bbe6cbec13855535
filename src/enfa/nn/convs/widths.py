"""How wide the convs are that a model has made by its ``conv=``, a callable ``(in, out) -> conv``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from enfa.nn.rowwise.rows import Rows

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["asked_for", "told_widths"]

_ASKED = "_asked_for"  # an attribute, which copies of a model have, too


def asked_for(made: Any, in_channels: int, out_channels: int) -> Any:
    """The same conv, of which is known that it was asked for with these widths."""
    if isinstance(made, nn.Module):
        vars(made)[_ASKED] = in_channels, out_channels
    return made


@contextmanager
def told_widths(model: nn.Module, bag: Bag) -> Iterator[None]:
    """Where a model fails after a conv of another width than it asked for, that is said: what fails is a norm or the next conv.

    A model that does not fail may have put norms of that width in its place, so nothing is refused by itself.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        for widths, said in _wrong_widths(model, bag):
            if all(re.search(rf"(?<!\d){width}(?!\d)", str(error)) for width in widths):  # and not of something else
                raise ValueError(said) from error
        raise


def _wrong_widths(model: nn.Module, bag: Bag) -> list[tuple[tuple[int, ...], str]]:
    """Widths that were asked for and returned, and what to say of them.

    The model, which fails on this bag, is run once more: hooks, where there are any, make convs take another way.
    """
    wrong = []

    def note(module: nn.Module, args: Any, out: Any) -> None:
        asked = vars(module).get(_ASKED)
        if asked is None or not isinstance(out, Rows) or out.bag is not bag or out.shape[1:] == asked[1:]:
            return
        got = " x ".join(map(str, out.shape[1:]))
        said = (
            f"Expected {type(module).__name__} to return {asked[1]} columns, because conv(in_channels={asked[0]}, "
            f"out_channels={asked[1]}) made it, got {got}: make one that returns out_channels"
        )
        wrong.append(((asked[1], *out.shape[1:]), said))

    handle = register_module_forward_hook(note)
    try:
        with suppress(Exception):  # it failed before
            model(bag)
    finally:
        handle.remove()
    return wrong

"""Groups of a model's parameters, by the names that the setting ``freeze`` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from enfa.graphs.names import unknown

if TYPE_CHECKING:
    from torch import nn

__all__ = ["frozen_modules", "groups"]

# the modules of each group, by their names in a model
GROUPS = {"encoder": ("encoder", "edge_encoder", "embed"), "layers": ("layers",)}
BUT_HEAD = "all but head"


def groups(freeze: str) -> list[str]:
    """
    >>> groups("encoder, layers"), groups("all but head")
    (['encoder', 'layers'], ['all but head'])
    """
    found = [word.strip() for word in freeze.split(",")]
    for word in found:
        if word not in (*GROUPS, BUT_HEAD):
            raise unknown("freeze", word, (*GROUPS, BUT_HEAD))
    return found


def frozen_modules(model: nn.Module, freeze: str | None) -> list[nn.Module]:
    """The modules to freeze. A group that has no parameters is refused: there would be nothing that stays as it is."""
    found: list[nn.Module] = []
    for group in [] if freeze is None else groups(freeze):
        names = [name for name, _ in model.named_children() if name != "head"]
        names = names if group == BUT_HEAD else [name for name in GROUPS[group] if name in names]
        modules = [model.get_submodule(name) for name in names]
        if not any(True for module in modules for _ in module.parameters()):
            raise ValueError(
                f"Expected a model with parameters in {group!r} to freeze, got one without: features are read as is"
            )
        found += modules
    return found

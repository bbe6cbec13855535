"""What a conv is."""

from __future__ import annotations

from torch import Tensor, nn

from enfa.nn.linear import hooked
from enfa.nn.norm import CountedBatchNorm, normed
from enfa.plan.make import unknown
from enfa.plan.table import Links

__all__ = ["MLP", "NORMS", "Conv", "make_norm"]

NORMS = ("batch", "layer", None)


def make_norm(norm: str | None, channels: int) -> nn.Module:
    if norm == "batch":
        return CountedBatchNorm(channels)
    if norm == "layer":
        return nn.LayerNorm(channels)
    if norm is None:
        return nn.Identity()
    raise unknown("norm", norm, [str(n) for n in NORMS])


class MLP(nn.Sequential):
    """The update of GIN: linear, norm, ReLU, linear."""

    def __init__(self, in_channels: int, out_channels: int, norm: str | None) -> None:
        super().__init__(
            nn.Linear(in_channels, out_channels),
            make_norm(norm, out_channels),
            nn.ReLU(),
            nn.Linear(out_channels, out_channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self[3](normed(self[1], x, True, self[0]))  # type: ignore[arg-type]


class Conv(nn.Module):
    """Rows [R', in] of the table before -> conv rows [R, out].

    ``edge`` [KE, edge_dim] holds the features of every edge kind, ``degree`` the in-degrees, in the subgraph, of the
    rows before [R'] and of the conv rows [R]. Both are None unless the class asks for them. Links are int32: indexing and
    ``index_select`` take them, ``scatter_`` and ``torch.gather`` want ``.long()``.
    """

    reads_edges: bool = False
    needs_edges: bool = False  # cannot do without edge attributes
    reads_degrees: bool = False
    links: frozenset[str] = frozenset()  # what forward reads of links on a GPU: names from enfa.plan.prepare.LINKS

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__()

    @property
    def update(self) -> nn.Module | None:
        """The linear or :class:`MLP` that it ends in, so that a norm behind it can be computed together with it."""
        return None

    def hidden(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """Everything before :attr:`update`."""
        raise TypeError(f"{type(self).__name__} must define hidden")

    def forward(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        found, update = self.hidden(rows, links, edge, degree), self.update
        return found if update is None else update(found)

    def normed(
        self, norm: nn.Module, relu: bool, rows: Tensor, links: Links, edge: Tensor | None,
        degree: tuple[Tensor, Tensor] | None,
    ) -> Tensor:  # fmt: skip
        """norm(forward(...)), and a ReLU behind it, in one go where that can be."""
        update = self.update
        if hooked(self) or update is None:
            return normed(norm, self(rows, links, edge, degree), relu)
        found = self.hidden(rows, links, edge, degree)
        if type(update) is MLP and not hooked(update):
            return normed(norm, found, relu, update[3], (update[0], update[1]))  # type: ignore[arg-type]
        if isinstance(update, nn.Linear):
            return normed(norm, found, relu, update)
        return normed(norm, update(found), relu)

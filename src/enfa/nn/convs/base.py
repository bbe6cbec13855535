"""What a conv of the package is: PyG's convs run as they are, these have kernels of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from enfa.graphs.names import unknown
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise.rows import Rows
from enfa.plan.links import Links
from enfa.plan.step import step_of

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["Conv", "make_norm", "mlp"]

NORMS = ("batch", "layer", None)
Degrees = tuple[Tensor, Tensor] | None


def make_norm(norm: str | None, channels: int) -> nn.Module:
    if norm == "batch":
        return CountedBatchNorm(channels)
    if norm == "layer":
        return nn.LayerNorm(channels)
    if norm is None:
        return nn.Identity()
    raise unknown("norm", norm, [str(n) for n in NORMS])


def mlp(in_channels: int, out_channels: int, norm: str | None, inside: int | None = None) -> nn.Sequential:
    """The update of GIN: linear, norm, ReLU, linear. ``inside``: how wide it is in between; as its output where not given."""
    wide = out_channels if inside is None else inside
    return nn.Sequential(nn.Linear(in_channels, wide), make_norm(norm, wide), nn.ReLU(), nn.Linear(wide, out_channels))


class Conv(nn.Module):
    """Rows [R', in] of one table -> rows [R, out] of the next: ``bag.propagate(conv, h)``.

    A class says what :meth:`messages` reads: edge attributes, in-degrees in the subgraph, and of the links the names from
    :mod:`enfa.plan.derived.needs` that it reads on a GPU. Links are int32: indexing and ``index_select`` take them;
    ``scatter_`` and ``torch.gather`` want ``.long()``.
    """

    reads_edges: bool = False
    reads_degrees: bool = False
    links: tuple[str, ...] = ()
    update: nn.Module  # what is done with each row then

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        """[R, in]: what each row reads. ``edge`` [edge kinds, channels]; ``degree`` of the rows before [R', 1] and of these."""
        raise TypeError(f"{type(self).__name__} must define messages")

    def forward(self, bag: Bag, h: Rows, edge: Rows | None, along: str) -> Rows:
        of_before: Any = None
        if self.reads_degrees:
            of_before = bag.degrees_of(h, along)
            like = bag.common([h, of_before], self)
            h, of_before = (like.of(bag.moved(rows, like.number)) for rows in (h, of_before))
        reads_edges = self.reads_edges and edge is not None
        number = bag.step(step_of("propagate", h.kind, (h.number,), reads_edges, along))
        bag.need(number, *self.links)
        degree = None if of_before is None else (of_before.value, bag.moved(of_before, number))
        links = bag.tables[number].links
        assert links is not None
        found = self.messages(h.value, links, edge.value if reads_edges and edge is not None else None, degree)
        return self.update(Rows(found, bag, number))

"""The plan: a table of rows for each step of a model, and for each row the rows that it reads.

A plan is index arithmetic only. It knows neither what a feature means nor which policy made the subgraphs, and the
model that runs on it does not know how many rows it saves.

Worked example: the path a - b - c under node marking, one GIN layer, equal features everywhere. The conventional
bag has nine (subgraph, node) pairs. Table 0 of the distinct plan has two rows, "unmarked" (0) and "marked" (1).
Table 1 has the base rows, those of the unedited path that some subgraph has, too, and those that an edit reached::

    row            self_row   incoming   copies   stands for (subgraph, node)
    0  end             0      [0]          2      (a, c) (c, a)       the base row of a and of c
    1  end, marked     1      [0]          2      (a, a) (c, c)
    2  middle          0      [0, 1]       2      (a, b) (c, b)
    3  middle, marked  1      [0, 0]       1      (b, b)
    4  end             0      [1]          2      (b, a) (b, c)

so ``self_row = [0, 1, 0, 1, 0]``, ``in_ptr = [0, 1, 2, 4, 6, 7]``, ``in_row = [0, 0, 0,1, 0,0, 1]``. There is no base row of b,
which every subgraph affects. The pool of nodes (``sums``) has three lists of (row, count): the base rows of a and c,
``[(0, 1), (0, 1)]``, what subgraphs a and c swap for it, ``[(0, -1), (1, 1), (2, 1)]``, and what subgraph b does,
``[(0, -2), (3, 1), (4, 2)]``. Two distinct subgraphs add two lists each (``parts``): ``[0, 1]``, for a and c, and ``[0, 2]``;
so ``place = [0, 1, 0]``.
"""

from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.cost import Cost
from enfa.plan.links import Links, Sums
from enfa.plan.step import Program

__all__ = ["Plan", "Table", "Untold"]


class Untold:
    """How many there are of something in a padded batch: more than one. A captured step would go on with its first batch's."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            "Expected a model that reads no number of pairs, nodes or subgraphs of padded batches, got another one: use "
            "enfa.DataLoader with pad=False"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __int__ = __float__ = __index__ = _refuse

    def __repr__(self) -> str:
        return "?"


P = TypeVar("P", bound="Plan")


@dataclass(eq=False)
class Table(Arrays):
    """The rows of one step: R of them, and for each the rows that it reads. Which arrays there are depends on the step."""

    # int32 or int64 [R]: pairs, nodes or subgraphs that a row stands for; None: graphs, each its own row, or not counted
    copies: Tensor | None
    total: int  # how many pairs, nodes, subgraphs or graphs there are: the sum of copies
    links: Links | None = None  # propagate: own and incoming rows of the step read
    own: Tensor | None = None  # int64 [R], of the first step read: spread, diagonal, join
    other: Tensor | None = None  # int64 [R], of the second step read: join
    sums: Sums | None = None  # across, root, pool: rows of the step read; of a pool with ``parts``: lists that it adds up
    parts: Sums | None = None  # pool of pairs: the lists of each subgraph
    place: Tensor | None = None  # int64: the row of every node or subgraph, in order
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    @property
    def num_rows(self) -> int:
        for lists in (self.parts, self.sums):
            if lists is not None:
                return lists.ptr.shape[0] - 1
        if self.links is not None:
            return self.links.num_rows
        held = self.copies if self.own is None else self.own
        assert held is not None  # of the first table, Plan.num_rows knows
        return held.shape[0]

    @property
    def parents(self) -> list[Tensor]:
        """Where a row finds the same pair, node or subgraph in the steps that it reads."""
        found = [self.links.self_row if self.links is not None else self.own, self.other]
        return [index for index in found if index is not None]


def _alone(array: Tensor) -> Tensor:
    return array if array.is_meta or array.untyped_storage().nbytes() == array.nbytes else array.clone()


@dataclass(eq=False)
class Plan(Arrays):
    """Tables 0, 1, … for a list of graphs, one for each step of a program."""

    kind: str
    program: Program
    num_graphs: int
    x_rows: Tensor  # [K, F] feature rows
    feature: Tensor  # int64 [R0], row of x_rows
    mark_rows: Tensor  # float [values, channels]
    marked: Tensor  # int64 [R0], row of mark_rows
    of_graph: Tensor | None  # int64 [R0], where rows are shared within a graph only
    edge_rows: Tensor | None  # [KE, FE], by edge kind
    edge_mark_rows: Tensor  # float [KE, channels]
    tables: list[Table]
    num_nodes: int
    num_subgraphs: int
    y: Tensor | None = None
    categories: tuple[int, ...] = ()  # largest values of the last columns of x_rows, which are categories beside floats
    limits: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # largest categorical values of x_rows and edge_rows
    root_nodes: Tensor | None = None  # int64 [num_subgraphs, 1 or 2], -1 for none, where the model reads roots
    degrees: Tensor | None = None  # int64 [R0], in-degrees in the subgraph, where the model reads them
    graph_ids: Tensor | None = None  # int64 [num_graphs], places in the compiled dataset
    graph_attr: dict[str, Tensor] = field(default_factory=dict)  # by name, [num_graphs, ...]
    unshared: int | None = None  # from this step on every pair, node and subgraph is a row of its own, in order; None: nowhere
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    @property
    def device(self) -> torch.device:
        return self.feature.device

    @property
    def num_pairs(self) -> int:
        """(subgraph, node) pairs of the conventional model."""
        return self.tables[0].total

    def num_rows(self, number: int) -> int:
        """Of one step."""
        return self.tables[number].num_rows if number else self.feature.shape[0]

    def numbered_alike(self, one: int, other: int) -> bool:
        """Whether rows with the same number in two steps stand for the same pair, node or subgraph."""
        if one == other:
            return True
        steps, apart = self.program.steps, self.unshared is not None and self.unshared <= min(one, other)
        return apart and steps[one].kind == steps[other].kind

    @property
    def countable(self) -> bool:
        """Whether every BatchNorm has two rows to average, of whatever it is."""
        return all(table.total > 1 for step, table in zip(self.program.steps, self.tables) if step.kind != "graphs")

    def of_any_size(self: P) -> P:
        """The same without the numbers that differ from batch to batch."""
        untold: Any = Untold()
        tables = [table.changed(total=untold) for table in self.tables]
        return self.changed(tables=tables, num_nodes=untold, num_subgraphs=untold)

    def cost(self) -> Cost:
        """Rows and messages of every step that passes messages, and bytes of all arrays."""
        links = [table.links for table in self.tables if table.links is not None]
        return Cost(
            rows=[part.num_rows for part in links],
            edges=[len(part.in_row) for part in links],
            bytes=sum(t.numel() * t.element_size() for t in self.tensors(cached=False)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Where arrays are parts of one block, each alone: saved as they are, all of them would take the block along."""
        if _alone(self.feature) is self.feature:
            return self.__dict__
        return {**self.__dict__, **self.map(_alone).__dict__}

    def __repr__(self) -> str:
        rows = " ".join(str(self.num_rows(number)) for number in range(len(self.tables)))
        return (
            f"{type(self).__name__}({self.kind}, {self.num_graphs} graphs, {self.num_subgraphs} subgraphs, "
            f"{self.num_pairs} (subgraph, node) pairs)\n"
            f"  steps: {'; '.join(map(str, self.program.steps))}\n  rows:  {rows}"
        )

"""What a model asks of its bag: a list of steps.

A step makes one table of rows from earlier tables. It says which rows each row reads, and nothing about widths, weights or
what is computed: two convs on the same rows are one step. Printed, a program is one line a step::

    0  pairs      start
    1  pairs      propagate 0
    2  subgraphs  pool 1
    3  graphs     pool 2
"""

from dataclasses import dataclass, field
from functools import cache, cached_property

__all__ = ["Program", "Step", "step_of"]


@dataclass(frozen=True)
class Step:
    """One table.

    ``op`` and what a row of it reads, where (j, v) is node v in subgraph j:

    - ``start``: pairs; (j, v) reads its features and its mark, and with ``degrees`` its in-degree in subgraph j.
    - ``propagate``: pairs (j, v) read (j, v) and (j, u) for the edges u -> v of subgraph j; nodes v read v and u for the edges
      of the unedited graph. ``along="subgraphs"``: pairs (j, v) read (j, v) and (k, v) for subgraphs k whose root has an edge
      to the root of j.
    - ``across``: nodes v read (k, v) for all subgraphs k that contain v.
    - ``root``: subgraphs j read (j, r) for the root r of j, or for both ends of a root edge.
    - ``diagonal``: nodes v read (j, v) for the subgraph j whose root v is.
    - ``pool``: subgraphs read their pairs, graphs their subgraphs or their nodes; nodes the subgraphs whose root they are,
      or an end of whose root edge.
    - ``spread``: pairs read the row of their subgraph, their node or their graph.
    - ``join``: rows of one kind read their rows in two tables.
    """

    op: str
    kind: str
    reads: tuple[int, ...] = ()  # numbers of earlier steps
    edges: bool = False  # propagate: whether rows are told apart by the kinds of their edges
    along: str = "nodes"
    degrees: bool = False  # start: whether rows are told apart by their in-degrees

    @property
    def own(self) -> int | None:
        """The step whose rows the own numbers of this step's keys are; None: of none."""
        return self.reads[0] if self.op in ("propagate", "spread", "diagonal", "join") else None

    @property
    def item(self) -> int | None:
        """The step whose rows the items of this step's keys name: of a join the second, otherwise the only one."""
        return self.reads[-1] if self.reads else None

    def __str__(self) -> str:
        words = [self.op, *map(str, self.reads)]
        if self.edges:
            words.append("with edges")
        if self.along != "nodes":
            words.append(f"along {self.along}")
        if self.degrees:
            words.append("with degrees")
        return " ".join(words)


@cache
def step_of(op: str, kind: str, reads: tuple[int, ...], edges: bool = False, along: str = "nodes") -> Step:
    """The step itself, made once: a model asks for the same ones with every batch."""
    return Step(op, kind, reads, edges, along)


@dataclass(frozen=True)
class Program:
    """The steps of a model, earlier ones first.

    ``share``: ``"dataset"``: rows may be shared between graphs; ``"graph"``: only within one.
    ``loops``: whether graphs may have self-loops. A model that puts its own in their place cannot tell them from other edges.
    ``counted``: whether the model reads how often rows count, as BatchNorm does. Where it does not, rows that nothing reads are
    left out. ``dropout``: whether rows are dropped, by masks that are the same for all that is shared. ``needs``: what it reads
    of the tables beside their arrays, as (number of the step, name) from :mod:`enfa.plan.derived.needs`; two programs that
    differ in nothing else run on each other's plans. ``unshared``: from this step on no row is shared: every pair, node and
    subgraph has its own, in order. Where sharing has nearly ended that costs less, because such tables are numbered alike.
    """

    steps: tuple[Step, ...]
    share: str = "dataset"
    loops: bool = True
    counted: bool = True
    dropout: bool = False
    needs: frozenset[tuple[int, str]] = field(default=frozenset(), compare=False)
    unshared: int | None = None

    @property
    def shared(self) -> tuple[Step, ...]:
        """The steps whose rows are shared."""
        return self.steps[: self.unshared]

    @property
    def handed_on(self) -> set[int]:
        """The steps with shared rows that others read."""
        return {read for step in self.steps[len(self.shared) :] for read in step.reads if read < len(self.shared)}

    @cached_property
    def counted_by(self) -> dict[int, int | None]:
        """The tables of pairs whose copies follow from no later table, where rows are counted: by the lists of which pool they
        are known. None: by none, so that rows are counted graph by graph when they are found.
        """
        owned = {read for step in self.shared if step.op in ("propagate", "join") for read in step.reads}
        pools = {step.reads[0]: number for number, step in enumerate(self.shared) if step.op == "pool"}
        pairs = [number for number, step in enumerate(self.shared) if step.kind == "pairs" and self.counted]
        return {number: pools.get(number) for number in pairs if number not in owned | self.handed_on}

    @property
    def layers(self) -> int:
        """How many convs there are, where all it does is one conv after the other and the pools of the last, all of which share
        rows; otherwise 0.
        """
        layers = len(self.steps) - 3
        chain = [Step("propagate", "pairs", (i,), edges=step.edges) for i, step in enumerate(self.steps[1:-2])]
        pools = [Step("pool", "subgraphs", (layers,)), Step("pool", "graphs", (layers + 1,))]
        is_chain = layers > 0 and list(self.steps[1:]) == chain + pools
        return layers if is_chain and self.unshared is None else 0

    def way(self, begin: int, end: int) -> list[tuple[int, int]] | None:
        """From a table to an earlier one by own rows: steps, and which of the tables that they read to go on with."""
        if begin == end:
            return []
        step = self.steps[begin]
        if begin < end or step.op not in ("propagate", "join"):
            return None
        for side, read in enumerate(step.reads):
            further = self.way(read, end)
            if further is not None:
                return [(begin, side), *further]
        return None

    def number(self, step: Step) -> int:
        """Where a step stands; a ValueError that names both where it is not there."""
        found = self._numbers.get(step)
        if found is None:
            raise ValueError(
                f"The model asks for a step that its plan does not hold: {step.kind}, {step}. Make a plan with this model; "
                f"if this one was, its forward does something else from call to call, or in training than in evaluation. "
                f"The plan holds:\n{self}"
            )
        return found

    @cached_property
    def _numbers(self) -> dict[Step, int]:
        return {step: number for number, step in reversed(list(enumerate(self.steps)))}

    def __str__(self) -> str:
        return "\n".join(f"{n:2}  {step.kind:10} {step}" for n, step in enumerate(self.steps))

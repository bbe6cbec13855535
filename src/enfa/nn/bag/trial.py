"""Trying a conv's own code for messages while a model is traced: it runs on plain tensors, where nothing refuses to mix rows.

What belongs to some rows must be the same when these are alone, and when their messages come in another order. It is tried on
the rows of the traced graph, on others near them, since in a regular graph all may be equal, and in training mode, too, in
which a conv may do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from enfa.nn.bag.edges import LinkValues, StandIn
from enfa.nn.rowwise.rows import EDGES, Rows

if TYPE_CHECKING:
    from enfa.nn.bag.rounds import Round

__all__ = ["compare_alone", "not_kept", "on_edges", "rows_of"]

# ends of the links, numbers of rows that send and receive, arguments -> what a conv makes of them
Run = Callable[[Tensor, tuple[int, int], dict[str, Any]], Any]


def rows_of(value: Any) -> list[Rows]:
    if isinstance(value, Rows):
        return [value] if value.number != EDGES else []
    if isinstance(value, LinkValues):
        return list(value.rows)
    if isinstance(value, (tuple, list)):
        return [rows for part in value for rows in rows_of(part)]
    return []


def on_edges(value: Any) -> bool:
    return isinstance(value, LinkValues) or (isinstance(value, Rows) and value.number == EDGES)


def compare_alone(
    view: nn.Module, run: Run, rounds: Round, arguments: dict[str, Any], plain: dict[str, Any], found: Any, on_links: bool
) -> None:
    """Refuse a conv that gives some rows, or links, something else when they are alone.

    ``plain``: the arguments as tensors; ``found``: what ``run`` gave for all rows, one for each link or for each row.
    """
    links, rows = rounds.ends.shape[1], rounds.links.num_rows
    if not isinstance(found, Tensor) or found.ndim == 0 or len(found) != (links if on_links else rows) or rows < 2 or not links:
        return
    trial = _Trial(type(view).__name__, run, rounds, arguments, on_links)
    trial.compare(plain, found)
    others = {key: _near(value) for key, value in plain.items()}
    trial.compare(others, trial.whole(others))
    with _training(view):
        # what draws is refused when it is trained; what differs from call to call, such as a spectral norm, is not judged
        once, again = trial.whole(others), trial.whole(others)
        if once is not None and again is not None and torch.equal(once, again):
            trial.compare(others, once, " in training mode")


def _near(value: Any) -> Any:
    """Other numbers of the same signs, all of them different."""
    if isinstance(value, tuple):
        return tuple(map(_near, value))
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return value * (1 + 0.5 * noise).to(value)


@contextmanager
def _training(view: nn.Module) -> Iterator[None]:
    before = [(part, part.training) for part in view.modules()]
    for part, _ in before:
        part.training = True
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


class _Trial:
    def __init__(self, name: str, run: Run, rounds: Round, arguments: dict[str, Any], on_links: bool) -> None:
        self.name, self.run, self.rounds, self.arguments, self.on_links = name, run, rounds, arguments, on_links

    def whole(self, plain: dict[str, Any]) -> Tensor | None:
        """What it gives for all rows; None where it fails on numbers that are not the model's."""
        try:
            found = self.run(self.rounds.ends, self.rounds.sizes, plain)
        except Exception:  # of the user's code, and of any kind; on the model's own numbers it was raised
            return None
        return found if isinstance(found, Tensor) else None

    def compare(self, plain: dict[str, Any], found: Tensor | None, when: str = "") -> None:
        if found is None:
            return
        # every second row, and of those that get messages the last and the ones that differ most: a row that is the median of
        # all has nothing taken from it by that
        target = self.rounds.ends[1]
        reached, size = target.unique(), found.detach().reshape(len(found), -1).double().nan_to_num().sum(1)
        if self.on_links:
            size = size.new_zeros(self.rounds.links.num_rows).index_add(0, target, size)
        size = size[reached]
        at = sorted({len(size) - 1, int(size.argmax()), int(size.argmin())}) if len(size) else []
        for some in (torch.arange(1, self.rounds.links.num_rows, 2, device=found.device), *(reached[i : i + 1] for i in at)):
            self._compare_some(plain, found, some, when)

    def _compare_some(self, plain: dict[str, Any], found: Tensor, some: Tensor, when: str) -> None:
        rounds = self.rounds
        place = torch.full((rounds.links.num_rows,), -1, device=found.device)
        place[some] = torch.arange(len(some), device=found.device)
        link = (place[rounds.ends[1]] >= 0).nonzero()[:, 0]
        if not len(link):
            return  # without any message, code that is right may fail: x.view(len(x), -1)
        link = link[torch.randperm(len(link), generator=torch.Generator().manual_seed(1)).to(link.device)]
        ends = torch.stack([rounds.ends[0, link], place[rounds.ends[1, link]]])
        try:
            again = self.run(ends, (rounds.sizes[0], len(some)), self._alone(plain, some, link))
        except (IndexError, RuntimeError, ValueError) as error:
            if when:
                return
            raise TypeError(f"{self.name} fails when fewer rows get messages: {error}") from error
        expected = found[link if self.on_links else some]
        if again.shape != expected.shape or not torch.allclose(
            again.double(), expected.double(), rtol=1e-3, atol=1e-4 * float(expected.abs().nan_to_num().max()), equal_nan=True
        ):
            raise TypeError(
                f"{self.name} gives a row something else when fewer rows get messages, or when they come in another "
                f"order{when}: in message, aggregate, update and edge_update, what belongs to one edge or node may read "
                f"nothing of others"
            )

    def _alone(self, plain: dict[str, Any], some: Tensor, link: Tensor) -> dict[str, Any]:
        """The arguments for some rows that get messages, and for the links that lead to them."""
        alone = {}
        for key, value in plain.items():
            if isinstance(value, tuple) and len(value) == 2 and rows_of(self.arguments[key]):
                alone[key] = (value[0], None if value[1] is None else value[1][some])
            elif on_edges(self.arguments[key]):
                alone[key] = value[link]
            else:
                alone[key] = value[some] if rows_of(self.arguments[key]) else value
        return alone


class _Kept(StandIn):
    what = "what a conv has kept of its messages"


@contextmanager
def not_kept(view: nn.Module) -> Iterator[None]:
    """Tensors that a conv's own code for messages leaves in its attributes are there for looking at after the pass. While it
    is traced, stand-ins refuse to be computed with."""
    before = [(vars(part), dict(vars(part))) for part in view.modules()]
    yield
    for own, had in before:
        for name, value in own.items():
            if isinstance(value, Tensor) and value.ndim and had.get(name) is not value:
                own[name] = torch.empty(0, device=value.device).as_subclass(_Kept)

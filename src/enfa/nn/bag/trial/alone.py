"""Trying a conv's own code for messages while a model is traced: it runs on plain tensors, where nothing refuses to mix rows.

What belongs to some rows must be the same when these are alone, and when their messages come in another order. It is tried on
the rows of the traced graph, on others near them, since in a regular graph all may be equal, and in training mode, too, in
which a conv may do something else; and in float64, where rounding hides less of what is wrong and makes less of what is right
look wrong, if the conv can be run in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from enfa.nn.bag.edges import LinkValues
from enfa.nn.bag.trial.double import Seen, in_double
from enfa.nn.bag.trial.numbers import largest, near
from enfa.nn.rowwise.rows import EDGES, Rows

if TYPE_CHECKING:
    from enfa.nn.bag.rounds import Round

__all__ = ["compare_alone", "on_edges", "rows_of"]

# a conv, or a copy, ends of the links, numbers of rows that send and receive, arguments -> what it makes of them
Run = Callable[[nn.Module, Tensor, tuple[int, int], dict[str, Any]], Any]


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
    others, given = near(plain), (run, rounds, arguments, on_links)
    _Trial(view, plain, found, *given).compare()
    _Trial(view, others, None, *given).compare()
    with _training(view):
        trial = _Trial(view, others, None, *given)
        again = trial.whole(trial.plain)
        # what draws is refused when it is trained; what differs from call to call, such as a spectral norm, is not judged
        if trial.found is not None and again is not None and torch.equal(trial.found, again):
            trial.compare(" in training mode")


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
    """A conv on some numbers: a copy of it in float64, and ``fine``, or itself, where there is none."""

    def __init__(
        self, view: nn.Module, plain: dict[str, Any], found: Tensor | None,
        run: Run, rounds: Round, arguments: dict[str, Any], on_links: bool,
    ) -> None:  # fmt: skip
        self.name, self.run, self.rounds, self.arguments, self.on_links = type(view).__name__, run, rounds, arguments, on_links
        self.fine = False
        with suppress(Exception):  # of the user's tensors, and of any kind: some devices have no float64
            self.view, self.plain = in_double(view), in_double(plain)
            with Seen() as seen:
                self.found = self.whole(self.plain)
            self.fine = self.found is not None and not seen.coarse
        if not self.fine:
            self.view, self.plain = view, plain
            self.found = self.whole(plain) if found is None else found

    def whole(self, plain: dict[str, Any], view: nn.Module | None = None) -> Tensor | None:
        """What it gives for all rows; None where it fails on numbers that are not the model's."""
        try:
            found = self.run(self.view if view is None else view, self.rounds.ends, self.rounds.sizes, plain)
        except Exception:  # of the user's code, and of any kind; on the model's own numbers it was raised
            return None
        return found if isinstance(found, Tensor) else None

    def compare(self, when: str = "") -> None:
        found = self.found
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
            self._compare_some(found, some, when)
        if next(self.view.buffers(), None) is not None:
            self._compare_buffers(torch.arange(1, self.rounds.links.num_rows, 2, device=found.device), when)

    def _links_of(self, some: Tensor) -> tuple[Tensor, Tensor]:
        """The links that lead to some rows, in another order, and their ends."""
        rounds = self.rounds
        place = torch.full((rounds.links.num_rows,), -1, device=some.device)
        place[some] = torch.arange(len(some), device=some.device)
        link = (place[rounds.ends[1]] >= 0).nonzero()[:, 0]
        link = link[torch.randperm(len(link), generator=torch.Generator().manual_seed(1)).to(link.device)]
        return link, torch.stack([rounds.ends[0, link], place[rounds.ends[1, link]]])

    def _compare_buffers(self, some: Tensor, when: str) -> None:
        """What messages leave in buffers, such as running statistics, is read in other passes."""
        link, ends = self._links_of(some)
        of_all = self._left(lambda: self.whole(self.plain))
        if not of_all or not len(link):
            return
        with suppress(IndexError, RuntimeError, ValueError):
            of_some = self._left(lambda: self.run(self.view, ends, (self.rounds.sizes[0], len(some)), self._alone(some, link)))
            for name, value in of_all.items():
                if name not in of_some or not self._close(of_some[name], value):
                    raise TypeError(
                        f"{self.name} leaves something else in its buffer {name!r} when fewer rows get messages, or when they "
                        f"come in another order{when}: how many there are depends on the plan"
                    )

    def _left(self, run: Callable[[], Any]) -> dict[str, Tensor]:
        """The buffers that a run changes, as it leaves them. They are put back."""
        before = {name: (buffer, buffer.clone()) for name, buffer in self.view.named_buffers()}
        boxes = [(part._buffers, dict(part._buffers)) for part in self.view.modules()]
        try:
            run()
            found = {name: buffer.clone() for name, buffer in self.view.named_buffers()}
        finally:
            for box, had in boxes:
                box.update(had)
            for buffer, value in before.values():
                buffer.copy_(value)
        return {name: value for name, value in found.items() if name in before and not torch.equal(value, before[name][1])}

    def _compare_some(self, found: Tensor, some: Tensor, when: str) -> None:
        link, ends = self._links_of(some)
        if not len(link):
            return  # without any message, code that is right may fail: x.view(len(x), -1)
        try:
            again = self.run(self.view, ends, (self.rounds.sizes[0], len(some)), self._alone(some, link))
        except (IndexError, RuntimeError, ValueError) as error:
            if when:
                return
            raise TypeError(f"{self.name} fails when fewer rows get messages: {error}") from error
        if not self._close(again, found[link if self.on_links else some]):
            raise TypeError(
                f"{self.name} gives a row something else when fewer rows get messages, or when they come in another "
                f"order{when}: in message, aggregate, update and edge_update, what belongs to one edge or node may read "
                f"nothing of others"
            )

    def _close(self, again: Tensor, expected: Tensor) -> bool:
        if again.shape != expected.shape:
            return False
        again, expected, size = again.double(), expected.double(), largest(expected)
        if not self.fine:
            return torch.allclose(again, expected, rtol=1e-3, atol=1e-4 * size, equal_nan=True)
        close = torch.allclose(again, expected, rtol=0.0, atol=1e-9 * size, equal_nan=True)
        return close or torch.allclose(again, expected, rtol=0.0, atol=self._rounding, equal_nan=True)

    @cached_property
    def _rounding(self) -> float:
        """How far rounding may take a result that is right, where that is more than a few last digits of it.

        Where numbers cancel, their digits count and not those of what is left, and a root leaves half of them: PyG's std of
        equal messages, the root of mean(x^2) - mean(x)^2, may be 0 or 1e-8 of them. So it is measured, as what becomes of
        changes of that size in what is read, and in weights. A jump is no rounding (of a conv that counts equal rows, say), so
        it ends at a small part of these numbers, or of their square, as in a variance. Constants, of about 1, are rounded, too.
        """
        whole, size = self.found, max(largest(self.plain), largest(tuple(self.view.parameters())))
        assert whole is not None
        there = []
        for seed in range(3, 7):
            view = in_double(self.view)
            for weight in view.parameters():
                weight.data = near(weight.data, 1e-8, seed)
            moved = self.whole(near(self.plain, 1e-8, seed), view)
            if moved is not None and moved.shape == whole.shape:
                there.append(moved.double() - whole.double())
        return 1e-14 + min(10 * largest(tuple(there)), 1e-4 * max(size, largest(whole), 1e-8 * size * size))

    def _alone(self, some: Tensor, link: Tensor) -> dict[str, Any]:
        """The arguments for some rows that get messages, and for the links that lead to them."""
        alone = {}
        for key, value in self.plain.items():
            if isinstance(value, tuple) and len(value) == 2 and rows_of(self.arguments[key]):
                alone[key] = (value[0], None if value[1] is None else value[1][some])
            elif on_edges(self.arguments[key]):
                alone[key] = value[link]
            else:
                alone[key] = value[some] if rows_of(self.arguments[key]) else value
        return alone

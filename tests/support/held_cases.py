"""Models in which operations that may be held back meet what could go wrong with them: name -> forward(m, bag)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from enfa import CountedBatchNorm

__all__ = ["AUTOCAST", "CASES", "WIDTH", "Case"]

WIDTH = 5
Forward = Callable[[Any, Any], Tensor]


class Kept(list):
    """What a module keeps, and a copy of it does not."""

    def __deepcopy__(self, memo: Any) -> Kept:
        return Kept()


class Case(nn.Module):
    """A few modules, and a forward pass of one's own."""

    def __init__(self, forward: Forward, norm: Callable[[int], nn.Module] = CountedBatchNorm) -> None:
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)
        self.lin, self.other, self.bare = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm, self.second = norm(WIDTH), norm(WIDTH)
        self.conv = GINConv(nn.Linear(WIDTH, WIDTH))
        self.drop, self.score = nn.Dropout(0.3, inplace=True), nn.Linear(WIDTH, 1)
        self.how, self.seen = forward, Kept()

    def x(self, bag: Any) -> Any:
        return self.embed(torch.cat([bag.x, bag.mark], 1)).tanh()

    def forward(self, bag: Any) -> Tensor:
        return self.how(self, bag)


def out(bag: Any, h: Any) -> Tensor:
    return bag.pool(bag.pool(h, "sum"), "mean")


def _of_pairs(act: Callable[[Any, Any], Any]) -> Forward:
    """Of the embedded features, pooled."""
    return lambda m, bag: out(bag, act(m, m.x(bag)))


def _written(write: Callable[[Any, Any], Any]) -> dict[str, Callable]:
    """Something is written into the input of a held norm, a held linear, or into the result of either."""

    def after_linear(m, x):
        h = m.lin(x)
        write(m, h)
        return m.norm(h)

    def input_of_norm(m, x):
        h = m.lin(x)
        n = m.norm(h)
        write(m, h)
        return n + h

    def input_of_linear(m, x):
        x = x * 1
        h = m.lin(x.detach())  # what autograd saved may not be written into, held back or not
        with torch.no_grad():
            n = m.norm(h)
            write(m, h)
        return n + h + x

    def result(m, x):
        n = m.norm(m.lin(x))
        r = n.relu()
        write(m, n)
        return r * 2 + n

    def relu_result(m, x):
        with torch.no_grad():
            r = m.norm(m.lin(x)).relu()
            s = m.other(r)
        write(m, r)
        return r + s + x

    def summand(m, x):
        y = x * 1
        h = m.lin(x)
        s = m.norm(h + y)
        write(m, y)
        return s + y

    def linear_summand(m, x):
        with torch.no_grad():  # as above: the ReLU's result is saved
            h = m.lin(x)
            s = x + h
            r = s.relu()
            write(m, h)
        return s * r + h + x

    def unheld(m, x):
        """Into something that is held by nothing, but read by what is held."""
        h = m.conv.nn(x).sin()
        with torch.no_grad():
            n = m.norm(m.lin(h))
        write(m, h)
        return n + h

    acts = (after_linear, input_of_norm, input_of_linear, result, relu_result, summand, linear_summand, unheld)
    return {act.__name__: act for act in acts}


def _added(m, h) -> None:
    h += 0.5


_WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "relu_": lambda m, h: h.relu_(), "F.relu": lambda m, h: F.relu(h, inplace=True), "+=": _added,
    "nn.ReLU": lambda m, h: nn.ReLU(inplace=True)(h), "nn.ELU": lambda m, h: nn.ELU(inplace=True)(h),
    "leaky": lambda m, h: F.leaky_relu(h, 0.1, True), "dropout": lambda m, h: m.drop(h),
}  # fmt: skip


def _eval_between(m, x):
    a = m.norm(m.lin(x))
    m.norm.eval()
    b = m.norm(m.other(x))
    m.norm.train(m.training)
    return a.relu() * b


def _eval_inside(m, x):
    m.second.eval()
    found = m.second(m.other(m.norm(m.lin(x)).relu())).relu()
    m.second.train(m.training)
    return found


def _other_order(m, x):
    a, b = m.norm(m.lin(x)), m.norm(m.other(x * 2))
    return b.relu() - a.relu()


def _thrown_away(m, x):
    m.norm(m.lin(x))
    m.norm(m.other(x)).relu()
    return m.bare(x)


def _kept(m, x):
    m.seen[:] = [m.norm(m.lin(x)), m.second(m.other(x)).relu()]
    return m.bare(x)


def _no_grad(place: int) -> Callable:
    def act(m, x):
        for i, step in enumerate((m.lin, m.norm, torch.relu, m.other)):
            with torch.set_grad_enabled(i != place):
                x = step(x)
        return m.second(x).relu()

    return act


def _autocast(place: int) -> Callable:
    """Of float32 in bfloat16, for one step; what was called outside is computed as it was called."""

    def act(m, x):
        for i, step in enumerate((m.lin, m.norm, torch.relu, m.other, m.second, torch.relu)):
            with torch.autocast(x.device.type, torch.bfloat16, enabled=i == place):
                x = step(x)
            x = x.float() if i == place else x
        return x

    return act


def _read_in_autocast(m, x):
    h = m.lin(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        return (h + 0).float() + m.norm(h).float()


def _added_in_autocast(m, x):
    h = m.lin(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        s = h + m.other(x)
    return m.norm(s + m.bare(x)).relu() + h


def _sum_in_no_grad(m, x):
    h = m.lin(x)
    with torch.no_grad():
        s = m.other(x)
        t = h + s
    return m.norm(h + s).relu() + t


def _of_tables(act: Callable[[Any, Any, list], Any]) -> Forward:
    def forward(m, bag):
        first = m.x(bag)
        second = m.norm(bag.propagate(m.conv, first)).relu()
        third = m.second(bag.propagate(m.conv, second)).relu()
        return act(m, bag, [first, second, third])

    return forward


def _softmax(m, bag, t):
    return bag.pool(bag.pool(torch.cat(t, 1), "softmax", score=m.score(t[2])), "mean")


def _columns_changed(m, bag, t):
    """After they were put beside each other."""
    first = t[0] * 2
    beside = torch.cat([first, *t[1:]], 1)
    first.mul_(3)
    return bag.pool(bag.pool(beside) + bag.pool(first)[:, :1])


def _columns_relu(m, bag, t):
    return bag.pool(bag.pool((torch.cat(t, 1) - 0.2).relu()) + bag.pool(torch.cat(t, 1).relu()))


def _columns_twice(m, bag, t):
    both = torch.cat([t[0], t[2], t[0]], 1)
    return bag.pool(bag.pool(both) + bag.pool(both * 2, "mean"))


def _shapes(m, x):
    h = m.lin(x)
    return m.norm(m.other(x)) if h.shape[1] == WIDTH and h.ndim == 2 and h.dtype.is_floating_point else h


def deep(m: Any, x: Any) -> Any:
    """More operations than Python lets functions call each other."""
    for _ in range(400):
        x = m.lin(x).relu()
    return m.second(x)


def _of_everything(m, bag, t):
    """Linears of three tables, in an order in which each may be added to, or must be gathered first."""
    one, other, third = m.lin(t[0]), m.other(t[2]), m.bare(t[1])
    return out(bag, m.norm(t[0] + other + one + third).relu())


def _joined(m, bag, t):
    one, other = bag.propagate(m.conv, t[0]), bag.spread(bag.across(t[1], "mean"))
    return bag.pool(bag.pool(torch.cat([one, other, t[1]], 1)))


def _of_layers(end: Callable[[Any, Any, Any], Any]) -> Forward:
    """Two layers, each of rows behind a norm, and of those of nodes, which are spread: ``end(m, normed, spread)``."""

    def forward(m, bag):
        h = m.x(bag)
        for norm, linear in ((m.norm, m.lin), (m.second, m.other)):
            h = end(m, norm(linear(bag.propagate(m.conv, h))), bag.spread(m.bare(bag.across(h, "mean"))))
        return out(bag, h)

    return forward


def _spread_changed(m, bag):
    """What is spread is written into after it was, and what it is spread to as well."""
    h = m.x(bag)
    seen = bag.across(h, "mean") * 1
    spread, normed = bag.spread(seen), m.norm(m.lin(bag.propagate(m.conv, h)))
    joined = (normed + spread).relu()
    seen.mul_(3)
    return out(bag, joined + bag.spread(seen))


def _spread_twice(m, bag):
    h = m.x(bag)
    spread = bag.spread(m.bare(bag.across(h, "sum")))
    one, two = m.norm(m.lin(h)), m.second(m.other(bag.propagate(m.conv, h)))
    return out(bag, (one + spread).relu() + (spread + two) * spread.relu())


def _spread_in_no_grad(m, bag):
    h = m.x(bag)
    with torch.no_grad():
        spread = bag.spread(bag.across(h, "sum"))
    return out(bag, (m.norm(m.lin(h)) + spread).relu())


CASES: dict[str, Forward] = {
    "layers": _of_layers(lambda m, n, s: (n + s).relu()), "layers without ReLU": _of_layers(lambda m, n, s: s + n),
    "layers, dropout": _of_layers(lambda m, n, s: F.dropout((n + s).relu(), 0.3, m.training)),
    "layers, dropped in place": _of_layers(lambda m, n, s: m.drop(F.dropout((n + s).relu(), 0.3, m.training)).mul_(2)),
    "layers, in place": _of_layers(lambda m, n, s: (n + s).relu_()),
    "layers, read before": _of_layers(lambda m, n, s: (n + s).relu() + n * s),
    "layers, dropped and not": _of_layers(lambda m, n, s: F.dropout(r := (n + s).relu(), 0.3, m.training) + r),
    "layers, both with a ReLU": _of_layers(lambda m, n, s: n.relu() + s.relu()),
    "layers, dropout of a norm": _of_layers(lambda m, n, s: F.dropout(n.relu(), 0.3, m.training) + s),
    "layers, subtracted": _of_layers(lambda m, n, s: (n - s).relu()),
    "spread, written into": _spread_changed, "spread, twice": _spread_twice, "spread, no_grad": _spread_in_no_grad,
    "with and without ReLU": _of_pairs(lambda m, x: (n := m.norm(m.lin(x))).relu() * 2 + n),
    "twice without ReLU": _of_pairs(lambda m, x: (n := m.norm(m.lin(x))) * n + n),
    "ReLU twice": _of_pairs(lambda m, x: (n := m.norm(m.lin(x))).relu() + n.relu() * 2),
    "ReLU of a ReLU": _of_pairs(lambda m, x: m.norm(m.lin(x)).relu().relu()),
    "a linear twice": _of_pairs(lambda m, x: m.norm(h := m.lin(x)).relu() + h.relu() + h),
    "thrown away": _of_pairs(_thrown_away), "kept and never read": _of_pairs(_kept),
    "eval between": _of_pairs(_eval_between), "eval inside": _of_pairs(_eval_inside),
    "read in another order": _of_pairs(_other_order),
    "one norm in a chain": _of_pairs(lambda m, x: m.norm(m.other(m.norm(m.lin(x)).relu())).relu()),
    "only shapes are read": _of_pairs(_shapes),
    "one weight": _of_pairs(lambda m, x: F.linear(m.norm(m.lin(x)).relu(), m.lin.weight)),
    "without a bias": _of_pairs(lambda m, x: m.second(m.bare(m.norm(m.bare(x)).relu())).relu()),
    "residual": _of_pairs(lambda m, x: m.second(m.other(r := m.norm(m.lin(x)).relu())).relu() + r + x),
    "a deep chain": _of_pairs(deep),
    "a sum of linears": _of_pairs(lambda m, x: m.norm(m.lin(x) + m.other(x * 2) + m.bare(x.sin())).relu()),
    "a sum of MLPs": _of_pairs(lambda m, x: m.norm(m.other(m.second(m.lin(x)).relu()) + x + m.bare(m.norm(x).relu())).relu()),
    "a sum and its summand": _of_pairs(lambda m, x: (s := x + (h := m.lin(x))).relu() * h + m.norm(s) + m.second(h)),
    "a linear and itself": _of_pairs(lambda m, x: m.norm((h := m.lin(x)) + h).relu() + torch.add(h, h, alpha=2)),
    "a linear and what is made of it": _of_pairs(lambda m, x: m.norm((h := m.lin(x)) + m.second(h).relu()).relu()),
    "residual linears": _of_pairs(lambda m, x: (y := (x + m.lin(x)).relu()) + m.other(y) + torch.add(other=y, input=m.bare(y))),
    "a sum in no_grad": _of_pairs(_sum_in_no_grad), "sums of columns": _of_pairs(lambda m, x: m.norm(m.lin(x) + m.score(x))),
    **{f"{what} {where}": _of_pairs(act) for what, write in _WRITES.items() for where, act in _written(write).items()},
    **{f"no_grad {place}": _of_pairs(_no_grad(place)) for place in range(4)},
    "sums of several tables": _of_tables(_of_everything),
    "a later table's linear": _of_tables(lambda m, bag, t: out(bag, m.norm(t[0] + m.lin(t[2])).relu())),
    "an earlier table's linear": _of_tables(lambda m, bag, t: out(bag, m.norm(m.lin(t[0]) + t[2]).relu() + m.other(t[0]))),
    "columns, sum": _of_tables(lambda m, bag, t: bag.pool(bag.pool(torch.cat(t, 1)))),
    "columns, mean": _of_tables(lambda m, bag, t: bag.pool(bag.pool(torch.cat(t, 1), "mean"))),
    "columns, max": _of_tables(lambda m, bag, t: bag.pool(bag.pool(torch.cat(t, 1), "max"), "max")),
    "columns, softmax": _of_tables(_softmax),
    "columns, ReLU": _of_tables(_columns_relu), "columns, twice": _of_tables(_columns_twice),
    "columns, across": _of_tables(lambda m, bag, t: bag.pool(bag.across(torch.cat(t, 1), "mean"))),
    "columns, root": _of_tables(lambda m, bag, t: bag.pool(bag.root(torch.cat(t, 1)))),
    "columns, joined": _of_tables(_joined), "columns, written into": _of_tables(_columns_changed),
    "columns of columns": _of_tables(lambda m, bag, t: bag.pool(bag.pool(torch.cat([torch.cat(t[:2], 1), t[2]], -1)))),
    "columns, linear": _of_tables(lambda m, bag, t: out(bag, F.linear(torch.cat(t[:2], 1), m.lin.weight.repeat(1, 2)).relu())),
}  # fmt: skip
AUTOCAST = {
    **{f"autocast {place}": _of_pairs(_autocast(place)) for place in range(6)},
    "read in autocast": _of_pairs(_read_in_autocast),
    "added in autocast": _of_pairs(_added_in_autocast),
}

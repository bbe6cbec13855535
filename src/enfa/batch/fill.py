"""Batches written straight into blocks.

Preparing a plan and copying it into a block touches everything twice and makes hundreds of small arrays, which costs a
worker as much as the lists themselves. The lists that make up nearly all of a block are therefore turned round inside it.
The bytes are the same, which tests compare. Plans with other parts (contexts, identities, other readouts) are prepared and
copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from enfa.batch.static.padding import Bucket, Form
from enfa.plan.arrays import Places
from enfa.plan.cut import Cut
from enfa.plan.derive import KIND_CHUNK, readouts
from enfa.plan.kernels.fill import fill_kinds, fill_map, join_base, list_bags, list_pools
from enfa.plan.kernels.order import merge_own
from enfa.plan.order import CHUNK, Lists
from enfa.plan.prepare import Needs
from enfa.plan.table import Plan, Readout

__all__ = ["Block", "Filler"]

_LINKS = {"merged", "merged kinds", "kinds"}


@dataclass(frozen=True)
class Block:
    """What :func:`fill_map` writes of each map: the arrays of its forward and of its backward lists."""

    bucket: Bucket
    arrays: list[np.ndarray]
    merged: list[list[Any]]  # by layer
    kinds: list[list[Any]]
    pooled: list[list[Any]]  # by table
    pool: list[Any]
    bag: list[Any]


class Filler:
    """Writes plans of one form into blocks. Keeps scratch: every process has its own."""

    def __init__(self, form: Form, needs: Needs) -> None:
        plan, self.form, self.tables = form.plan, form, needs.tables
        number = {id(t): k for k, t in enumerate(plan.tensors())}

        def places(lists: Lists) -> list[int | None]:
            """Which arrays of a block are its own."""
            held = (lists.ptr, lists.index, lists.weight, lists.other, lists.extra, lists.long)
            return [None if t is None else number.pop(id(t)) for t in held]

        links = [layer.links.cache for layer in plan.layers]
        merged = [cache.get("merged") or cache["merged kinds"] for cache in links]
        pooled = [readout.cache["rows"] for readout in plan.cache.get("readouts", [plan.readout])]
        self._merged, self._pooled = (
            [(places(m.forward), places(m.backward)) for m in maps] for maps in (merged, pooled)
        )
        small = plan.readout.cache["pool"], plan.readout.cache["bag"]
        self._pool, self._bag = ((places(m.forward), places(m.backward)) for m in small)
        self._kinds = [places(cache["kinds"]) for cache in links if "kinds" in cache]
        self._rest, self._rest_of = list(number.values()), Places(plan, set(number))
        # the number of pieces of long lists is known when they have been turned round
        self._known = np.array([not name.endswith((" pieces", " long")) for name in form.names])
        self._of = np.empty(0, np.int32)

    @staticmethod
    def takes(plan: Plan, needs: Needs) -> bool:
        """Whether a plan, and so all of its form, has only parts that can be written straight into blocks."""
        return (
            plan.spec.context is None and plan.spec.output == "graph" and plan.readout.base_row is not None
            and all(layer.source is None for layer in plan.layers)
            and needs.pool in ("sum", "mean") and not needs.previous and not needs.identities
            and needs.links <= _LINKS and len(needs.links & {"merged", "merged kinds"}) == 1
        )  # fmt: skip

    @staticmethod
    def _sizes(plan: Plan) -> dict[str, int]:
        """By name, what is known of a plan without its maps."""
        sub_base, subs = plan.readout.sub_base, len(plan.readout.sub_delta)
        with_base = subs if sub_base is None else int((sub_base < plan.num_graphs).sum())
        sizes = {"features": len(plan.x), "rows 0": len(plan.feature), "subgraphs": subs, "pairs": subs + with_base}
        sizes["sums"] = len(plan.readout.delta.ptr) - 1 + plan.num_graphs
        return sizes

    @staticmethod
    def _plan_sizes(plan: Plan, tables: Sequence[Readout]) -> dict[str, int]:
        """By name, what is known of a sliced plan."""
        base, sizes = plan.readout.base_row, Filler._sizes(plan)
        assert base is not None
        for i, layer in enumerate(plan.layers, 1):
            rows, messages = layer.num_rows, len(layer.links.in_row)
            sizes |= {f"rows {i}": rows, f"rows {i} messages": messages, f"rows {i} merged": rows + messages}
        for i, readout in zip(range(len(plan.layers), 0, -1), reversed(tables)):
            sizes[f"rows {i} pooled"] = len(readout.delta.row) + len(base)
        return sizes

    @staticmethod
    def _cut_sizes(cut: Cut) -> dict[str, int]:
        """By name, what is known of a batch that has been cut."""
        sizes, counts = Filler._sizes(cut.plan), [join.rows.count for join in cut.layers[1:] + cut.pools[-1:]]
        for i, (join, rows) in enumerate(zip(cut.layers, counts), 1):
            sizes |= {f"rows {i}": rows, f"rows {i} messages": join.entries - rows, f"rows {i} merged": join.entries}
        for i, join in zip(range(len(cut.layers), 0, -1), reversed(cut.pools)):
            sizes[f"rows {i} pooled"] = join.entries
        return sizes

    def block(self, bucket: Bucket, arrays: list[np.ndarray]) -> Block:
        """A bucket's arrays in some block, put together as they will be written."""

        def lists(places: list[int | None]) -> list[Any]:
            """The arrays of some lists, and what pads their index."""
            return [*(None if k is None else arrays[k] for k in places), bucket.parts[places[1] or 0].fill]

        def maps(found: list[tuple[list[int | None], list[int | None]]]) -> list[list[Any]]:
            return [lists(forward) + lists(backward) for forward, backward in found]

        kinds = [[*lists(places), bucket.parts[places[3] or 0].fill] for places in self._kinds]
        return Block(bucket, arrays, maps(self._merged), kinds, maps(self._pooled), *maps([self._pool, self._bag]))

    def fill(self, batch: Plan | Cut, blocks: Iterable[Block]) -> int | None:
        """Write a sliced plan, or a cut, into the first of some blocks that holds it, and say which; None: none does."""
        tables: Sequence[Readout] = ()
        if isinstance(batch, Cut):
            sizes = self._cut_sizes(batch)
        else:
            tables = readouts(batch) if self.tables else [batch.readout]
            sizes = self._plan_sizes(batch, tables)
        least = self.form.with_spare([sizes[n] if known else 0 for n, known in zip(self.form.names, self._known)])
        entries = max(sizes.values()) + 8
        if len(self._of) < entries:
            self._of = np.empty(entries, np.int32)
        for n, block in enumerate(blocks):
            if (least <= block.bucket.sizes)[self._known].all():
                if isinstance(batch, Cut):
                    fits = self._write_cut(batch, block) and self._write_rest(batch.plan, block)
                else:
                    fits = self._write(batch, tables, block) and self._write_rest(batch, block)
                if fits:
                    return n
        return None

    def _write_cut(self, cut: Cut, block: Block) -> bool:
        fits = True
        for join, into in zip(cut.layers + cut.pools, block.merged + block.pooled):
            fits &= join.write(self._of, into)
        return fits

    def _write(self, plan: Plan, tables: Sequence[Readout], block: Block) -> bool:
        rows, fits = len(plan.feature), True
        for layer, into in zip(plan.layers, block.merged):
            links = layer.links
            raw = [t.numpy() for t in (links.self_row, links.in_ptr, links.in_row, links.in_edge)]
            merge_own(*raw, into[0], into[1], into[3])
            count = len(raw[0])
            fits &= fill_map(count, count + len(raw[2]), rows, CHUNK, self._of, *into)
            rows = count
        for layer, (ptr, index, _, *more) in zip(plan.layers, block.kinds):
            raw = [t.numpy() for t in (layer.links.in_ptr, layer.links.in_row, layer.links.in_edge)]
            fits &= fill_kinds(KIND_CHUNK, self._of, *raw, ptr, index, *more)
        assert plan.readout.base_graph is not None
        graph = plan.readout.base_graph.numpy()
        for layer, readout, into in zip(plan.layers[::-1], tables[::-1], block.pooled[::-1]):
            base = readout.base_row
            assert base is not None
            raw = [t.numpy() for t in (readout.delta.ptr, readout.delta.row, readout.delta.count, base)]
            join_base(*raw, graph, plan.num_graphs, *into[:3])
            count, entries = len(raw[0]) - 1 + plan.num_graphs, len(raw[1]) + len(raw[3])
            fits &= fill_map(count, entries, layer.num_rows, CHUNK, self._of, *into)
        return fits

    def _write_rest(self, plan: Plan, block: Block) -> bool:
        fits, bucket = self._pools(plan, block), block.bucket
        rest = self._rest_of.tensors(plan)
        if not fits or rest is None or not all(bucket.parts[k].holds(t) for k, t in zip(self._rest, rest)):
            return False
        bucket.write(rest, block.arrays, self._rest)
        return True

    def _pools(self, plan: Plan, block: Block) -> bool:
        readout, graphs = plan.readout, plan.num_graphs
        delta, graph = readout.sub_delta.numpy(), readout.sub_graph.numpy()
        base = graph if readout.sub_base is None else readout.sub_base.numpy()
        deltas, subs = len(readout.delta.ptr) - 1, len(delta)
        entries = list_pools(delta, base, deltas, graphs, *block.pool[:2])
        fits = fill_map(subs, entries, deltas + graphs, CHUNK, self._of, *block.pool)
        list_bags(graph, *block.bag[:2])
        return fits & fill_map(graphs, subs, subs, CHUNK, self._of, *block.bag)

"""The page "How it works": a molecule's bag, layer by layer, with the rows that are shared.

The package draws the bag as SVG; a few lines of JavaScript put each table's row numbers and colours into it.
"""

import json
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from enfa.report.picture import molecule
from enfa.report.pictures.sharing import Sharing, sharing_of
from enfa.report.program import ds_program
from enfa.report.settings import POLICIES

__all__ = ["how_it_works_data", "how_it_works_html"]

LAYERS = 4
UNIT, RADIUS, MARGIN = 30.0, 11.0, 17.0  # pixels: a bond, an atom, around a molecule
ELEMENTS = ("C", "O")
VERBS = {"node marking": "marked", "node deletion": "deleted", "edge deletion": "deleted"}


def _policy_data(sharing: Sharing) -> dict[str, Any]:
    base = sharing.base.tolist()
    rows = sharing.rows.tolist()
    for layer, count in enumerate(sharing.distinct):
        classes = {r for of in rows[layer] for r in of if r >= 0}
        if len(classes) != count:
            raise ValueError(f"Expected {count} distinct rows in table {layer} of the plan, got {len(classes)} classes")
    reached = (sharing.rows != sharing.base[:, None, :]) & (sharing.rows >= 0)
    return {
        "base": base,
        "rows": rows,
        "mark": sharing.node_mark.tolist(),
        "edge": sharing.edge_value.tolist(),
        "conventional": sharing.conventional,
        "reached": reached.sum((1, 2)).tolist(),
        "distinct": sharing.distinct,
    }


def how_it_works_data(layers: int = LAYERS) -> dict[str, Any]:
    """Row numbers of every (subgraph, atom) after every layer, by policy; as the distinct plan counts them."""
    graph, place = molecule()
    policies = {}
    for name, policy in POLICIES.items():
        sharing = sharing_of(graph, policy(), ds_program(layers))
        policies[name] = _policy_data(sharing)
    return {
        "layers": layers,
        "element": [ELEMENTS[i] for i in graph.x[:, 0].tolist()],
        "edges": sharing.edges.tolist(),
        "place": place.round(3).tolist(),
        "policies": policies,
    }


def _molecule_svg(data: dict[str, Any], policy: str, subgraph: int) -> str:
    """One subgraph; -1 is the unedited molecule. Atoms carry their place in the data."""
    place = np.array(data["place"])
    place = (place - place.min(0)) * UNIT + MARGIN
    width, height = place.max(0) + MARGIN
    place[:, 1] = height - place[:, 1]
    of = data["policies"][policy]
    parts = []
    for k, (a, b) in enumerate(zip(*data["edges"])):
        if a > b:
            continue
        gone = subgraph >= 0 and of["edge"][subgraph][k] < 0
        (x1, y1), (x2, y2) = place[a], place[b]
        kind = "bond gone" if gone else "bond"
        parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    for v, (x, y) in enumerate(place):
        at = f'transform="translate({x:.1f} {y:.1f})"'
        if subgraph >= 0 and of["rows"][0][subgraph][v] < 0:
            parts.append(f'<circle class="hole" {at} r="3"/>')
            continue
        marked = subgraph >= 0 and of["mark"][subgraph][v] > 0
        ring = f'<circle class="mark" r="{RADIUS + 3.5}"/>' if marked else ""
        # the numbers of table 0, for readers without scripts
        row = of["base"][0][v] if subgraph < 0 else of["rows"][0][subgraph][v]
        parts.append(f'<g class="row" data-s="{subgraph}" data-v="{v}" {at}>{ring}<circle r="{RADIUS}"/><text>{row}</text></g>')
    name = "unedited molecule" if subgraph < 0 else _edit_name(data, policy, subgraph)
    return (
        f'<figure><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(name)}">'
        f"{''.join(parts)}</svg><figcaption>{escape(name)}</figcaption></figure>"
    )


def _edit_name(data: dict[str, Any], policy: str, subgraph: int) -> str:
    of = data["policies"][policy]
    gone = [v for v, row in enumerate(of["rows"][0][subgraph]) if row < 0]
    marked = [v for v, value in enumerate(of["mark"][subgraph]) if value > 0]
    cut = sorted({tuple(sorted((a, b))) for (a, b, e) in zip(*data["edges"], of["edge"][subgraph]) if e < 0})
    if marked or gone:
        atom = (marked or gone)[0]
        return f"{data['element'][atom]}{atom + 1} {VERBS[policy]}"
    return f"bond {cut[0][0] + 1}–{cut[0][1] + 1} {VERBS[policy]}"


def how_it_works_html(data: dict[str, Any]) -> str:
    """The section's inside: buttons, counters, the bag of every policy, the data, the script."""
    policies = list(data["policies"])
    choose = "".join(
        f'<button type="button" data-policy="{p}" aria-pressed="{str(p == policies[0]).lower()}">{p}</button>' for p in policies
    )
    layers = "".join(
        f'<button type="button" data-layer="{i}" aria-pressed="{str(i == 0).lower()}">'
        f"{'input' if i == 0 else f'<span>layer </span>{i}'}</button>"
        for i in range(data["layers"] + 1)
    )
    bags = "".join(
        f'<div class="bag" data-policy="{p}"{"" if p == policies[0] else " hidden"}>'
        + "".join(_molecule_svg(data, p, s) for s in range(-1, len(of["rows"][0])))
        + "</div>"
        for p, of in data["policies"].items()
    )
    assets = files("enfa.report") / "assets"
    text = (assets / "how_it_works.html").read_text()
    script = (assets / "how_it_works.js").read_text()
    for name, value in (("choose", choose), ("layers", layers), ("bags", bags), ("data", json.dumps(data)),
                        ("script", script)):  # fmt: skip
        text = text.replace(f"<!--{name}-->", value)
    return text

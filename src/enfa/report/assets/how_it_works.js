"use strict";
(() => {
  const root = document.getElementById("how");
  const data = JSON.parse(document.getElementById("how-data").textContent);
  const all = (selector) => [...root.querySelectorAll(selector)];
  let policy = Object.keys(data.policies)[0], layer = 0, chosen = null;

  // Row number of atom v in subgraph s after a layer; s = -1 is the unedited molecule.
  const rowOf = (at, s, v) => {
    const of = data.policies[policy];
    return s < 0 ? of.base[at][v] : of.rows[at][s][v];
  };

  const neighbours = (s, v) => data.edges[1].flatMap((target, k) => {
    const there = s < 0 || data.policies[policy].edge[s][k] >= 0;
    return target === v && there ? [data.edges[0][k]] : [];
  });

  const bar = (name, count, total, kind) =>
    `<div><span>${name}</span><i class="${kind}" style="width:${(100 * count) / total}%"></i><b>${count}</b></div>`;

  function tell() {
    const of = data.policies[policy], reached = of.reached[layer], total = of.conventional;
    const seen = layer === 0
      ? "Before the first layer a row is an atom's element and its mark."
      : `After layer ${layer} a row has seen what lies up to ${layer} bond${layer > 1 ? "s" : ""} away.`;
    const edit = reached === 0
      ? "No row differs from the unedited molecule's yet."
      : `The edit has reached ${reached} of ${total} rows; all others equal the unedited molecule's.`;
    document.getElementById("how-text").textContent =
      `${seen} ${edit} Only ${of.distinct[layer]} rows are different from each other: these are computed, once each.`;
    document.getElementById("how-bars").innerHTML =
      bar("conventional", total, total, "full") + bar("reached by the edit", reached, total, "ego") +
      bar("distinct", of.distinct[layer], total, "distinct");
  }

  function paint() {
    const base = new Set(data.policies[policy].base[layer]), met = new Set();
    for (const bag of all(".bag")) bag.hidden = bag.dataset.policy !== policy;
    for (const g of all(`.bag[data-policy="${policy}"] .row`)) {
      const s = +g.dataset.s, row = rowOf(layer, s, +g.dataset.v);
      const kind = !met.has(row) ? "new" : base.has(row) ? "base" : "again";
      met.add(row);
      const dim = chosen !== null && row !== chosen;
      g.setAttribute("class", `row ${kind}${dim ? " dim" : ""}${chosen === row ? " same" : ""}`);
      g.querySelector("text").textContent = row;
    }
    for (const b of all("[data-policy]")) if (b.tagName === "BUTTON") b.setAttribute("aria-pressed", b.dataset.policy === policy);
    for (const b of all("[data-layer]")) b.setAttribute("aria-pressed", +b.dataset.layer === layer);
    document.getElementById("how-back").disabled = layer === 0;
    document.getElementById("how-on").disabled = layer === data.layers;
    tell();
  }

  function choose(g) {
    const s = +g.dataset.s, v = +g.dataset.v, row = rowOf(layer, s, v);
    chosen = chosen === row ? null : row;
    const line = document.getElementById("how-row");
    if (chosen === null) {
      line.textContent = "Choose an atom to see all rows that equal it, and what it is made of.";
    } else {
      const of = data.policies[policy];
      const copies = of.rows[layer].flat().filter((r) => r === row).length;
      const made = layer === 0
        ? `it is ${data.element[v] === "O" ? "an oxygen" : "a carbon"}${s >= 0 && of.mark[s][v] > 0 ? " with a mark" : ""}`
        : `made of row ${rowOf(layer - 1, s, v)} of the table before, and of rows ` +
          (neighbours(s, v).map((u) => rowOf(layer - 1, s, u)).sort((a, b) => a - b).join(", ") || "none") + " of its neighbours";
      line.textContent = `Row ${row}: ${made}. It stands for ${copies} of the bag's rows.`;
    }
    paint();
  }

  const go = (to) => { layer = Math.max(0, Math.min(data.layers, to)); chosen = null; paint(); };
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button"), g = event.target.closest(".row");
    if (g) choose(g);
    else if (!button) return;
    else if (button.id === "how-back") go(layer - 1);
    else if (button.id === "how-on") go(layer + 1);
    else if (button.dataset.layer) go(+button.dataset.layer);
    else if (button.dataset.policy) { policy = button.dataset.policy; chosen = null; paint(); }
  });
  go(0);
})();

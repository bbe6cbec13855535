"""Write docs/gpu.md from results/gpu: ``python benchmarks/gpu_table.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpu_parts.trainings import started, table, trained, whole

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# Training steps on a GPU

Generated from `results/gpu` by `python benchmarks/gpu_table.py`; measured by `benchmarks/gpu.py`, whose help says how to
run it. {device}, torch {torch}, CUDA {cuda}, {date}. A step is forward, loss, backward and Adam in float32, median of
many by CUDA events, on `numpy.random.RandomState(0).permutation(len)[:batch]` of each dataset. The models: GIN, width
32, JK concat, 4 layers on PROTEINS and 5 on CEXP; GINE, width 300, 5 layers on molhiv and moltox21; GINE, width 128, 4
layers on peptides-func.

*Eager*: every kernel is launched from Python, which takes longer than most of them run and depends
on the host. *Captured*: the whole step is recorded once as a CUDA graph and replayed, and the gradients of
wide weights are computed on a second stream, beside the chain of layers. Eager steps, conventional ones too, run on this
package's kernels; torch.compile is measured on PyTorch's own operators, of which it fuses the elementwise ones, but not
the sums over neighbours, which make up most of a conventional GINE step. *bfloat16*: under autocast rows are stored in
bfloat16 between layers, and multiplied once on the tensor cores, where float32's accuracy takes three products; weights,
their gradients and all statistics stay float32. It rounds, and is not exact (errors below). A dash: not measured.{earlier}

How to get it: `enfa train` captures steps as CUDA graphs by itself (`graphed: auto`, see [training](training.md)); in
code of your own `enfa.Step` does, and a plain loop captures all but the optimiser (below). TF32:
`torch.set_float32_matmul_precision("high")`; bfloat16: `precision: bf16`, or `enfa.Step(..., autocast=torch.bfloat16)`.

## A loop of your own

<!-- not run: it needs a GPU; examples/gpu_loop.py is run without one -->
```python
loader = enfa.DataLoader(compiled, 128, shuffle=True, device="cuda")
for batch in loader:
    optimiser.zero_grad()
    loss = F.cross_entropy(model(batch), batch.y)
    loss.backward()
    optimiser.step()
```

Told of a device, the loader pads batches to a few sizes (buckets), which its worker processes write into pinned memory, and
copies one while the one before is computed. `model(batch)` then replays a CUDA graph of the forward pass, and `backward` one
of the backward pass: a bucket's first batch runs eagerly, its second is captured. Models of this package, and lifted ones, do
it by themselves; `enfa.captured(model)` makes any other module do it, with the same parameters, names and mode. Outputs are
copies, gradients arrive in `.grad` as ever: clipping, accumulation, `torch.autocast`, schedules, averaged weights, several
losses, `retain_graph` and two calls before a backward pass give what the eager loop gives, dropout masks included
(tests/nn/cuda/test_loop.py compares a dozen steps of each). [examples/gpu_loop.py](../examples/gpu_loop.py) runs on a CPU,
too, eagerly.

Small models wait for Python. `torch.autograd.set_multithreading_enabled(False)`, before the loop, keeps backward passes in the
thread that asks for them, instead of one that PyTorch wakes up for every step, which is enough where a process trains on one
GPU. What it gains depends on the host and the model (below): try it.

- Training and evaluation mode, `no_grad`, autocast and every state of the module (frozen parameters, a dropout
  probability) have graphs of their own; a parameter that lies elsewhere than it did is noticed, and the model captured again.
- What cannot be captured runs eagerly, with one warning that says why: hooks, a forward that changes attributes of its module
  or waits for the GPU, `bag.each`, `max_rows` and `draw` of a loader, features that need gradients, checkpointing. A model
  that reads numbers of nodes wants `pad=False`. `with enfa.eagerly():` captures nothing.
- A second backward pass needs `retain_graph`, as ever, and must come before the next call; up to four calls may wait for
  their first one, a fifth runs eagerly. Gradients of gradients are refused.
- `enfa.Step(model, optimiser, loss, clip_norm=..., autocast=...)` captures the optimiser, too: `loss = step(batch)`. Rates of
  schedules are tensors that change in place. Under `DistributedDataParallel` it captures the reductions of gradients with the
  rest; the loop leaves them to DistributedDataParallel. Give every process its part: `DataLoader(..., shard=(rank, ranks))`.
"""
NAMES = {
    "full": "conventional, eager", "full compiled": "conventional, torch.compile", "ego": "ego, eager",
    "distinct eager": "distinct, eager", "distinct graphed": "**distinct, captured**",
    "distinct graphed tf32": "distinct, captured, TF32", "distinct graphed bf16": "distinct, captured, bfloat16",
}  # fmt: skip


def _ms(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    if "ms" not in row:
        return row.get("skipped") or "failed"
    return f"{row['ms']:.3g}"


def steps(found: dict[str, Any]) -> list[str]:
    rows = {(r["case"], r["batch"], r["policy"], r["variant"]): r for r in found["rows"]}
    cases = list(dict.fromkeys(r["case"] for r in found["rows"]))
    limits = found["ceilings"]
    lines = ["## Milliseconds per step, node marking, batch 128", ""]
    lines += table(
        ["", *cases],
        [[name, *(_ms(rows.get((c, 128, "marking", v))) for c in cases)] for v, name in NAMES.items()],
    )
    lines += ["## Peak memory, MB, node marking, batch 128", ""]
    wanted = ("full", "ego", "distinct graphed", "distinct graphed bf16")
    lines += table(
        ["", *cases],
        [
            [NAMES[v]] + [f"{r['peak_bytes'] / 1e6:,.0f}" if (r := rows.get((c, 128, "marking", v), {})).get("ms") else "–"
                          for c in cases]
            for v in wanted
        ],
    )  # fmt: skip
    lines += [
        "## Distinct, captured, against the hardware's floor",
        "",
        "The floor is the larger of two times: the bytes that a step must move over the measured bandwidth of a copy "
        f"({limits['copy_bytes_per_s'] / 1e12:.2f} TB/s), and its products over the measured rate of a large float32 "
        f"matrix product ({limits['fp32_flop_per_s'] / 1e12:.1f} TFLOP/s). Wide layers go past that rate: their float32 "
        "products are three float16 ones each, on the tensor cores. The last row has the floor that this would allow, "
        f"with a third of bfloat16's measured rate ({limits['bf16_flop_per_s'] / 3e12:.0f} TFLOP/s).",
        "",
    ]
    body = []
    for batch in (32, 128, 512):
        for policy in ("marking", "edge deletion"):
            each = [rows.get((c, batch, policy, "distinct graphed"), {}) for c in cases]
            cells = [f"{r['ms']:.3g} ({r['ratio']:.3g}×)" if "ms" in r else "–" for r in each]
            if any(c != "–" for c in cells):
                body.append([f"batch {batch}, {policy}", *cells])
    each = [rows[c, 512, "marking", "distinct graphed"] for c in cases]
    floors = [max(r["move_ms"], 3e3 * r["flop"] / limits["bf16_flop_per_s"]) for r in each]
    body.append(["batch 512, marking, lower floor", *(f"({r['ms'] / low:.3g}×)" for r, low in zip(each, floors))])
    return lines + table(["ms (× floor)", *cases], body)


def errors(found: dict[str, Any], cases: list[str]) -> list[str]:
    """``cases``: all that there are."""
    wanted = {
        "float64 distinct, kernels": "float64", "float32 distinct, kernels": "float32",
        "float32 full, plain": "float32, conventional", "tf32 distinct": "TF32", "bf16 distinct": "bfloat16",
    }  # fmt: skip
    lines = [
        "## Errors",
        "",
        "One training step on eight graphs against the conventional plan in float64 with plain PyTorch operators: the "
        "largest difference of any entry of outputs, gradients and buffers, relative to the largest entry among its kind. "
        "Single large numbers come where rounding decides on which side of a ReLU's kink a row lies that stands for many.",
        "",
    ]
    rows = []
    for name, result in found.items():
        if isinstance(result, dict):
            rows.append([name, *(f"{result[k][0]:.1g}" if k in result else "–" for k in wanted)])
    lines += table(["", *wanted.values()], rows)
    good = [r for r in found.values() if isinstance(r, dict)]
    bits = ("same bits", "graphed steps equal eager ones, bit for bit", "graphed steps repeat, bit for bit")
    counts = [sum(bool(r.get(b)) for r in good) for b in bits]
    missing = [name for case in cases for policy in ("marking", "edge deletion") if (name := f"{case}, {policy}") not in found]
    unmeasured = f" Not measured: {'; '.join(missing)}." if missing else ""
    return [
        *lines,
        f"{counts[0]} of {len(good)} cases gave the same bits when run twice; captured steps equalled eager ones bit for "
        f"bit in {counts[1]} and repeated bit for bit in {counts[2]}.{unmeasured}",
        "",
    ]


def epochs(found: list[dict[str, Any]], note: str) -> list[str]:
    lines = [
        "## Epochs, end to end",
        "",
        "Shuffled, node marking: batches cut and padded by worker processes, moved, and stepped through, against the sum "
        "of the same steps on batches that are on the GPU already. Batches are padded to a few sizes, the buckets, so that "
        "few steps have to be captured; the spare one takes batches that fit into no other. Epochs end after 60 batches.",
        "",
    ]
    found = [r for r in found if "ratio" in r]
    lines[2] += (
        " Times are means over epochs in which every step was replayed, once the batches that workers had kept ready were "
        f"used up; {sum(r['left_out'] for r in found)} epochs in which a step ran eagerly or was captured are left out.{note}"
    )
    rows = [
        [r["case"], str(r["batch"]), str(r["batches"]), f"{r['epoch_ms_per_step']:.3g}",
         f"{r['steps_ms'] / r['replayed']:.3g}", f"{r['ratio']:.2f}", str(r["workers"]), r["buckets"]]
        for r in found
    ]  # fmt: skip
    head = ["", "batch", "steps", "ms per step, epoch", "ms per step alone", "ratio", "workers", "padding"]
    return lines + table(head, rows)


def loops(found: dict[str, Any], cases: list[str]) -> list[str]:
    """``cases``: all that there are."""
    rows = [r for r in found["results"] if "ratio" in r]
    missing = [c for c in cases if c not in {r["case"] for r in rows}]
    notes = [found["about"].get("note", ""), f"Not measured: {', '.join(missing)}." if missing else ""]
    lines = [
        "## The loop, with data",
        "",
        f"Measured by `benchmarks/gpu_loop.py`, {found['about']['date'][:10]}: milliseconds per step of shuffled epochs, node "
        f"marking, batch {rows[0]['batch']}, data included, of the loop above with a fused Adam; of `enfa.Step` on the same "
        "loader; and of the loop under `enfa.eagerly()`. Where steps are short, Python takes longer "
        "than the GPU. Epochs in which a step was captured or ran eagerly are left out."
        + "".join(f" {note}" for note in notes if note),
        "",
    ]
    body = [
        [name, *(f"{r[key]['ms']:.3g}" if key in r else "–" for r in rows)]
        for key, name in (
            ("eager", "the loop, eager"), ("loop", "**the loop**"), ("one_thread", "the loop, backward in one thread"),
            ("captured", "`enfa.Step`"),
        )
    ]  # fmt: skip
    body.append(["the loop / `enfa.Step`", *(f"{r['ratio']:.2f}" for r in rows)])
    return lines + table(["", *(r["case"] for r in rows)], body)


def page(folder: Path) -> str:
    files = {p.stem: json.loads(p.read_text()) for p in folder.glob("*.json")}
    about = {**files["steps"]["about"]}
    about["date"] = about["date"][:10]
    others = {(r["variant"], r["policy"]) for r in files["steps"]["results"]["rows"] if r.get("code") != about.get("code")}
    every = {(r["variant"], r["policy"]) for r in files["steps"]["results"]["rows"]}
    old = []
    for variant, name in NAMES.items():
        there = [policy for of, policy in sorted(every) if of == variant]
        earlier = [policy for policy in there if (variant, policy) in others]
        if earlier:
            old.append(name.strip("*") + (f" ({', '.join(earlier)})" if len(earlier) < len(there) else ""))
    about["earlier"] = f"\nMeasured earlier than the rest, with other code: {'; '.join(old)}." if old else ""
    cases = list(dict.fromkeys(r["case"] for r in files["steps"]["results"]["rows"]))
    lines = [HEAD.format(**about), *steps(files["steps"]["results"]), *errors(files["check"]["results"], cases)]
    if "loop" in files:
        lines += loops(files["loop"], cases)
    if "epoch" in files:
        older = files["epoch"]["about"].get("code") != about.get("code")
        lines += epochs(files["epoch"]["results"], " Measured earlier than the steps above, with other code." * older)
    if (folder / "trained").is_dir():
        lines += trained(folder / "trained")
    lines += [line for name, part in (("start", started), ("whole", whole)) if name in files for line in part(files[name])]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "gpu.md").write_text(page(ROOT / "results" / "gpu"))

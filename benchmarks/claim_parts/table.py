"""The table of claims. A number that is measured again changes in its file, and then here nothing does."""

from __future__ import annotations

from claim_parts import numbers
from claim_parts.kinds import ROOT, Given, Made, Said

CPU, GPU = "results/cpu", "results/gpu"
PEERS = [f"{GPU}/peers.json"] * (ROOT / GPU / "peers.json").exists()


MADE = [
    Made(
        "README.md",
        "what it saves",
        "benchmarks/step.py --sample both, peers.py, whole.py; then benchmarks/readme.py",
        (
            f"{CPU}/step.json",
            f"{GPU}/whole.json",
            "docs/report-gpu/results/time.json",
            *PEERS,
        ),
        "tests/test_readme.py",
        "<!-- figures: benchmarks/readme.py -->",
        "<!-- end of figures -->",
    ),
    Made(
        "docs/figures.md",
        "all but its end",
        "benchmarks/step.py --sample both, compile.py, gpu.py, gpu_loop.py, peers.py, whole.py; then benchmarks/readme.py",
        (
            f"{CPU}/step.json",
            f"{CPU}/compile.json",
            f"{GPU}/steps.json",
            f"{GPU}/loop.json",
            f"{GPU}/whole.json",
            "docs/report-gpu/results/time.json",
            *PEERS,
        ),
        "tests/test_readme.py",
        "<!-- figures: benchmarks/readme.py -->",
        "<!-- end of figures -->",
    ),
    Made(
        "docs/gpu.md",
        "the page",
        "benchmarks/gpu.py --only check,steps,epoch, benchmarks/gpu_loop.py, benchmarks/accuracy.py ZINC-sswl-nmd "
        "accelerator=gpu --jobs 1 --results results/gpu/trained (and with precision=bf16), benchmarks/start.py, "
        "benchmarks/whole.py; then benchmarks/gpu_table.py",
        (
            *(f"{GPU}/{name}.json" for name in ("steps", "check", "epoch", "loop", "start", "whole")),
            f"{GPU}/trained/*.json",
        ),
        "tests/benchmarks/test_gpu_table.py",
    ),
    Made(
        "docs/results.md",
        "the page",
        "benchmarks/accuracy.py folds molecules dss, enfa train; then enfa table --out docs/results.md",
        ("results/*.json",),
        "tests/docs/test_claims.py",
    ),
    Made(
        "docs/policies.md",
        "rows by policy",
        "benchmarks/policies.py PROTEINS EXP ogbg-moltox21 --write",
        (f"{CPU}/policies.json",),
        "tests/benchmarks/test_scaling.py",
        "<!-- figures: benchmarks/policies.py -->",
        "<!-- end of figures -->",
    ),
    Made(
        "docs/policies.md",
        "large graphs",
        "benchmarks/scaling.py",
        (f"{CPU}/scaling.json",),
        "tests/benchmarks/test_scaling.py",
        "<!-- figures: benchmarks/scaling.py -->",
        "<!-- end of figures -->",
    ),
    Made(
        "docs/power.md",
        "BREC and SR25",
        "benchmarks/power.py",
        (f"{CPU}/power.json",),
        "tests/benchmarks/test_power.py",
        "<!-- table -->",
        "<!-- end -->",
    ),
    Made(
        "docs/power.md",
        "trained on BREC",
        "enfa brec ... --out",
        (f"{CPU}/brec-dss-nm.json", f"{CPU}/brec-ds-ed.json"),
        "tests/benchmarks/test_power.py",
        "<!-- trained -->",
        "<!-- end -->",
    ),
    Made(
        "docs/scale.md",
        "compiling ZINC-full and millions",
        "benchmarks/scale.py, benchmarks/scale.py --millions",
        (f"{CPU}/scale.json",),
        "tests/benchmarks/test_scale.py",
        "| ZINC-full |",
        "\n\n",
    ),
    Made(
        "docs/scale.md",
        "order of graphs",
        "benchmarks/scale_orders.py",
        (f"{CPU}/scale_orders.json",),
        "tests/docs/test_claims.py",
        "<!-- mixing: benchmarks/scale_orders.py -->",
        "<!-- end -->",
    ),
    Made(
        "docs/scale.md",
        "sizes of shards",
        "enfa inspect ZINC --layers 6 --shards --json > results/cpu/shards.json",
        (f"{CPU}/shards.json",),
        "tests/docs/test_claims.py",
        "<!-- sizes: benchmarks/scale_orders.py -->",
        "<!-- end -->",
    ),
    Made(
        "docs/scale.md",
        "sorted graphs",
        "benchmarks/scale_orders.py",
        (f"{CPU}/scale_orders.json",),
        "tests/docs/test_claims.py",
        "<!-- sorted: benchmarks/scale_orders.py -->",
        "<!-- end -->",
    ),
    Made(
        "docs/report/report.md",
        "the page",
        "enfa reproduce --quick --out docs/report",
        ("docs/report/results/*.json",),
        "tests/docs/test_claims.py",
    ),
    Made(
        "docs/report-gpu/report.md",
        "the page",
        "enfa reproduce --device cuda --out docs/report-gpu",
        ("docs/report-gpu/results/*.json",),
        "tests/docs/test_claims.py",
    ),
]

SAID = [
    Said(
        "README.md",
        "with copied weights (float64, training, the largest difference of outputs and gradients: {})",
        "benchmarks/peers.py",
        f"{CPU}/peers.json",
        numbers.apart,
    ),
    Said(
        "docs/figures.md",
        "step is {}× faster at best, and {}× in the median of {} settings",
        "enfa reproduce --quick",
        "docs/report/report.md",
        numbers.quick,
    ),
    Said(
        "docs/training.md",
        "of five datasets are {} to {} times as fast with it",
        "benchmarks/memory.py",
        f"{CPU}/memory.json",
        numbers.kept,
    ),
    Said("docs/convs.md", "{} convs are exact, {} are refused", "benchmarks/convs.py", "docs/convs.md", numbers.convs),
    Said(
        "docs/exactness.md",
        "[{} of PyG's convs](convs.md) are exact",
        "benchmarks/convs.py",
        "docs/convs.md",
        lambda t: numbers.convs(t)[:1],
    ),
    Said(
        "docs/exactness.md",
        "a rate of 0.5 has {}% ROC-AUC, with masks for copies {}%, a rate of 0.2 has {}%, and none {}%",
        "benchmarks/accuracy.py ogbg-moltox21-ds-ed --seeds 0-4, with dropout=0.5, 0.2, and plan=full independent_dropout",
        "docs/results.md",
        numbers.dropout,
    ),
    Said(
        "docs/policies.md",
        "on the first 1,000 graphs of PROTEINS {} million instead of {}, which take {} s of CPU time to compile instead of {}",
        "benchmarks/policies.py",
        f"{CPU}/policies.json",
        numbers.policies,
    ),
    Said(
        "docs/policies.md",
        "one row per edge and node, {} million. Most of the peak is the forward pass: the four tensors of width "
        "32 that layer 1 keeps for the gradients are {} GiB of it",
        "benchmarks/scaling.py",
        f"{CPU}/scaling.json",
        numbers.widths,
    ),
    Said(
        "docs/policies.md",
        "{} GiB of keys, and about {} GiB with a plan and a training step, judging by {} for {} billion)",
        "benchmarks/scaling.py",
        f"{CPU}/scaling.json",
        numbers.hubs,
    ),
    Said(
        "docs/scale.md",
        "The best of these orders saves {}% of all rows at 8 shards, and {}% of a batch's",
        "benchmarks/scale_orders.py",
        f"{CPU}/scale_orders.json",
        numbers.orders,
    ),
    Said(
        "docs/scale.md",
        "molecules of {} kB each in memory",
        "benchmarks/scale_orders.py",
        f"{CPU}/scale_orders.json",
        numbers.per_graph,
    ),
    Said(
        "docs/scale.md",
        "{} GiB): {} GB beside the {} GB of Python and PyTorch. Batches of 128 are cut in {} ms of CPU time, out of "
        "one table in {} ms; reading costs {} ms a batch",
        "benchmarks/scale_read.py",
        f"{CPU}/scale_read.json",
        numbers.reads,
    ),
    Said(
        "docs/scale.md",
        "An epoch of the 4 million graphs above ({} batches, {} windows, {} GiB) takes {} GB in all, of which Python and "
        "PyTorch have {}: {} GB where {} were given",
        "benchmarks/scale_read.py --folder",
        f"{CPU}/scale_read.json",
        numbers.millions_read,
    ),
    Said(
        "docs/scale.md",
        "The rate of the last 40 shards is {} of that of the first 40. (In between, other work took most of the two cores for "
        "a tenth of the shards; all other windows of 40 shards have {} to {} graphs per second.)",
        "benchmarks/scale.py --millions",
        f"{CPU}/scale.json",
        numbers.rates,
    ),
]

_LIMIT = (
    "README.md",
    "docs/index.md",
    "docs/architecture.md",
    "docs/exactness.md",
    "docs/start.md",
    "docs/stability.md",
    "docs/reproduce.md",
    "docs/convs.md",
)
GIVEN = [
    Given(_LIMIT, "1e-10", "the limit of every check of plans in float64", "src/enfa/testing/same.py", "1e-10"),
    Given(("docs/reproduce.md",), "ten times what the conventional model differs", "the limit where graphs are symmetric"),
    Given(("docs/training.md",), "some 400 MB", "a limit", "src/enfa/plan/cutting/cut.py", "about 400 MB"),
    Given(("docs/training.md",), "written every ten seconds", "a setting"),
    Given(("docs/training.md",), "reaches 100%", "a setting: where a run stops"),
    Given(
        ("docs/porting.md",),
        "Both reach 0.99 or 1.00",
        "the page's own scripts, run by a test",
        "tests/docs/test_notebooks.py",
        "before > 0.95 and abs(after - before) < 0.03 and rings == 1.0",
    ),
    Given(("docs/power.md",), "70.2% of the pairs", "the BREC paper's"),
    Given(("docs/power.md",), "1e-8 is added", "a setting of the test", "src/enfa/expressiveness/trained.py", "1e-8"),
    Given(("docs/power.md",), "differences below about 1e-3 do not count", "follows from it"),
    Given(("docs/power.md",), "Hotelling's T² (72.34)", "the BREC authors' threshold"),
    Given(("docs/scale.md",), "The 4 million are molecules", "a size"),
    Given(
        ("docs/scale.md",),
        "4,000 molecules for 2 GiB",
        "a choice, which enfa inspect --shards names",
        f"{CPU}/shards.json",
        '"shard_size": 4000',
    ),
    Given(("docs/scale.md",), "first label is 0.5", "an example"),
    Given(("docs/datasets.md",), "10,000 / 1,000 / 1,000", "sizes of an official split"),
    Given(("docs/datasets.md",), "220,011 / 24,445 / 5,000", "sizes of an official split"),
    Given(("docs/datasets.md",), "1,500 / 1,000 / 2,500", "sizes of an official split"),
    Given(("README.md", "docs/index.md", "docs/start.md"), "five minutes", "a title"),
    Given(("docs/index.md",), "Start in five minutes", "a title"),
]

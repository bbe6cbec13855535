"""A rehearsal compiles all kernels of a step, launches none of them, and leaves the model as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from absent_gpu import ABSENT_GPU, needs_triton

SCRIPT = (
    ABSENT_GPU
    + """
import sys
from contextlib import nullcontext
import enfa
import enfa.nn.cuda.captured
from enfa.cache import compiled_kernels
from enfa.nn.cuda.rehearse import rehearse
from enfa.nn.triton.rehearsal import can_rehearse
from enfa.testing import random_graphs
graphs = random_graphs(8, nodes=9, channels=3)
model = enfa.DSGNN(3, 16, 2, 2, "gin", dropout=0.5).train()
plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith("enfa") and hasattr(module, "accelerated"):  # Cython puts objects there
        module.accelerated = lambda tensor: True
if not can_rehearse():
    sys.exit(77)
"""
)
TESTS = {
    "all kernels, and nothing else": """
before, state = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
assert rehearse(model, plan, nullcontext)
kept = compiled_kernels()["triton"]
assert kept > 10 and not noted
assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items()) and torch.equal(torch.get_rng_state(), state)
assert all(p.grad is None for p in model.parameters())
assert not rehearse(model, plan, nullcontext)  # nothing is left to compile
out = model(plan)
launched = len(noted)
out.sum().backward()
assert compiled_kernels()["triton"] == kept and 0 < launched < len(noted)
model.eval()
with torch.no_grad():
    rehearse(model, plan, nullcontext)
    kept = compiled_kernels()["triton"]
    model(plan)
assert compiled_kernels()["triton"] == kept
""",
    "one that fails launches nothing": """
def broken(*of, **more): raise RuntimeError("out of memory")
forward, model.layers[0].dropout.forward = model.layers[0].dropout.forward, broken
rehearse(model, plan, nullcontext)  # a norm was held back when it failed
assert not noted
model.layers[0].dropout.forward = forward
model(plan)
assert noted  # launches are launches again
""",
    "what could not be compiled is compiled again": """
import triton.compiler
real, left = triton.compiler.compile, [True]
def once(*of, **more):
    if left and left.pop(): raise RuntimeError("no memory")
    return real(*of, **more)
triton.compiler.compile = once
rehearse(model, plan, nullcontext)
assert not left
model(plan).sum().backward()
""",
}


@needs_triton
@pytest.mark.parametrize("name", TESTS)
def test_a_rehearsal(name: str, tmp_path: Path) -> None:
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)} | {"TRITON_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT + TESTS[name]], env=env, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this Triton compiles one kernel at a time")
    assert done.returncode == 0, done.stderr

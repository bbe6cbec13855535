"""Launches without Triton's dispatcher: what reaches a compiled kernel is what the dispatcher would have sent there."""

import os
import subprocess
import sys
from pathlib import Path

from absent_gpu import ABSENT_GPU, needs_triton

DRIVER = (
    ABSENT_GPU
    + """
from enfa.nn.triton.launch import kernel

@kernel(do_not_specialize=["rows"])
def double(x, out, rows, scale, SIZE: tl.constexpr, TWICE: tl.constexpr = True):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, at < rows, 0) * scale, at < rows)

def launch(how, x, rows=5, scale=3, **more):
    noted.clear()
    how[(2, 3)](x, x, rows, scale, **{"SIZE": 16, **more})
    return noted[0]

def known():
    return sum(len(found.known) for found in double._launches.values())
"""
)
TESTS = {
    "the same arguments": """
x = torch.zeros(64)
launch(double, x)
for more in ({}, {"rows": 7}, {"rows": 5}):
    one, other = launch(double, x, **more), launch(double.jit, x, **more)
    assert [*one[:6], *one[9:]] == [*other[:6], *other[9:]] and one[6:9] == (None, None, None)
    assert one[:4] == (2, 3, 1, 7) and one[9] is one[10] is x and one[-2:] == (16, True)
assert known() == 1
noted.clear()
double.launch(SIZE=16)((2, 3), x, x, 5, 3)
assert len(noted) == known() == 1 and noted[0][:6] == one[:6] and noted[0][9:] == one[9:]
""",
    "everything that a kernel is specialised to": """
x = torch.zeros(65)
def compiled():
    return sum(len(cache[0]) for cache in double.jit.device_caches.values())
cases = [{}, {"x": x.double()}, {"x": x[1:]}, {"scale": 16}, {"scale": 1}, {"scale": 2**40}, {"SIZE": 32}, {"TWICE": False},
         {"num_warps": 8}]
for number, case in enumerate(cases):
    for again in range(2):
        one = launch(double, **{"x": x, **case})
        there = compiled()
        other = launch(double.jit, **{"x": x, **case})
        assert one[4:6] == other[4:6] and compiled() == there, case
    assert known() == number + 1, case
""",
    "numbers that it is not specialised to": """
@kernel(do_not_specialize=["rows", "scale"])
def plain(x, out, rows, scale, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, at < rows, 0) * scale, at < rows)
x, found = torch.zeros(64), set()
for rows in (0, 1, 5, 16, 2**31 - 1):
    found.add(launch(plain, x, rows)[4])
assert [len(known.known) for known in plain._launches.values()] == [1]
for number, scale in enumerate((2**31, 2**40 + 1, -1, True, 2.0)):
    for again in range(2):
        one = launch(plain, x, 5, scale)
        assert one[4:6] == launch(plain.jit, x, 5, scale)[4:6] and one[12] is scale
    assert [len(known.known) for known in plain._launches.values()] == [number + 2], scale
""",
    "addresses instead of tensors": """
class There(torch.Tensor):
    is_cuda = True
x = torch.zeros(64)
y = x.as_subclass(There)
for again in range(2):
    one = launch(double, y)
assert one[9:11] == (x.data_ptr(), x.data_ptr())
noted.clear()
double[(2, 3)](y, x, 5, 3, SIZE=16)  # one that is on no device: Triton says so
assert noted[0][9] is y and noted[0][10] is x
""",
    "Triton's own launcher": """
from triton.backends.nvidia import driver as own
if hasattr(own, "annotate_arguments"):
    own.PyKernelArg = lambda **about: about["type"]
    own.ARG_KERNEL, own.ARG_CONSTEXPR = "argument", "constant"
    Utils.launch, Utils.build_signature_metadata = staticmethod(lambda *args: noted.append(args)), staticmethod(tuple)
    Driver.launcher_cls = own.CudaLauncher
    x = torch.zeros(64)
    seen = [launch(double, x, rows) for rows in (5, 7, 7)]
    (how,) = double._launches.values()
    (run, between, as_one), = how.known.values()
    assert run is Utils.launch and as_one  # what the launcher calls, and not the launcher itself
    for one in seen[1:]:
        assert one[8:11] == (None, None, None) and [*one[:8], *one[11:-1]] == [*seen[0][:8], *seen[0][11:-1]]
    assert launch(double.jit, x, 7)[-1] == seen[1][-1] == (x, x, 7, 3, 16, True)

    class Scratch(own.CudaLauncher):  # memory that each launch has of its own
        def __init__(self, *args):
            super().__init__(*args)
            self.global_scratch_size, self.global_scratch_align = 8, 8
    Driver.launcher_cls = Scratch
    room = []
    triton.set_allocator(lambda size, align, stream: room.append(size) or object())
    for again in range(3):
        launch(double, x, scale=16)
    assert room == [48] * 3
""",
    "a launcher that hands arguments on one by one": """
class Older:
    def __init__(self, source, metadata): self.global_scratch_size, self.launch = 0, lambda *args: noted.append(args)
    def __call__(self, x, y, z, stream, function, *args): self.launch(x, y, z, stream, function, "alone", None, *args)
Driver.launcher_cls, x = Older, torch.zeros(64)
one, other = launch(double, x), launch(double, x, rows=7)
assert [*one[:8], *one[11:13]] == [*other[:8], *other[11:13]] and one[5] == "alone" and other[13:] == (7, 3, 16, True)
((run, between, as_one),) = next(iter(double._launches.values())).known.values()
assert other[4:11] == between and not isinstance(run, Older) and not as_one
""",
    "another kind of compiled kernel": """
class Odd:
    pre_run_hooks = ()
    def __getitem__(self, grid): return lambda *args, **given: noted.append(args)
double.jit, x = Odd(), torch.zeros(64)
launch(double, x)
assert len(launch(double, x)) == 4 and not double.direct
""",
    "the folder of kernels": """
import os
from pathlib import Path
launch(double, torch.zeros(64))
assert "TRITON_CACHE_DIR" not in os.environ and list(Path(os.environ["ENFA_CACHE"], "triton").rglob("double.json"))
""",
    "hooks see every launch": """
from enfa.nn.triton import launch as module
x, seen = torch.zeros(64), []
launch(double, x)
if hasattr(module._hooks.launch_enter_hook, "add"):
    module._hooks.launch_enter_hook.add(seen.append)
else:
    module._hooks.launch_enter_hook = seen.append
assert module._watched()
assert launch(double, x)[7] is not None  # the dispatcher's own
""",
}  # fmt: skip


@needs_triton
def test_launches(tmp_path: Path) -> None:
    """One process for all: each compiles the same small kernels."""
    for number, test in enumerate(TESTS.values()):
        (tmp_path / f"case_{number}.py").write_text(DRIVER + test)  # Triton reads a kernel's source
    environment = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "TRITON_CACHE_DIR")}
    code = f"import runpy\nfor number in range({len(TESTS)}): runpy.run_path(f'{tmp_path}/case_{{number}}.py')"
    environment |= {"ENFA_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr

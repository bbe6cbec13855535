"""Kernels that Triton's interpreter runs must also compile for a GPU, which needs none."""

import os
import subprocess
import sys

import pytest
import torch
from absent_gpu import needs_triton

_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from enfa.nn.triton.linears.halved import _halve_gradient_kernel, _halve_kernel
from enfa.nn.triton.linears.halved_products import _parts_kernel, _times_kernel
from enfa.nn.triton.linears.wide_kernels import weight_kernel, wide_kernel

def compiles(kernel, types, num_warps, **constants):
    names = [name for name in kernel.jit.arg_names if name not in constants]
    signature = dict.fromkeys(kernel.jit.arg_names, "constexpr") | dict(zip(names, types.split(), strict=True))
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(signature) if signature[name].startswith("*")}
    source = ASTSource(fn=kernel.jit, signature=signature, constexprs=constants, attrs=aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps, "num_stages": 3})
    assert made.asm["cubin"]
    return made.asm["ptx"]

P, f, h, i = 304, "*fp32 ", "*fp16 ", "*i32 "
ptx = compiles(_times_kernel, h + i + h + 4 * f + "i32", 4,
               K=300, N=300, P=P, STRIDE=P, SHIFTED=True, PLUS=True, ROWS=64, COLS=128, DEPTH=32)
assert "wgmma" in ptx
ptx = compiles(_parts_kernel, h + i + h + i + 2 * f + "i32", 4,
               N=300, K=300, P=P, Q=P, ROWS=64, COLS=64, DEPTH=32, AHEAD=128)
assert "wgmma" in ptx
compiles(_halve_kernel, 4 * f + i + h + i + "i32", 4, C=300, P=P, NORMED=True, COUNTED=False, AFFINE=True, ROWS=8, COLS=512)
compiles(_halve_gradient_kernel, 2 * f + i + 5 * f + i + f + h + i + f + "i32", 8,
         C=300, P=P, AFFINE=True, RELU=True, STORED=True, SLACK=8, ROWS=32, COLS=256, REST=64)
b, i64 = "*bf16 ", "*i64 "
for normed in (False, True):
    known = {"N": 300, "K": 300, "NORMED": normed, "AFFINE": True, "GATED": not normed}
    ptx = compiles(wide_kernel, 2 * b + 3 * f + i64 + b + 2 * f + 2 * b + "i32", 4, **known,
                   STRIDE=P, SHIFTED=True, PLUS=True, RELU=False, ROWS=64, COLS=128, DEPTH=32)
    assert "wgmma" in ptx and ".bf16" in ptx
    ptx = compiles(weight_kernel, 3 * b + 3 * f + i64 + f + "i32", 8, **known, COUNTED=not normed,
                   SUMS=True, ROWS=128, COLS=128, DEPTH=32)
    assert "wgmma" in ptx and ".bf16" in ptx
print("compiled")
"""


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the tests of tests/nn/triton compile them")
def test_wide_kernels_compile_for_a_gpu() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    found = subprocess.run([sys.executable, "-c", _COMPILE], capture_output=True, text=True, env=environment)
    assert found.stdout.strip() == "compiled", found.stderr[-2000:]

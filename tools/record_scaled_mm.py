#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records cuBLASLt's FP8 GEMM: computes the cases of recorded files with PyTorch's
torch._scaled_mm on this machine's GPU and writes the files anew, inputs and case lines as
they are, outputs d and the facts about GPU and libraries replaced.

  tools/record_scaled_mm.py FILE.safetensors... --out DIR

A case must be fp8_gemm_nt with recipe=tensor, dense rows and no c. as=cublaslt-fast asks
for fast accumulation; any other as=, or none, for accumulation without it. cuBLASLt takes
n and k that are multiples of 16 and never e5m2 times e5m2: a case that PyTorch refuses is
left out, with its reason on stderr, and the exit status is 1. Inputs come from

  assay record 'fp8_gemm_nt m=64 n=64 k=1024 recipe=tensor out=f32 seed=1' --out DIR
"""
import ctypes
import sys

sys.dont_write_bytecode = True
import torch_recording  # noqa: E402
from safetensors_file import FileError  # noqa: E402
from torch_recording import from_gpu, on_gpu, operand  # noqa: E402

OPERATION = 'fp8_gemm_nt'
OPERANDS = {'F8_E4M3': 'float8_e4m3fn', 'F8_E5M2': 'float8_e5m2'}
OUTPUTS = {'bf16': ('BF16', 'bfloat16'), 'f32': ('F32', 'float32')}
DEFAULT_OUTPUT = 'bf16'
FAST = 'cublaslt-fast'


def is_fast(case):
    return case.key('as').split(',')[0] == FAST


def loaded_library(name):
    """Path of the shared library of that name inside this process; '' if none."""
    with open('/proc/self/maps', encoding='utf-8', errors='replace') as stream:
        paths = (line.split(maxsplit=5)[5:] for line in stream)
        return next((path[0].strip() for path in paths if path and name in path[0]), '')


def cublaslt_version():
    path = loaded_library('libcublasLt.so')
    if not path:
        return 'unknown'
    get_version = ctypes.CDLL(path).cublasLtGetVersion
    get_version.restype = ctypes.c_size_t
    version = get_version()
    return f'{version // 10000}.{version // 100 % 100}.{version % 100}'


def facts(torch):
    torch.cuda.current_blas_handle()  # loads cuBLASLt, should that not have happened yet
    kernel = f'cuBLASLt through torch._scaled_mm {torch.__version__}'
    return {**torch_recording.device_facts(torch, kernel), 'cublaslt': cublaslt_version()}


def check_case(case):
    if case.line.split()[:1] != [OPERATION] or case.key('recipe') != 'tensor':
        raise FileError(f'"{case.line}" is not for torch._scaled_mm; it must be '
                        f'{OPERATION} with recipe=tensor')
    for key in ('c', 'a_stride', 'b_stride', 'd_stride'):
        if case.key(key, '0') != '0':
            raise FileError(f'"{case.line}" sets {key}=, which is not recorded here; '
                            'leave it out')
    if not all(case.key(name).isdecimal() for name in 'mnk'):
        raise FileError(f'"{case.line}" must give m, n and k as numbers')
    if case.key('out', DEFAULT_OUTPUT) not in OUTPUTS:
        raise FileError(f'"{case.line}" must have out={" or out=".join(OUTPUTS)}')


def scaled_mm(torch, case, shared):
    """Output d of the case; RuntimeError or ValueError when PyTorch refuses it."""
    check_case(case)
    m, n, k = (int(case.key(name)) for name in 'mnk')
    a, b = (operand(case, shared, name, OPERANDS, shape)
            for name, shape in (('a', (m, k)), ('b', (n, k))))
    scales = [on_gpu(torch, operand(case, shared, name, ('F32',), (1, 1)), 'float32')
              for name in ('sfa', 'sfb')]
    dtype, out_dtype = OUTPUTS[case.key('out', DEFAULT_OUTPUT)]
    d = torch._scaled_mm(on_gpu(torch, a, OPERANDS[a.dtype]),
                         on_gpu(torch, b, OPERANDS[b.dtype]).t(),
                         scales[0].reshape(()), scales[1].reshape(()),
                         out_dtype=getattr(torch, out_dtype),
                         use_fast_accum=is_fast(case))
    return {'d': from_gpu(torch, d, dtype, (m, n))}


def fast_accumulation(cases):
    return {'fast_accumulation': '\n'.join('on' if is_fast(case) else 'off'
                                           for case in cases)}


if __name__ == '__main__':
    sys.exit(torch_recording.main(torch_recording.Recorder(
        'record_scaled_mm.py', __doc__, ('d',), facts, scaled_mm, fast_accumulation)))

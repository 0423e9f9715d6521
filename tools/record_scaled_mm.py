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
import argparse
import ctypes
import importlib
import os
import subprocess
import sys
from typing import NamedTuple

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

OPERATION = 'fp8_gemm_nt'
OPERANDS = {'F8_E4M3': 'float8_e4m3fn', 'F8_E5M2': 'float8_e5m2'}
OUTPUTS = {'bf16': ('BF16', 'bfloat16'), 'f32': ('F32', 'float32')}
DEFAULT_OUTPUT = 'bf16'
FAST = 'cublaslt-fast'


class Case(NamedTuple):
    line: str
    tensors: dict  # the case's own, by name without its number

    def key(self, name, default=''):
        """The value of NAME=VALUE in the case line."""
        fields = dict(word.split('=', 1) for word in self.line.split()[1:] if '=' in word)
        return fields.get(name, default)

    def is_fast(self):
        return self.key('as').split(',')[0] == FAST


def load_torch():
    try:
        torch = importlib.import_module('torch')
    except ImportError as error:
        raise FileError(f'PyTorch cannot be imported ({error}); run this with a python3 '
                        'that has torch for CUDA') from None
    if not torch.cuda.is_available():
        raise FileError('PyTorch sees no CUDA GPU; FP8 GEMM needs one of compute '
                        'capability 8.9 or later')
    return torch


# --- what ran the cases ---------------------------------------------------------------

def driver_version():
    try:
        done = subprocess.run(['nvidia-smi', '--query-gpu=driver_version',
                               '--format=csv,noheader'], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'
    return done.stdout.decode().splitlines()[0].strip()


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


def device_facts(torch):
    torch.cuda.current_blas_handle()  # loads cuBLASLt, should that not have happened yet
    return {'gpu': torch.cuda.get_device_name(), 'driver': driver_version(),
            'cuda': str(torch.version.cuda), 'cublaslt': cublaslt_version(),
            'kernel': f'cuBLASLt through torch._scaled_mm {torch.__version__}'}


# --- cases in and out of a file -------------------------------------------------------

def split_cases(path, metadata, tensors):
    """The tensors that cases share, and the cases with what is their own."""
    lines = metadata.get('cases', '').splitlines()
    if not lines:
        raise FileError(f'{path}: has no cases; it must be a recorded file')
    shared = {name: value for name, value in tensors.items() if '/' not in name}
    cases = []
    for number, line in enumerate(lines):
        prefix = f'{number}/'
        cases.append(Case(line, {name.removeprefix(prefix): value
                                 for name, value in tensors.items()
                                 if name.startswith(prefix)}))
    return shared, cases


def join_cases(shared, cases):
    """All tensors under their names in a file; outputs are never shared."""
    tensors = {name: value for name, value in shared.items() if name != 'd'}
    for number, case in enumerate(cases):
        prefix = f'{number}/' if len(cases) > 1 else ''
        tensors.update((prefix + name, value) for name, value in case.tensors.items())
    return tensors


def operand(case, shared, name, dtypes, shape):
    tensor = case.tensors.get(name) or shared.get(name)
    if tensor is None or tensor.dtype not in dtypes or tensor.shape != shape:
        raise FileError(f'"{case.line}" needs a tensor {name} of {" or ".join(dtypes)} '
                        f'{list(shape)}')
    return tensor


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


def on_gpu(torch, tensor, dtype):
    # Bytes travel, so that no conversion touches a NaN.
    flat = torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8).to('cuda')
    return flat.view(getattr(torch, dtype)).reshape(tensor.shape)


def scaled_mm(torch, case, shared):
    """Tensor d of the case; RuntimeError or ValueError when PyTorch refuses it."""
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
                         use_fast_accum=case.is_fast())
    data = bytes(d.contiguous().view(torch.uint8).cpu().flatten().tolist())
    return safetensors_file.tensor(dtype, (m, n), data)


def record(torch, facts, path, folder):
    """Writes one file anew; False when PyTorch refused a case of it."""
    target = os.path.join(folder, os.path.basename(path))
    if os.path.realpath(target) == os.path.realpath(path):
        raise FileError(f'{path} would be overwritten; --out must name another folder')
    metadata, tensors = safetensors_file.read(path)
    shared, cases = split_cases(path, metadata, tensors)
    done = []
    for case in cases:
        try:
            d = scaled_mm(torch, case, shared)
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else repr(error)
            print(f'{path}: left out "{case.line}": {reason}', file=sys.stderr)
            continue
        done.append(Case(case.line, {**case.tensors, 'd': d}))
    if done:
        fast = ('on' if case.is_fast() else 'off' for case in done)
        metadata = {**facts, 'cases': '\n'.join(case.line for case in done),
                    'fast_accumulation': '\n'.join(fast)}
        safetensors_file.write(target, metadata, join_cases(shared, done))
        print(f'{target}: {len(done)} cases')
    return len(done) == len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', metavar='FILE', nargs='+')
    parser.add_argument('--out', metavar='DIR', required=True)
    arguments = parser.parse_args()
    try:
        torch = load_torch()
        facts = device_facts(torch)
        print(', '.join(f'{name} {value}' for name, value in facts.items()),
              file=sys.stderr)
        os.makedirs(arguments.out, exist_ok=True)
        complete = [record(torch, facts, path, arguments.out) for path in arguments.files]
    except OSError as error:
        print(f'record_scaled_mm.py: {arguments.out}: {error.strerror}', file=sys.stderr)
        return 2
    except FileError as error:
        print(f'record_scaled_mm.py: {error}', file=sys.stderr)
        return 2
    return 0 if all(complete) else 1


if __name__ == '__main__':
    sys.exit(main())

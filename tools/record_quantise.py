#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records quantisation as PyTorch on a GPU computes it: the steps that DeepGEMM's Python
functions per_token_cast_to_fp8 and per_block_cast_to_fp8 describe, in the order amax,
clamp, division by 448, power of two, multiplication by the inverse, cast to e4m3.

  tools/record_quantise.py FILE.safetensors... --out DIR

A case must be quantise with dense rows. Inputs come from

  assay record 'quantise m=64 k=512 seed=1' --out DIR
"""
import sys

sys.dont_write_bytecode = True
import torch_recording  # noqa: E402
from safetensors_file import FileError  # noqa: E402
from torch_recording import from_gpu, on_gpu, operand  # noqa: E402

FORMATS = {'bf16': ('BF16', 'bfloat16'), 'f32': ('F32', 'float32')}
SMALLEST_AMAX = 1e-4
LARGEST_E4M3 = 448.0


def facts(torch):
    kernel = f'PyTorch {torch.__version__}, DeepGEMM\'s steps'
    return torch_recording.device_facts(torch, kernel)


def check_case(case):
    if case.line.split()[:1] != ['quantise']:
        raise FileError(f'"{case.line}" is not a case of quantise')
    for key in ('x_stride', 'q_stride'):
        if case.key(key, '0') != '0':
            raise FileError(f'"{case.line}" sets {key}=, which is not recorded here; '
                            'leave it out')


def power_of_two_above(torch, scale):
    """By the bits: exponent plus one if any mantissa bit is set, kept to 1..254."""
    bits = scale.view(torch.int32)
    exponent = ((bits >> 23) & 0xFF) + ((bits & 0x7FFFFF) != 0).int()
    return (exponent.clamp(1, 254) << 23).view(torch.float32)


def quantise(torch, case, shared):
    check_case(case)
    m, k = int(case.key('m')), int(case.key('k'))
    gran_k = int(case.key('gran_k', '128'))
    gran_m = gran_k if case.key('granularity', 'token') == 'block' else 1
    dtype, torch_dtype = FORMATS[case.key('x_format', 'bf16')]
    x = on_gpu(torch, operand(case, shared, 'x', (dtype,), (m, k)), torch_dtype)
    rows, columns = -(-m // gran_m), -(-k // gran_k)
    padded = torch.zeros((rows * gran_m, columns * gran_k), dtype=x.dtype, device='cuda')
    padded[:m, :k] = x
    tiles = padded.view(rows, gran_m, columns, gran_k)
    amax = tiles.abs().float().amax(dim=(1, 3), keepdim=True).clamp(SMALLEST_AMAX)
    sf = amax / LARGEST_E4M3
    if case.key('scale', 'f32') == 'ue8m0':
        sf = power_of_two_above(torch, sf)
    q = (tiles * (1.0 / sf)).to(torch.float8_e4m3fn).view_as(padded)[:m, :k]
    return {'q': from_gpu(torch, q, 'F8_E4M3', (m, k)),
            'sf': from_gpu(torch, sf.view(rows, columns), 'F32', (rows, columns))}


if __name__ == '__main__':
    sys.exit(torch_recording.main(torch_recording.Recorder(
        'record_quantise.py', __doc__, ('q', 'sf'), facts, quantise, lambda cases: {})))

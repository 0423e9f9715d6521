#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes cases of flashinfer-bench workloads: a suite of case lines where a line says
everything, and files of inputs where real indices are part of the workload.

  tools/import_flashinfer_bench.py WORKLOADS.jsonl... --suite FILE [--inputs DIR]
      [--root DATASET] [--half-precision-shapes]

import_flashinfer_bench.md says what is taken and what is left.
"""
import argparse
import json
import os
import pathlib
import random
import re
import struct
import sys
from collections import Counter
from typing import NamedTuple

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

MOST_REQUESTS = 512  # lengths that a case line can hold
PAGE = 64
D_QK = 576
LEAST_HEADS = 64  # of the sparse kernels
KEY_BLOCK = 128
SEED = 1


class Workload(NamedTuple):
    where: str
    definition: str
    uuid: str
    axes: dict
    inputs: dict
    root: pathlib.Path


class Skipped(Exception):
    """Why a workload has no counterpart."""


class Suite:
    """What has been made so far; nothing is written before everything was read."""

    def __init__(self, options):
        self.options = options
        self.lines, self.files, self.skipped = [], {}, Counter()


# --- reading --------------------------------------------------------------------------

def whole_number(value, where, name, least=0):
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise FileError(f'{where}: {name} is {json.dumps(value)[:40]}, which is no whole '
                        f'number of at least {least}')
    return value


def axis(workload, name, least=0):
    if name not in workload.axes:
        raise FileError(f'{workload.where}: the workload has no axis {name}')
    return whole_number(workload.axes[name], workload.where, f'axis {name}', least)


def source(workload, name):
    entry = workload.inputs.get(name)
    return entry if isinstance(entry, dict) else {}


def scalar(workload, name):
    """The value of a scalar input; None where there is none."""
    entry = source(workload, name)
    if entry.get('type') != 'scalar':
        return None
    value = entry.get('value')
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FileError(f'{workload.where}: {name} is no number')
    return value


def blob(workload, name):
    """The path of a file of the dataset, which must not lead out of it."""
    entry = source(workload, name)
    path, key = entry.get('path'), entry.get('tensor_key')
    if not isinstance(path, str) or not isinstance(key, str):
        raise FileError(f'{workload.where}: input {name} needs a path and a tensor_key')
    root = workload.root.resolve()
    full = (root / path).resolve()
    if root not in full.parents:
        raise FileError(f'{workload.where}: input {name} is in {path}, which is outside '
                        f'the dataset {root}')
    return full, key


def integers(workload, name):
    """The 32-bit integers of an input that lies in a file: shape and values."""
    if source(workload, name).get('type') != 'safetensors':
        raise Skipped(f'{name} is random, and nothing says which values make sense')
    path, key = blob(workload, name)
    _, tensors = safetensors_file.read(path)
    if key not in tensors:
        raise FileError(f'{workload.where}: {path} has no tensor {key}')
    dtype, shape, data = tensors[key]
    if dtype != 'I32':
        raise FileError(f'{workload.where}: {name} is {dtype}; it must be I32')
    return shape, struct.unpack(f'<{len(data) // 4}i', data)


def read_workloads(path, root):
    try:
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f'{path}: {getattr(error, "strerror", None) or error}') from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f'{path}:{number}'
        try:
            entry = json.loads(line)
            workload = entry['workload']
            found = Workload(where, entry['definition'], workload['uuid'],
                             workload['axes'], workload['inputs'], root)
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f'{where}: no workload of flashinfer-bench '
                            f'({error or "malformed"})') from None
        if not (isinstance(found.definition, str) and isinstance(found.uuid, str) and
                isinstance(found.axes, dict) and isinstance(found.inputs, dict)):
            raise FileError(f'{where}: definition and uuid must be texts, axes and '
                            'inputs objects')
        yield found


# --- what becomes of a workload -------------------------------------------------------

def softmax_scale(workload):
    value = scalar(workload, 'sm_scale')
    if value is None:
        return ''
    return 'softmax_scale=' + f'{value:.12f}'.rstrip('0').rstrip('.')


def case_line(*words):
    return ' '.join(filter(None, words))


def request_lengths(workload, page_size):
    """Keys of each request from the pages each has."""
    _, borders = integers(workload, 'kv_indptr')
    if not borders or borders[0] != 0 or list(borders) != sorted(borders):
        raise FileError(f'{workload.where}: kv_indptr does not ascend from 0')
    pages = [end - start for start, end in zip(borders, borders[1:])]
    if page_size == 1 or 'kv_last_page_len' not in workload.inputs:
        return [count * page_size for count in pages]
    _, last = integers(workload, 'kv_last_page_len')
    if len(last) != len(pages) or any(not 0 <= length <= page_size for length in last):
        raise FileError(f'{workload.where}: kv_last_page_len does not fit {len(pages)} '
                        f'requests in pages of {page_size}')
    return [(count - 1) * page_size + length if count else 0
            for count, length in zip(pages, last)]


def paged_decode(workload, suite, heads, page_size):
    lengths = request_lengths(workload, int(page_size))
    if len(lengths) > MOST_REQUESTS:
        raise Skipped(f'more than {MOST_REQUESTS} requests')
    if not lengths:
        raise Skipped('no request')
    same = len(set(lengths)) == 1
    keys = str(lengths[0]) if same else ','.join(map(str, lengths))
    suite.lines.append(case_line('mla_dense_decode', f'b={len(lengths)}', f'h_q={heads}',
                                 f's_k={keys}', softmax_scale(workload), f'seed={SEED}'))


def gemm(workload, suite, n, k):
    m = axis(workload, 'm' if 'm' in workload.axes else 'M')
    suite.lines.append(f'fp8_gemm_nt m={m} n={n} k={k} seed={SEED}')


def half_precision_gemm(workload, suite, n, k):
    if not suite.options.half_precision_shapes:
        raise Skipped('no FP8; --half-precision-shapes takes the shape')
    gemm(workload, suite, n, k)


def bf16_of_random(count, generator):
    """Values whose exponents are spread like those of a normal distribution."""
    shares = ((0x40, 12), (0x3F, 142), (0x3E, 78), (0x3D, 18), (0x3C, 6))
    exponents = [high for high, share in shares for _ in range(share)]
    signed = bytes(high | (0x80 if at % 2 else 0) for at, high in enumerate(exponents))
    data = bytearray(2 * count)
    data[0::2] = generator.randbytes(count)
    data[1::2] = generator.randbytes(count).translate(signed)
    return bytes(data)


def compacted(indices):
    """Indices into the keys that are named at all, in their order; and how many."""
    named = sorted({index for index in indices if index >= 0})
    place = {index: at for at, index in enumerate(named)}
    return [place.get(index, -1) for index in indices], max(len(named), 1)


def sparse_attention(workload, suite, heads, topk, page_size):
    tokens = axis(workload, 'num_tokens', 1)
    limit = axis(workload, 'num_pages', 1) * int(page_size)
    shape, indices = integers(workload, 'sparse_indices')
    topk = int(topk)
    if tuple(shape) != (tokens, topk):
        raise FileError(f'{workload.where}: sparse_indices has shape {list(shape)}, not '
                        f'[{tokens}, {topk}]')
    if any(index >= limit for index in indices):
        raise FileError(f'{workload.where}: an index of sparse_indices is beyond the '
                        f'{limit} keys of the cache')
    if topk % KEY_BLOCK:
        raise Skipped(f'topk={topk} is no multiple of {KEY_BLOCK}')
    if not suite.options.inputs:
        raise Skipped('real indices need a file: give --inputs DIR')
    h_q = LEAST_HEADS if int(heads) <= LEAST_HEADS else 2 * LEAST_HEADS
    indices, keys = compacted(indices)
    line = case_line('mla_sparse_prefill', f's_q={tokens}', f'h_q={h_q}', f's_kv={keys}',
                     f'topk={topk}', softmax_scale(workload), 'data=recorded', 'seed=0')
    plain = re.sub(r'[^A-Za-z0-9_-]', '_', f'{workload.definition}_{workload.uuid}')
    name = f'{plain[:200]}.safetensors'
    if name in suite.files:
        raise FileError(f'{workload.where}: uuid {workload.uuid} is there twice')
    suite.files[name] = (line, tokens, h_q, keys, topk, indices, workload)


ROWS = (
    (r'mla_paged_decode_h(\d+)_ckv512_kpe64_ps(1|64)', paged_decode),
    (r'gemm_fp8(?:_\w+?)?_n(\d+)_k(\d+)', gemm),
    (r'gemm(?:_bf16|_fp16|_f16)?_n_?(\d+)_k_?(\d+)', half_precision_gemm),
    (r'dsa_sparse_attention_h(\d+)_ckv512_kpe64_topk(\d+)_ps(\d+)', sparse_attention),
)


def take(workload, suite):
    for pattern, make in ROWS:
        match = re.fullmatch(pattern, workload.definition, re.IGNORECASE)
        if match:
            make(workload, suite, *match.groups())
            return
    raise Skipped('no operation computes that')


# --- writing --------------------------------------------------------------------------

def write_inputs(folder, name, made):
    line, tokens, h_q, keys, topk, indices, workload = made
    generator = random.Random(f'{workload.definition} {workload.uuid}')
    tensors = {
        'q': safetensors_file.tensor('BF16', (tokens, h_q, D_QK),
                                     bf16_of_random(tokens * h_q * D_QK, generator)),
        'kv': safetensors_file.tensor('BF16', (keys, 1, D_QK),
                                      bf16_of_random(keys * D_QK, generator)),
        'indices': safetensors_file.tensor('I32', (tokens, 1, topk),
                                           struct.pack(f'<{len(indices)}i', *indices)),
    }
    metadata = {'cases': line, 'workload': workload.uuid,
                'definition': workload.definition}
    safetensors_file.write(os.path.join(folder, name), metadata, tensors)


def write_suite(path, lines):
    temporary = f'{path}.{os.getpid()}.tmp'
    try:
        with open(temporary, 'w', encoding='utf-8') as file:
            file.writelines(f'{line}\n' for line in lines)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise FileError(f'{path}: {error.strerror}') from None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('workloads', nargs='+', metavar='WORKLOADS.jsonl')
    parser.add_argument('--suite', required=True, metavar='FILE')
    parser.add_argument('--inputs', metavar='DIR', help='an existing folder for files')
    parser.add_argument('--root', metavar='DATASET',
                        default=os.environ.get('FIB_DATASET_PATH'),
                        help='what the paths in workloads start from (FIB_DATASET_PATH)')
    parser.add_argument('--half-precision-shapes', action='store_true',
                        help='take bf16 and fp16 GEMMs as shapes for FP8')
    return parser.parse_args()


def main():
    options = arguments()
    suite = Suite(options)
    root = pathlib.Path(options.root or '.')
    if options.inputs and not os.path.isdir(options.inputs):
        raise FileError(f'--inputs {options.inputs} is no folder; name an existing one')
    for path in options.workloads:
        for workload in read_workloads(path, root):
            try:
                take(workload, suite)
            except Skipped as reason:
                suite.skipped[f'{workload.definition}: {reason}'] += 1
    for name, made in suite.files.items():
        write_inputs(options.inputs, name, made)
    write_suite(options.suite, dict.fromkeys(suite.lines))
    print(f'{len(dict.fromkeys(suite.lines))} case lines, {len(suite.files)} files of '
          'inputs')
    for reason, count in sorted(suite.skipped.items()):
        print(f'skipped {count} of {reason}', file=sys.stderr)


if __name__ == '__main__':
    try:
        main()
    except FileError as error:
        print(f'import_flashinfer_bench: {error}', file=sys.stderr)
        sys.exit(2)

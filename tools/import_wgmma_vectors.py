#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes .safetensors.zst files from wgmma vectors recorded on an H200.

  tools/import_wgmma_vectors.py SOURCE --out FILE.safetensors.zst
  tools/import_wgmma_vectors.py SOURCE --recorded DIR

SOURCE is a tar of TYPE_modeM_stepsS.{a,b,c,d}, raw little endian, or a file that --out
made of one. TYPE is bf16, f16, tf32 or a pair of FP8 formats such as e4m3.e5m2.

--out keeps the names, and a and b as bytes (U8): a block has 64 rows of A and 8 of B, 32
bytes a step whatever the format. --recorded writes cases of the operation wgmma, as a
rule one a group of vectors, into DIR/wgmma_{fp8,bf16,f16,tf32}.safetensors.zst. No value
changes.
"""
import argparse
import os
import re
import sys
import tarfile
from functools import reduce
from pathlib import PurePosixPath

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

ENDING = '.safetensors.zst'
ROWS, COLUMNS, STEP_BYTES = 64, 8, 32
NAME = re.compile(r'(?P<base>(?P<type>[a-z0-9.]+)_mode\d+_steps(?P<steps>[1-9]\d*))'
                  r'\.(?P<part>[abcd])')
DEVICE = {'gpu': 'NVIDIA H200', 'driver': '580', 'cuda': '13.0'}
CONTENT = 'd = wgmma(c, a, b) over the steps; see corpus/units/README.md'
# File, dtype and bytes of an element by format.
FORMATS = {'e4m3': ('fp8', 'F8_E4M3', 1), 'e5m2': ('fp8', 'F8_E5M2', 1),
           'bf16': ('bf16', 'BF16', 2), 'f16': ('f16', 'F16', 2),
           'tf32': ('tf32', 'F32', 4)}


# --- reading --------------------------------------------------------------------------

def read_tar(path):
    """Content of every file in the tar, by name without its folder."""
    try:
        with tarfile.open(path) as archive:
            return {PurePosixPath(member.name).name: archive.extractfile(member).read()
                    for member in archive if member.isfile()}
    except OSError as error:
        raise FileError(f'{path}: {error.strerror or error}') from None
    except (tarfile.TarError, EOFError):
        raise FileError(f'{path}: not a readable tar file') from None


def read_members(path):
    if path.endswith(ENDING):
        _, tensors = safetensors_file.read(path)
        return {name: tensor.data for name, tensor in tensors.items()}
    return read_tar(path)


def tensor_of(name, members):
    """The member as a tensor, its size checked against the others of its group."""
    match = NAME.fullmatch(name)
    if not match:
        raise FileError(f'{name}: expected a name such as bf16_mode0_steps1.a')
    for part in 'abcd':
        if f'{match["base"]}.{part}' not in members:
            raise FileError(f'{match["base"]}: part {part} is missing')

    steps = int(match['steps'])
    blocks = len(members[match['base'] + '.a']) // (steps * ROWS * STEP_BYTES)
    dtype, shape = {
        'a': ('U8', (blocks, steps, ROWS, STEP_BYTES)),
        'b': ('U8', (blocks, steps, COLUMNS, STEP_BYTES)),
    }.get(match['part'], ('F32', (blocks, ROWS, COLUMNS)))
    try:
        return safetensors_file.tensor(dtype, shape, members[name])
    except FileError as error:
        raise FileError(f'{name}: {error}') from None


# --- recorded cases -------------------------------------------------------------------

def typed(tensor, name):
    """The same bytes as elements of the format."""
    _, dtype, size = FORMATS[name]
    return safetensors_file.tensor(dtype, (*tensor.shape[:-1], STEP_BYTES // size),
                                   tensor.data)


def case_line(tensor, formats):
    blocks, steps = tensor.shape[:2]
    words = ['wgmma', f'blocks={blocks}', f'steps={steps}']
    words += [f'{key}={name}' for key, name in zip(('a_format', 'b_format'), formats)
              if name != 'e4m3']
    return ' '.join(words + ['data=recorded', 'seed=0'])


def joined(first, second):
    """Both one after the other along the first dimension."""
    shape = (first.shape[0] + second.shape[0], *first.shape[1:])
    return safetensors_file.tensor(first.dtype, shape, first.data + second.data)


def find_cases(tensors):
    """Lists of groups of vectors, one a case. Outputs that are one constant (all NaN)
    prove nothing alone: such a group joins the one before of the same type and steps."""
    cases = {}
    for base in sorted({name[:-2] for name in tensors}):
        match = NAME.fullmatch(base + '.a')
        data = tensors[base + '.d'].data
        alike = cases.setdefault((match['type'], match['steps']), [])
        if alike and data == data[:4] * (len(data) // 4):
            alike[-1].append(base)
        else:
            alike.append([base])
    return sorted(sum(cases.values(), []))


def recorded_files(tensors):
    """By stem: case lines, names of the vectors, and tensors N/name."""
    files = {}
    for bases in find_cases(tensors):
        pair = NAME.fullmatch(bases[0] + '.a')['type'].split('.')
        formats = pair if len(pair) == 2 else pair * 2
        if not all(name in FORMATS for name in formats):
            raise FileError(f'{bases[0]}: its formats must be of {" ".join(FORMATS)}')
        lines, names, content = files.setdefault(f'wgmma_{FORMATS[pair[0]][0]}',
                                                 ([], [], {}))
        whole = {part: reduce(joined, (tensors[f'{base}.{part}'] for base in bases))
                 for part in 'abcd'}
        number = len(lines)
        lines.append(case_line(whole['a'], formats))
        names.append('+'.join(bases))
        for part, name in zip('ab', formats):
            content[f'{number}/{part}'] = typed(whole[part], name)
        for part in 'cd':
            content[f'{number}/{part}'] = whole[part]
    return files


def write_recorded(source, folder, tensors):
    os.makedirs(folder, exist_ok=True)
    for stem, (lines, names, content) in recorded_files(tensors).items():
        path = os.path.join(folder, stem + ENDING)
        metadata = {'cases': '\n'.join(lines), 'vectors': '\n'.join(names),
                    'kernel': 'wgmma, m64n8', 'source': os.path.basename(source),
                    **DEVICE}
        safetensors_file.write(path, metadata, content)
        print(f'{path}: {len(lines)} cases, {os.path.getsize(path)} bytes')


def run(arguments):
    source, out = arguments.source, arguments.out
    if out and not out.endswith(ENDING):
        raise FileError(f'--out {out}: the name must end in {ENDING}')
    members = read_members(source)
    tensors = {name: tensor_of(name, members) for name in members}
    if not tensors:
        raise FileError(f'{source}: no vectors inside')
    if arguments.recorded:
        write_recorded(source, arguments.recorded, tensors)
        return
    safetensors_file.write(out, {'content': CONTENT, **DEVICE}, tensors)
    outputs = sum(len(data) // 4 for name, data in members.items() if name.endswith('.d'))
    print(f'{out}: {len(tensors)} tensors, {outputs} outputs')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', metavar='SOURCE')
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument('--out', metavar='FILE.safetensors.zst')
    target.add_argument('--recorded', metavar='DIR')
    try:
        run(parser.parse_args())
    except FileError as error:
        print(f'import_wgmma_vectors.py: {error}', file=sys.stderr)
        return 2
    except OSError as error:
        print(f'import_wgmma_vectors.py: {error.filename}: {error.strerror}',
              file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())

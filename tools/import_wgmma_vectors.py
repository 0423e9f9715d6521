#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes one .safetensors.zst file from a tar of wgmma vectors recorded on an H200.

  tools/import_wgmma_vectors.py SOURCE.tar.gz --out FILE.safetensors.zst

The tar holds TYPE_modeM_stepsS.{a,b,c,d}, raw little endian; TYPE is bf16, f16, tf32 or a
pair of FP8 formats such as e4m3.e5m2. The tensors keep these names. a and b stay bytes
(U8): a block has 64 rows of A and 8 of B, 32 bytes a step whatever the format.
"""
import argparse
import re
import sys
import tarfile
from pathlib import PurePosixPath

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

ROWS, COLUMNS, STEP_BYTES = 64, 8, 32
NAME = re.compile(r'(?P<base>[a-z0-9.]+_mode\d+_steps(?P<steps>[1-9]\d*))'
                  r'\.(?P<part>[abcd])')
METADATA = {
    'content': 'd = wgmma(c, a, b) over the steps; see corpus/units/README.md',
    'gpu': 'NVIDIA H200', 'driver': '580', 'cuda': '13.0',
}


def read_members(path):
    """Content of every file in the tar, by name without its folder."""
    try:
        with tarfile.open(path) as archive:
            return {PurePosixPath(member.name).name: archive.extractfile(member).read()
                    for member in archive if member.isfile()}
    except OSError as error:
        raise FileError(f'{path}: {error.strerror or error}') from None
    except (tarfile.TarError, EOFError):
        raise FileError(f'{path}: not a readable tar file') from None


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


def run(source, out):
    if not out.endswith('.safetensors.zst'):
        raise FileError(f'--out {out}: the name must end in .safetensors.zst')
    members = read_members(source)
    tensors = {name: tensor_of(name, members) for name in members}
    if not tensors:
        raise FileError(f'{source}: no vectors inside')
    safetensors_file.write(out, METADATA, tensors)
    outputs = sum(len(data) // 4 for name, data in members.items() if name.endswith('.d'))
    print(f'{out}: {len(tensors)} tensors, {outputs} outputs')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', metavar='SOURCE.tar.gz')
    parser.add_argument('--out', required=True, metavar='FILE.safetensors.zst')
    arguments = parser.parse_args()
    try:
        run(arguments.source, arguments.out)
    except FileError as error:
        print(f'import_wgmma_vectors.py: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())

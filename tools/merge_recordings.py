#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Puts the cases of several recordings into one file, where inputs they share are kept
once: `a` if all cases have the same, otherwise `N/a`. Metadata must agree, but for the
case lines and the line a case of `fast_accumulation`.

  tools/merge_recordings.py FILE... --out FILE
"""
import argparse
import sys

sys.dont_write_bytecode = True
import safetensors_file  # noqa: E402
from safetensors_file import FileError  # noqa: E402

LINE_A_CASE = ('cases', 'fast_accumulation')


def cases_of(path):
    """Metadata common to all cases, and for each case its lines and its tensors."""
    metadata, tensors = safetensors_file.read(path)
    columns = {key: metadata.pop(key).splitlines() for key in LINE_A_CASE
               if key in metadata}
    cases = []
    for number in range(len(columns['cases'])):
        prefix = f'{number}/'
        own = {name: value for name, value in tensors.items() if '/' not in name}
        own.update({name[len(prefix):]: value for name, value in tensors.items()
                    if name.startswith(prefix)})
        cases.append(({key: lines[number] for key, lines in columns.items()}, own))
    return metadata, cases


def merge(paths):
    """Metadata and tensors of one file with the cases of all."""
    common, cases = None, []
    for path in paths:
        metadata, more = cases_of(path)
        if common not in (None, metadata):
            raise FileError(f'{path}: was recorded elsewhere than {paths[0]}: '
                            f'{metadata} is not {common}')
        common = metadata
        cases += more
    tensors = {}
    for name in sorted({name for _, own in cases for name in own}):
        values = [own.get(name) for _, own in cases]
        if all(value == values[0] for value in values):
            tensors[name] = values[0]
        else:
            tensors.update({f'{number}/{name}': value
                            for number, value in enumerate(values) if value})
    lines = {key: '\n'.join(case[key] for case, _ in cases) for key in cases[0][0]}
    return {**common, **lines}, tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', metavar='FILE', nargs='+')
    parser.add_argument('--out', metavar='FILE', required=True)
    arguments = parser.parse_args()
    try:
        safetensors_file.write(arguments.out, *merge(arguments.files))
    except (FileError, KeyError) as error:
        sys.stderr.write(f'merge_recordings: {error}\n')
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: MIT
"""What the recorders have in common: they compute the cases of recorded files with
PyTorch on this machine's GPU and write the files anew, inputs and case lines as they are,
outputs and the facts about GPU and libraries replaced."""
import argparse
import importlib
import os
import subprocess
import sys
from typing import NamedTuple

import safetensors_file
from safetensors_file import FileError


class Case(NamedTuple):
    line: str
    tensors: dict  # the case's own, by name without its number

    def key(self, name, default=''):
        """The value of NAME=VALUE in the case line."""
        fields = dict(word.split('=', 1) for word in self.line.split()[1:] if '=' in word)
        return fields.get(name, default)


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


def driver_version():
    try:
        done = subprocess.run(['nvidia-smi', '--query-gpu=driver_version',
                               '--format=csv,noheader'], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'
    return done.stdout.decode().splitlines()[0].strip()


def device_facts(torch, kernel):
    return {'gpu': torch.cuda.get_device_name(), 'driver': driver_version(),
            'cuda': str(torch.version.cuda), 'kernel': kernel}


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


def join_cases(shared, cases, outputs):
    """All tensors under their names in a file; outputs are never shared."""
    tensors = {name: value for name, value in shared.items() if name not in outputs}
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


def on_gpu(torch, tensor, dtype):
    # Bytes travel, so that no conversion touches a NaN.
    flat = torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8).to('cuda')
    return flat.view(getattr(torch, dtype)).reshape(tensor.shape)


def from_gpu(torch, tensor, dtype, shape):
    data = bytes(tensor.contiguous().view(torch.uint8).cpu().flatten().tolist())
    return safetensors_file.tensor(dtype, shape, data)


# --- the recorder ---------------------------------------------------------------------

class Recorder(NamedTuple):
    name: str
    description: str
    outputs: tuple    # names
    facts: object     # torch -> metadata
    compute: object   # torch, case, shared tensors -> outputs by name
    more: object      # finished cases -> more metadata


def record(recorder, torch, facts, path, folder):
    """Writes one file anew; False when PyTorch refused a case of it."""
    target = os.path.join(folder, os.path.basename(path))
    if os.path.realpath(target) == os.path.realpath(path):
        raise FileError(f'{path} would be overwritten; --out must name another folder')
    metadata, tensors = safetensors_file.read(path)
    shared, cases = split_cases(path, metadata, tensors)
    done = []
    for case in cases:
        try:
            outputs = recorder.compute(torch, case, shared)
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else repr(error)
            print(f'{path}: left out "{case.line}": {reason}', file=sys.stderr)
            continue
        done.append(Case(case.line, {**case.tensors, **outputs}))
    if done:
        metadata = {**facts, 'cases': '\n'.join(case.line for case in done),
                    **recorder.more(done)}
        safetensors_file.write(target, metadata,
                               join_cases(shared, done, recorder.outputs))
        print(f'{target}: {len(done)} cases')
    return len(done) == len(cases)


def main(recorder):
    parser = argparse.ArgumentParser(description=recorder.description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', metavar='FILE', nargs='+')
    parser.add_argument('--out', metavar='DIR', required=True)
    arguments = parser.parse_args()
    try:
        torch = load_torch()
        facts = recorder.facts(torch)
        print(', '.join(f'{name} {value}' for name, value in facts.items()),
              file=sys.stderr)
        os.makedirs(arguments.out, exist_ok=True)
        complete = [record(recorder, torch, facts, path, arguments.out)
                    for path in arguments.files]
    except OSError as error:
        print(f'{recorder.name}: {arguments.out}: {error.strerror}', file=sys.stderr)
        return 2
    except FileError as error:
        print(f'{recorder.name}: {error}', file=sys.stderr)
        return 2
    return 0 if all(complete) else 1

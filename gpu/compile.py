#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compiles one .cu file, and reports what its kernels take.

compile.py --nvcc NVCC --object FILE --report FILE --depfile FILE [--advice-allowed]
           SOURCE -- ARGUMENT...

Whatever nvcc has to say beside that report is an error: warnings of the compilers,
spills, and, unless allowed, what ptxas calls information (registers that setmaxnreg does
not get, wgmma one after the other).
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile

COLUMNS = ('kernel', 'registers', 'static_shared_bytes', 'stack_bytes', 'spill_bytes',
           'threads', 'blocks')
INFO = re.compile(r'ptxas info +: ')
ENTRY = re.compile(r"Compiling entry function '([^']+)' for 'sm_90a'")
FRAME = re.compile(r' *(\d+) bytes stack frame, (\d+) bytes spill stores, '
                   r'(\d+) bytes spill loads')
USED = re.compile(r'Used (\d+) registers')
SHARED = re.compile(r'(\d+) bytes smem')
STACK = re.compile(r'(\d+) bytes cumulative stack size')
IGNORED = re.compile(r'\d+ bytes gmem|Function properties for |Compile time = ')
# In PTX: an entry, and what its launch bounds became.
PTX_ENTRY = re.compile(r'^(?:\.visible |\.weak )?\.entry ([\w$]+)\(', re.MULTILINE)
PTX_THREADS = re.compile(r'^\.(?:maxntid|reqntid) ([\d, ]+)$', re.MULTILINE)
PTX_BLOCKS = re.compile(r'^\.minnctapersm (\d+)$', re.MULTILINE)


def read_resources(text):
    """({entry: {column: value}}, advice, other lines that are no part of a report)."""
    kernels, advice, others, current = {}, [], [], None
    for line in text.splitlines():
        body = INFO.sub('', line, count=1)
        if entry := ENTRY.match(body):
            current = kernels.setdefault(entry[1], {'stack_bytes': 0, 'spill_bytes': 0})
        elif current is not None and (frame := FRAME.match(body)):
            current['stack_bytes'] = max(current['stack_bytes'], int(frame[1]))
            current['spill_bytes'] += int(frame[2]) + int(frame[3])
        elif current is not None and (used := USED.match(body)):
            stack, shared = STACK.search(body), SHARED.search(body)
            current['registers'] = int(used[1])
            current['static_shared_bytes'] = int(shared[1]) if shared else 0
            current['stack_bytes'] = max(current['stack_bytes'],
                                         int(stack[1]) if stack else 0)
        elif line.strip() and not IGNORED.match(body):
            (advice if INFO.match(line) else others).append(line)
    return kernels, advice, others


def read_bounds(ptx):
    """{entry: (threads of a block, blocks of a multiprocessor)} by launch bounds; threads
    are 0 without any."""
    starts = list(PTX_ENTRY.finditer(ptx))
    bounds = {}
    for start, end in zip(starts, starts[1:] + [None]):
        head = ptx[start.end():end.start() if end else len(ptx)].split('\n{', 1)[0]
        threads, blocks = PTX_THREADS.search(head), PTX_BLOCKS.search(head)
        count = 1 if threads else 0
        for size in threads[1].split(',') if threads else ():
            count *= int(size)
        bounds[start[1]] = count, int(blocks[1]) if blocks else 1
    return bounds


def plain_name(demangled):
    """Of 'void gpu::gemm<gpu::tile<(int)128> >(float*)': 'gpu::gemm<gpu::tile<128>>'."""
    name = demangled.replace('(anonymous namespace)::', '')
    name = re.sub(r'\((?:unsigned |signed )?(?:int|long|bool|char|short)\)', '', name)
    depth = 0
    for at, character in enumerate(name):
        depth += {'<': 1, '>': -1}.get(character, 0)
        if character == '(' and depth == 0:
            name = name[:at]
            break
    return re.sub(r'^void ', '', name).replace('> >', '>>')


def demangle(lines):
    done = subprocess.run(['c++filt'], input='\n'.join(lines), check=True,
                          stdout=subprocess.PIPE, universal_newlines=True)
    return done.stdout.splitlines()


def write_report(path, kernels, bounds):
    names = sorted(kernels)
    with open(path, 'w', encoding='utf-8', newline='') as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator='\n')
        table.writeheader()
        for entry, name in zip(names, demangle(names)):
            threads, blocks = bounds[entry]
            table.writerow({'kernel': plain_name(name), 'threads': threads,
                            'blocks': blocks, **kernels[entry]})


def compile_file(options, arguments):
    """Whether it went well; what did not is printed."""
    with tempfile.TemporaryDirectory() as kept:
        command = [options.nvcc, '-c', '-o', options.object, options.source,
                   '-MMD', '-MF', options.depfile, '-MT', options.object,
                   '--keep', '--keep-dir', kept, '-Xptxas', '-v', *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)
        kernels, advice, others = read_resources(done.stdout)
        if advice or others or done.returncode != 0:
            print(' '.join(command), *demangle(advice + others), sep='\n')
        if others or done.returncode != 0 or (advice and not options.advice_allowed):
            return False
        stem = os.path.splitext(os.path.basename(options.source))[0]
        with open(os.path.join(kept, stem + '.ptx'), encoding='utf-8') as file:
            write_report(options.report, kernels, read_bounds(file.read()))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    for name in 'nvcc', 'object', 'report', 'depfile':
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--advice-allowed', action='store_true')
    parser.add_argument('source')
    at = sys.argv.index('--')
    options = parser.parse_args(sys.argv[1:at])
    if compile_file(options, sys.argv[at + 1:]):
        return 0
    for path in options.object, options.report:
        if os.path.exists(path):
            os.remove(path)
    return 1


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which files belong to the project, and of what kind each is.

As a program: source_files.py KIND... prints the paths of these kinds, a line each.
"""
import os
import subprocess
import sys

C_ENDINGS = ('.c', '.h', '.cu', '.cuh')
FUZZ_INPUTS = 'corpus/fuzz/'  # text or not, they are bytes that were drawn


def git(root, *arguments):
    """What a git command printed; None without git or without a repository."""
    trust = f'safe.directory={os.path.realpath(root)}'
    try:
        done = subprocess.run(['git', '-c', trust, '-C', root, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return None
    return done.stdout.decode() if done.returncode == 0 else None


def is_repository(root):
    top = git(root, 'rev-parse', '--show-toplevel')
    return top is not None and os.path.realpath(top.strip()) == os.path.realpath(root)


def walk(root):
    for folder, folders, names in os.walk(root):
        at_top = os.path.samefile(folder, root)
        folders[:] = [name for name in folders if name not in ('.git', '__pycache__')
                      and not (at_top and name.startswith('build'))]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


def all_files(root):
    """Paths below @root of all that is, or is about to be, under version control."""
    if is_repository(root):
        paths = git(root, 'ls-files', '-z', '--cached', '--others',
                    '--exclude-standard').split('\0')
    else:
        paths = walk(root)
    return sorted({path for path in paths
                   if path and os.path.isfile(os.path.join(root, path))})


def read(root, path):
    with open(os.path.join(root, path), 'rb') as file:
        return file.read()


def shebang(root, path):
    """The interpreter's name, or '' for a file that is no script."""
    with open(os.path.join(root, path), 'rb') as file:
        first = file.readline(200)
    words = first[2:].split() if first.startswith(b'#!') else []
    return os.path.basename(words[-1]).decode('ascii', 'replace') if words else ''


def is_binary(data):
    return b'\0' in data[:65536]


def kind(root, path):
    """One of c, python, shell, meson, text, binary."""
    if path.endswith(C_ENDINGS):
        return 'c'
    if path.startswith(FUZZ_INPUTS):
        return 'binary'
    interpreter = shebang(root, path)
    if path.endswith('.py') or interpreter.startswith('python'):
        return 'python'
    if path.endswith('.sh') or interpreter in ('sh', 'bash'):
        return 'shell'
    if os.path.basename(path) in ('meson.build', 'meson_options.txt'):
        return 'meson'
    return 'binary' if is_binary(read(root, path)) else 'text'


def of_kind(root, *kinds):
    return [path for path in all_files(root) if kind(root, path) in kinds]


def report(findings):
    """Prints the findings of a gate and gives its exit status."""
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == '__main__':
    for found in of_kind('.', *sys.argv[1:]):
        print(found)

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: Python scripts compile and need the standard library only.

python_scripts.py [ROOT]. A script may also import a module of this project, and adapters
the packages that they adapt, or that stand for these in tests.
"""
import ast
import os
import sys

import source_files

PACKAGES = {'tools/adapters/': ('torch', 'flash_mla', 'deep_gemm', 'flashinfer'),
            'tests/command/fake_packages/': ('torch',)}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name.split('.')[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module.split('.')[0]


def gate(root):
    findings, paths = [], source_files.of_kind(root, 'python')
    known = set(sys.stdlib_module_names)
    known |= {os.path.basename(path)[:-3] for path in paths if path.endswith('.py')}
    for path in paths:
        try:
            source = source_files.read(root, path)
            compile(source, path, 'exec', dont_inherit=True)
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, 'lineno', None) or 1
            findings.append(f'{path}:{line}: does not compile: {error}')
            continue
        adapted = set().union(*(packages for folder, packages in PACKAGES.items()
                                if path.startswith(folder)))
        findings += [f'{path}:{line}: {module} is not in the standard library'
                     for line, module in imports(tree) if module not in known | adapted]
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))

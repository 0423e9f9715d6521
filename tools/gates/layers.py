#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: includes point down only. layers.py [ROOT]

LAYERS says for each folder what its files may include: a folder (ends with /), every
header right in a folder (ends with /*), or one header. The longest matching folder rules.
"""
import os
import re
import sys

import source_files

FORMAT = ('ref/*', 'ref/format/')
UNIT = FORMAT + ('ref/unit/',)
LAYOUT = UNIT + ('ref/layout/',)
# What the parts of verify/ that know no single operation take from the reference: sizes,
# formats, and the flush-to-zero scalars for the check of the floating-point mode.
PLAIN = ('ref/*', 'ref/format/', 'ref/unit/scalar.h', 'verify/case/', 'verify/data/',
         'verify/operation/*')

LAYERS = {
    'ref/': ('ref/*',),
    'ref/format/': FORMAT,
    'ref/unit/': UNIT,
    'ref/layout/': LAYOUT,
    'ref/kernel/': LAYOUT + ('ref/kernel/',),
    'ref/oracle/': ('ref/*', 'ref/oracle/'),
    'verify/case/': PLAIN,
    'verify/data/': PLAIN,
    'verify/operation/': ('ref/', 'verify/case/', 'verify/data/', 'verify/operation/'),
    'verify/plugin/': ('verify/plugin/',),
    'verify/backend/': PLAIN + ('verify/backend/', 'verify/worker/'),
    'verify/worker/': PLAIN + ('verify/backend/', 'verify/plugin/*', 'verify/worker/'),
    'verify/check/': PLAIN + ('verify/backend/', 'verify/worker/', 'verify/check/'),
    'verify/identify/': PLAIN + ('verify/backend/', 'verify/check/', 'verify/identify/'),
    'verify/report/': PLAIN + ('verify/backend/', 'verify/check/', 'verify/report/'),
    'verify/run/': PLAIN + ('verify/backend/', 'verify/check/', 'verify/report/',
                            'verify/run/', 'verify/worker/process.h'),
    # The command line is on top of fuzz/ as well: selftest, and the list of faults.
    'verify/command/': ('ref/', 'verify/', 'fuzz/'),
    'verify/': ('verify/',),
    'fuzz/': ('ref/', 'verify/', 'fuzz/'),
    # As anybody's plugin; the interface comes by <assay_plugin_cuda.h>.
    'gpu/': ('gpu/', 'verify/plugin/*'),
    'tests/': ('ref/', 'verify/', 'fuzz/', 'tests/'),
    'corpus/': ('ref/', 'verify/backend/assay_plugin.h'),
    'tools/': ('verify/backend/assay_plugin.h',),
}
# The reference never prints.
FORBIDDEN_SYSTEM = {'ref/': ('stdio.h', 'wchar.h', 'syslog.h', 'err.h', 'error.h')}
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')


def layer_of(path):
    layers = [layer for layer in LAYERS if path.startswith(layer)]
    return max(layers, key=len, default=None)


def is_allowed(header, allowed):
    for rule in allowed:
        if rule.endswith('/*') and os.path.dirname(header) == rule[:-2]:
            return True
        if header == rule or (rule.endswith('/') and header.startswith(rule)):
            return True
    return False


def is_there(root, header):
    """Whether the header is in the tree, or meson writes it there in the build folder."""
    rules = os.path.join(root, os.path.dirname(header), 'meson.build')
    if os.path.isfile(os.path.join(root, header)):
        return True
    if not os.path.isfile(rules):
        return False
    with open(rules, encoding='utf-8') as file:
        return f"'{os.path.basename(header)}'" in file.read()


def check_include(root, layer, own, system):
    if system is not None:
        for folder, names in FORBIDDEN_SYSTEM.items():
            if layer.startswith(folder) and system in names:
                yield f'{folder} must not include <{system}>'
        if os.path.exists(os.path.join(root, system)):
            yield f'"{system}" is ours: include it with quotes'
    elif own != os.path.normpath(own) or not is_there(root, own):
        yield f'"{own}" is no path from the project root'
    elif not is_allowed(own, LAYERS[layer]):
        yield f'{layer} must not include "{own}"; it may: {", ".join(LAYERS[layer])}'


def gate(root):
    findings = []
    for path in source_files.of_kind(root, 'c'):
        layer = layer_of(path)
        if layer is None:
            findings.append(f'{path}:1: no rule in LAYERS says what this may include')
            continue
        text = source_files.read(root, path).decode('utf-8', 'replace')
        for number, line in enumerate(text.splitlines(), 1):
            include = INCLUDE.match(line)
            if include:
                findings += [f'{path}:{number}: {message}' for message
                             in check_include(root, layer, *include.groups())]
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plants one violation of each kind in a small tree and expects its gate to report it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LICENCE = '/* SPDX-License-Identifier: MIT */\n'
HEADER = LICENCE + '#ifndef {0}_H\n#define {0}_H\nint assay_{0}(void);\n#endif\n'
SCRIPT = '#!/usr/bin/python3\n# SPDX-License-Identifier: MIT\nimport json\n'


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)


class Tree(unittest.TestCase):
    """A temporary folder that every gate passes until a test plants something."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path in ('ref/tensor.h', 'ref/format/minifloat.h', 'ref/unit/scalar.h',
                     'ref/unit/dot_add.h', 'ref/kernel/gemm.h', 'ref/oracle/exact.h',
                     'verify/case/case.h', 'verify/operation/operation.h',
                     'verify/operation/gemm/gemm.h', 'verify/check/result.h',
                     'verify/command/command.h'):
            name = os.path.basename(path)[:-2]
            self.plant(path, HEADER.format(name))
        self.plant('tools/run', SCRIPT)

    def plant(self, path, content):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    def gate(self, name, *arguments):
        program = os.path.join(PROJECT, 'tools', 'gates', name + '.py')
        return run(['/usr/bin/python3', '-B', program, *(arguments or (self.root,))])

    def assert_passes(self, name, *arguments):
        done = self.gate(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout)

    def assert_reports(self, words, name, *arguments):
        done = self.gate(name, *arguments)
        self.assertIn(words, done.stdout)
        self.assertEqual(done.returncode, 1, done.stdout)


class TextGate(Tree):
    def reports(self, words, content, path='ref/planted.c'):
        self.plant(path, content)
        self.assert_reports(f'{path}:{words}', 'text')

    def test_clean_tree_passes(self):
        self.plant('README.md', 'Ulp\u2264 1, ' + 'a long line of prose ' * 9 + 'ends.\n')
        self.plant('corpus/a.bin', b'\0\t \r\n')
        self.plant('build-x/planted.c', 'no licence, a build folder')
        self.assert_passes('text')

    def test_tab_is_reported(self):
        self.reports('2: a tab', LICENCE + '\tint x;\n')

    def test_carriage_return_is_reported(self):
        self.reports('2: a carriage return', LICENCE + 'int x;\r\n')

    def test_trailing_blank_is_reported(self):
        self.reports('2: trailing blanks', LICENCE + 'int x; \n')

    def test_missing_final_newline_is_reported(self):
        self.reports('2: no newline', LICENCE + 'int x;')

    def test_blank_last_line_is_reported(self):
        self.reports('3: blank lines at the end', LICENCE + 'int x;\n\n')

    def test_invisible_characters_are_reported(self):
        for character, name in (('\u200b', '200B'), ('\u202e', '202E'),
                                ('\u00a0', '00A0'), ('\ufeff', 'FEFF'),
                                ('\x1b', '001B')):
            self.reports(f'1: the invisible character U+{name}', f'a{character}b\n',
                         'A.md')

    def test_bytes_that_are_no_utf8_are_reported(self):
        self.reports('1: no UTF-8 at byte 36', LICENCE.encode() + b' \xff\n')

    def test_line_of_91_columns_is_reported_and_of_90_is_not(self):
        self.reports('3: 91 columns', LICENCE + f'/*{"-" * 86}*/\n/*{"-" * 87}*/\n')
        self.assertNotIn(':2:', self.gate('text').stdout)

    def test_missing_licence_line_is_reported(self):
        self.reports('1: the first line must be', 'int x;\n')
        self.reports('2: the line must be', '#!/bin/bash\nset -e\n', 'tools/planted')
        self.reports('1: the line must be', 'import os\n', 'tools/planted.py')

    def test_vague_name_is_reported(self):
        for path in ('ref/util.c', 'ref/common/x.c', 'verify/misc.h', 'ref/a_helper.c'):
            self.reports('1: the name', LICENCE, path)

    def test_file_over_4_mib_is_reported(self):
        self.reports('1: 4194305 bytes', b'\0' * (4194304 + 1), 'corpus/large.bin')

    def test_tree_over_50_mib_is_reported(self):
        for number in range(13):
            self.plant(f'corpus/{number}.bin', b'\0' * 4194304)
        self.assert_reports('bytes in all files', 'text')


class LengthsGate(Tree):
    def function(self, lines):
        body = '    x++;\n' * (lines - 4)
        return f'static int grow(int x,\n                int y)\n{{\n{body}}}\n'

    def test_lengths_at_the_limits_pass(self):
        table = 'static const int t[] = {\n' + '    F(1),\n' * 90 + '};\n'
        self.plant('ref/planted.c', LICENCE + table + '\n' + self.function(80))
        self.plant('ref/file.c', LICENCE + '\n' * 599)
        self.assert_passes('lengths')

    def test_function_of_81_lines_is_reported(self):
        self.plant('ref/planted.c', LICENCE + 'int f(void);\n\n' + self.function(81))
        self.assert_reports('ref/planted.c:4: grow has 81 lines', 'lengths')

    def test_long_test_macro_is_reported(self):
        body = '    x++;\n' * 80
        self.plant('ref/planted.c',
                   f'{LICENCE}START_TEST(adds)\n{{\n{body}}}\nEND_TEST\n')
        self.assert_reports('START_TEST has 83 lines', 'lengths')

    def test_file_of_601_lines_is_reported(self):
        self.plant('ref/planted.c', LICENCE + '\n' * 600)
        self.assert_reports('601 lines; at most 600', 'lengths')


class CommitsGate(Tree):
    def commit(self, message):
        git = ['git', '-C', self.root, '-c', 'user.name=A', '-c', 'user.email=a@b.test',
               '-c', 'commit.gpgsign=false', '-c', 'init.defaultBranch=main']
        run([*git, 'init', '-q'], check=True)
        run([*git, 'commit', '-q', '--allow-empty', '--cleanup=verbatim', '-m', message],
            check=True)

    def test_tree_without_history_passes(self):
        self.assert_passes('commits')

    def test_good_message_passes(self):
        self.commit('verify: ' + 'a' * 57 + '\n\nWhy it was needed.\n')
        self.assert_passes('commits')

    def test_bad_messages_are_reported(self):
        for message, words in (('Fix it', 'must read `area: what`'),
                               ('verify: ' + 'a' * 58, 'has 66 characters'),
                               ('verify: stop.', 'ends with a full stop'),
                               ('verify: a\nbody', 'second line must be blank')):
            self.commit(message)
            self.assert_reports(words, 'commits')


class PythonGate(Tree):
    def test_standard_library_and_own_modules_pass(self):
        self.plant('tools/near.py', SCRIPT)
        self.plant('tools/run', SCRIPT + 'import near\nfrom os.path import join\n')
        self.assert_passes('python_scripts')

    def test_foreign_module_is_reported(self):
        self.plant('tools/planted.py',
                   SCRIPT + '\n\ndef f():\n    from numpy import abs\n')
        self.assert_reports('planted.py:7: numpy is not in', 'python_scripts')

    def test_adapters_may_need_the_packages_that_they_adapt_and_no_others(self):
        self.plant('tools/adapters/near.py', SCRIPT + 'import torch\nimport flash_mla\n')
        self.assert_passes('python_scripts')
        self.plant('tools/adapters/far.py', SCRIPT + 'import numpy\n')
        self.assert_reports('tools/adapters/far.py:4: numpy is not in', 'python_scripts')
        os.unlink(os.path.join(self.root, 'tools/adapters/far.py'))
        self.plant('tools/planted.py', SCRIPT + 'import torch\n')
        self.assert_reports('tools/planted.py:4: torch is not in', 'python_scripts')

    def test_syntax_error_is_reported(self):
        self.plant('tools/planted', SCRIPT + 'def f(:\n')
        self.assert_reports('tools/planted:4: does not compile', 'python_scripts')


class LayersGate(Tree):
    def include(self, path, *headers):
        lines = ''.join(f'#include {header}\n' for header in headers)
        self.plant(path, LICENCE + lines)

    def test_includes_that_point_down_pass(self):
        self.include('ref/kernel/a.c', '<math.h>', '"ref/unit/dot_add.h"')
        self.include('ref/oracle/a.c', '"ref/tensor.h"', '"ref/oracle/exact.h"')
        self.include('verify/check/a.c', '<stdio.h>', '"verify/operation/operation.h"',
                     '"ref/unit/scalar.h"')
        self.include('verify/operation/gemm/a.c', '"ref/kernel/gemm.h"')
        self.include('verify/command/a.c', '"verify/check/result.h"')
        self.assert_passes('layers')

    def test_includes_that_point_up_or_aside_are_reported(self):
        for layer, header in (('ref/format/', 'ref/unit/dot_add.h'),
                              ('ref/unit/', 'ref/kernel/gemm.h'),
                              ('ref/', 'ref/format/minifloat.h'),
                              ('ref/oracle/', 'ref/format/minifloat.h'),
                              ('ref/oracle/', 'ref/kernel/gemm.h'),
                              ('ref/kernel/', 'ref/oracle/exact.h'),
                              ('ref/kernel/', 'verify/case/case.h'),
                              ('verify/case/', 'verify/operation/gemm/gemm.h'),
                              ('verify/report/', 'verify/operation/gemm/gemm.h'),
                              ('verify/backend/', 'ref/kernel/gemm.h'),
                              ('verify/check/', 'ref/oracle/exact.h'),
                              ('verify/check/', 'ref/unit/dot_add.h'),
                              ('verify/operation/', 'verify/check/result.h'),
                              ('verify/check/', 'verify/command/command.h'),
                              ('gpu/', 'ref/tensor.h')):
            with self.subTest(layer=layer, header=header):
                self.include(layer + 'planted.c', f'"{header}"')
                self.assert_reports(f'{layer}planted.c:2: {layer} must not include',
                                    'layers')
                os.remove(os.path.join(self.root, layer, 'planted.c'))

    def test_printing_reference_is_reported(self):
        self.include('ref/kernel/planted.c', '<stdio.h>')
        self.assert_reports('ref/ must not include <stdio.h>', 'layers')

    def test_include_not_from_the_root_is_reported(self):
        self.include('ref/unit/planted.c', '"dot_add.h"', '"../tensor.h"',
                     '<ref/tensor.h>')
        for words in ('2: "dot_add.h" is no path', '3: "../tensor.h" is no path',
                      '4: "ref/tensor.h" is ours'):
            self.assert_reports(words, 'layers')

    def test_header_that_meson_writes_passes_and_an_unknown_one_is_reported(self):
        self.plant('ref/unit/meson.build', "custom_target(output: 'table.h')\n")
        self.include('ref/unit/planted.c', '"ref/unit/table.h"')
        self.assert_passes('layers')
        self.include('ref/unit/planted.c', '"ref/unit/able.h"')
        self.assert_reports('planted.c:2: "ref/unit/able.h" is no path', 'layers')

    def test_folder_without_a_rule_is_reported(self):
        self.include('extra/planted.c', '<math.h>')
        self.assert_reports('extra/planted.c:1: no rule', 'layers')


class HeadersGate(Tree):
    def test_guarded_headers_pass(self):
        self.assert_passes('headers')

    def test_header_that_needs_another_is_reported(self):
        self.plant('ref/planted.h', LICENCE + 'int assay_f(uint8_t code);\n')
        self.assert_reports('planted.h:1: does not compile alone and twice with gcc',
                            'headers')
        self.assert_reports('with clang', 'headers')

    def test_header_for_cuda_is_one_for_cplusplus(self):
        text = LICENCE + '#ifndef F_H\n#define F_H\nnamespace f {}\n#endif\n'
        self.plant('tests/verify/fake_cuda/f.h', text)
        self.assert_passes('headers')
        self.plant('ref/planted.h', text)
        self.assert_reports('planted.h:1: does not compile', 'headers')

    def test_header_without_a_guard_is_reported(self):
        self.plant('ref/planted.h', LICENCE + 'struct assay_s {\n    int a;\n};\n')
        self.assert_reports('redefinition of', 'headers')


class SymbolsGate(Tree):
    def archive(self, name, source):
        base = os.path.join(self.root, name)
        run(['gcc', '-x', 'c', '-c', '-', '-o', base + '.o'], input=source, check=True)
        run(['ar', 'crT', f'{base}.a', base + '.o'], check=True)

    def setUp(self):
        super().setUp()
        self.archive('libassay_base', 'int assay_b(void) { return 1; }')
        self.archive('libassay_model', 'static int s; int assay_m(void) { return s; }')
        self.archive('libassay_oracle', 'int assay_b(void); double floor(double);'
                     'double assay_o(void) { return floor(assay_b()); }')

    def test_prefixed_archives_with_an_independent_oracle_pass(self):
        self.assert_passes('symbols')

    def test_name_without_the_prefix_is_reported(self):
        self.archive('libassay_model', 'int table; int assay_m(void) { return table; }')
        self.assert_reports('libassay_model.a: table has no prefix', 'symbols')

    def test_archives_of_tests_may_have_other_names(self):
        os.mkdir(os.path.join(self.root, 'tests'))
        self.archive('tests/libfixture', 'int table;')
        self.assert_passes('symbols')

    def test_oracle_that_needs_the_model_is_reported(self):
        self.archive('libassay_oracle', 'int assay_m(void);'
                     'int assay_o(void) { return assay_m(); }')
        self.assert_reports('libassay_oracle.a: needs assay_m', 'symbols')

    def test_missing_archive_is_reported(self):
        os.remove(os.path.join(self.root, 'libassay_oracle.a'))
        self.assert_reports('there is no libassay_oracle.a', 'symbols')


class SameBitsGate(Tree):
    def write(self, name, **changes):
        output = {'name': 'd', 'candidate_hash': changes.pop('candidate_hash', '12ab')}
        case = {'case': 'op m=1', 'verdict': 'equal', 'seconds': 0.1, 'outputs': [output]}
        case.update(changes)
        lines = ({'schema': 1, 'threads': name}, case, {'cases': 1, 'seconds': name})
        path = os.path.join(self.root, name)
        self.plant(name, ''.join(json.dumps(line) + '\n' for line in lines))
        return path

    def test_runs_that_differ_in_time_only_pass(self):
        self.assert_passes('same_bits', self.write('a'), self.write('b', seconds=9.0))

    def test_other_bits_or_verdict_are_reported(self):
        first = self.write('a')
        for changes in ({'candidate_hash': '12ac'}, {'verdict': 'bounded'}):
            self.assert_reports('differs from', 'same_bits', first,
                                self.write('b', **changes))

    def test_run_without_hashes_or_cases_is_reported(self):
        first = self.write('a')
        self.assert_reports('no candidate_hash', 'same_bits', first,
                            self.write('b', candidate_hash=None))
        self.assert_reports('no candidate_hash', 'same_bits', first,
                            self.write('b', outputs=[]))
        self.plant('empty', '{"schema": 1}\n')
        self.assert_reports('no case in it', 'same_bits', first,
                            os.path.join(self.root, 'empty'))

    def test_missing_case_is_reported(self):
        first, second = self.write('a'), self.write('b')
        with open(first, encoding='utf-8') as file:
            self.plant('a', file.read() * 2)
        self.assert_reports('1 cases, not 2', 'same_bits', first, second)


class TestCounter(Tree):
    def count(self, *tests):
        self.plant('testlog.json', ''.join(json.dumps(test) + '\n' for test in tests))
        path = os.path.join(self.root, 'testlog.json')
        return self.gate('count_tests', path).stdout.split()

    def test_tap_cases_are_counted_one_by_one(self):
        tap = '1..3\nok 1 - a.c:s:x: Passed\nnot ok 2 - a.c:s:y: 1 != 2\nok 3 - z\n'
        self.assertEqual(self.count({'result': 'FAIL', 'stdout': tap}), ['2', '1'])

    def test_broken_program_is_one_failure(self):
        self.assertEqual(self.count({'result': 'TIMEOUT', 'stdout': 'ok 1 - a\n'},
                                    {'result': 'FAIL'}), ['1', '2'])

    def test_skipped_case_is_neither(self):
        self.assertEqual(self.count({'result': 'SKIP', 'stdout': '1..0 # SKIP\n'},
                                    {'result': 'OK', 'stdout': 'ok 1\nok 2 # SKIP no\n'}),
                         ['1', '0'])

    def test_missing_log_counts_nothing(self):
        self.assertEqual(self.gate('count_tests', '/nowhere').stdout.split(), ['0', '0'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv)

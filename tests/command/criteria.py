# SPDX-License-Identifier: MIT
"""`assay verify --criteria`: other people's pass rules beside our verdict."""
import struct
import unittest
import xml.etree.ElementTree as ElementTree
from collections import Counter

from assay_tool import CORPUS, ToolTest, results, run

import safetensors_file

WRONG = ('fp8_gemm_nt m=64 n=64 k=4096 recipe=tensor out=f32 data=positive seed=7',
         '--candidate', 'model:promote_k=512')
NAMES = ['deepgemm', 'flashmla', 'torch', 'cutlass', 'flashinfer']
ALL = ','.join(NAMES)


class Criteria(ToolTest):
    def test_a_wrong_kernel_that_others_accept_still_fails(self):
        status, cases, summary = results(*WRONG, '--criteria', ALL)
        self.assertEqual((status, cases[0]['verdict'], cases[0]['passed']),
                         (1, 'outside', False))
        self.assertEqual(summary['failed'], 1)
        self.assertEqual(cases[0]['criteria'],
                         {'deepgemm': 'would pass', 'flashmla': 'has no rule',
                          'torch': 'would fail', 'cutlass': 'would pass',
                          'flashinfer': 'would pass'})

    def test_nothing_else_changes(self):
        for case in (WRONG, ('mla_dense_decode b=2 h_q=4 s_k=70,300',),
                     ('--recorded', CORPUS / 'examples' / 'flipped_bit.safetensors.zst')):
            plain = results(*case)
            with_criteria = results(*case, '--criteria', ALL)
            for row in plain[1] + with_criteria[1]:
                del row['seconds']
                row.pop('criteria', None)
                for output in row['outputs']:
                    output.pop('criteria', None)
            self.assertEqual(with_criteria, plain)

    def test_one_flipped_bit_escapes_a_rule_that_looks_at_sums(self):
        path = CORPUS / 'examples' / 'flipped_bit.safetensors.zst'
        status, cases, _ = results('--recorded', path, '--criteria', 'deepgemm,torch')
        self.assertEqual((status, cases[0]['verdict']), (1, 'outside'))
        self.assertEqual(cases[0]['criteria'],
                         {'deepgemm': 'would pass', 'torch': 'would fail'})
        torch, = [row for row in cases[0]['outputs'][0]['criteria']
                  if row['name'] == 'torch']
        self.assertGreaterEqual(torch['beyond'], 1)
        self.assertEqual(torch['elements'], 5032)

    def words_on_recorded(self, files, criteria):
        """What the criteria say about recorded outputs, all of which equal the model."""
        words = {name: Counter() for name in criteria.split(',')}
        for path in sorted((CORPUS / 'recorded').rglob(files)):
            status, cases, _ = results('--recorded', path, '--criteria', criteria)
            self.assertEqual((status, {case['verdict'] for case in cases}),
                             (0, {'equal'}), path)
            for case in cases:
                for name, word in case['criteria'].items():
                    words[name][word] += 1
        return words

    def test_deepgemm_on_the_h200_meets_its_own_rule_and_not_all_others(self):
        words = self.words_on_recorded('deepgemm*', 'deepgemm,torch')
        self.assertGreaterEqual(words['deepgemm']['would pass'], 20)
        self.assertEqual(words['deepgemm'].total(), words['deepgemm']['would pass'])
        self.assertGreater(words['torch']['would fail'], 0)

    def test_flashmla_on_the_h200_meets_its_own_rule_only_on_some_data(self):
        """Its absolute limit is for values of a tenth, as its own tests draw them."""
        words = self.words_on_recorded('flashmla_dense*', 'flashmla,cutlass')
        self.assertGreater(words['flashmla']['would pass'], 0)
        self.assertGreater(words['flashmla']['would fail'], 0)
        self.assertEqual(words['cutlass'].total(), words['cutlass']['has no rule'])

    def test_the_figures_are_those_of_the_recorded_outputs(self):
        """Recomputed from two recordings; f32 holds the oracle's value to 2^-24."""
        d = []
        for candidate in (WRONG[2], 'oracle'):
            _, tensors = safetensors_file.read(self.record(WRONG[0], candidate))
            data = tensors['d'].data
            d.append(struct.unpack(f'<{len(data) // 4}f', data))
        norms = sum(x * x for row in d for x in row)
        difference = 1 - 2 * sum(x * y for x, y in zip(*d)) / norms
        beyond = sum(abs(x - y) > 1e-5 + 1.3e-6 * abs(y) for x, y in zip(*d))
        _, cases, _ = results(*WRONG, '--criteria', 'deepgemm,torch')
        deepgemm, torch = cases[0]['outputs'][0]['criteria']
        self.assertAlmostEqual(deepgemm['difference'], difference, delta=1e-9)
        self.assertGreater(difference, 1e-6)
        self.assertEqual((torch['beyond'], torch['elements']), (beyond, 4096))

    def test_the_text_and_the_repeat_line_name_them(self):
        done = run('verify', *WRONG, '--criteria', 'cutlass,deepgemm')
        self.assertEqual(done.returncode, 1)
        self.assertIn('no part of the verdict: cutlass would pass, deepgemm would pass\n',
                      done.stdout)
        self.assertIn('--candidate model:promote_k=512 --criteria cutlass,deepgemm\n',
                      done.stdout)

    def test_junit_has_them_as_properties(self):
        path = self.folder / 'junit.xml'
        run('verify', *WRONG, '--criteria', 'torch,deepgemm', '--junit', path)
        found = {row.get('name'): row.get('value')
                 for row in ElementTree.parse(path).iter('property')}
        self.assertEqual((found['criteria/torch'], found['criteria/deepgemm']),
                         ('would fail', 'would pass'))

    def test_they_need_no_reference(self):
        status, cases, _ = results(WRONG[0], '--candidate', 'oracle', '--reference',
                                   'model', '--criteria', 'deepgemm')
        self.assertEqual(cases[0]['criteria'], {'deepgemm': 'would pass'})
        self.assertEqual(status, 1)

    def test_threads_do_not_change_a_figure(self):
        case = ('fp8_gemm_nt m=200 n=136 k=640 seed=3', '--candidate', 'oracle',
                '--criteria', ALL, '--json', '-')
        one, two = (run('verify', *case, env={'OMP_NUM_THREADS': threads}).stdout
                    for threads in '12')
        figures = [text[text.index('"criteria"'):text.index('"seconds"')]
                   for text in (one, two)]
        self.assertEqual(figures[0], figures[1])
        self.assertIn('"difference"', figures[0])

    def test_an_unknown_criterion_is_refused_with_the_nearest(self):
        for text, hint in (('torhc', "did you mean 'torch'?"), ('', 'legal: deepgemm'),
                           ('deepgemm,', 'legal: deepgemm')):
            done = run('verify', WRONG[0], '--criteria', text)
            self.assertEqual((done.returncode, done.stdout), (2, ''))
            self.assertIn(hint, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_the_list_names_limits_and_sources(self):
        done = run('list', 'criteria')
        self.assertEqual(done.returncode, 0)
        names = [line.split()[0] for line in done.stdout.splitlines()
                 if not line.startswith(' ')]
        self.assertEqual(list(dict.fromkeys(names)), NAMES)
        self.assertEqual(done.stdout.count('\n  from '), len(names))
        self.assertIn('calc_diff < 0.001', done.stdout)


if __name__ == '__main__':
    unittest.main()

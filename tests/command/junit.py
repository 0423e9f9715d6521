# SPDX-License-Identifier: MIT
"""`assay verify --junit FILE`, as CI systems read it: by a parser of their own, against
the schema, each name once."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from assay_tool import CORPUS, ROOT, TOOL, ToolTest, run

CASE = 'fp8_gemm_nt m=70 n=72 k=400'
FLIPPED = CORPUS / 'examples' / 'flipped_bit.safetensors.zst'
SCHEMA = ROOT / 'tests' / 'verify' / 'junit.xsd'


class Junit(ToolTest):
    def junit(self, *arguments, text='', expected=0):
        """The one testsuite that a run reports, valid and with right totals."""
        path = self.folder / 'junit.xml'
        done = run('verify', *arguments, '--junit', path, text=text)
        self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        self.check_schema(path)
        suites = ElementTree.parse(path).getroot()
        suite, = suites
        cases = suite.findall('testcase')
        for element in (suites, suite):
            self.assertEqual(element.get('tests'), str(len(cases)))
            for total, kind in (('failures', 'failure'), ('errors', 'error'),
                                ('skipped', 'skipped')):
                found = suite.findall(f'testcase/{kind}')
                self.assertEqual(element.get(total), str(len(found)), kind)
        names = [(case.get('classname'), case.get('name')) for case in cases]
        self.assertEqual(len(set(names)), len(names), names)
        return suite

    def check_schema(self, path):
        xmllint = shutil.which('xmllint')
        self.assertIsNotNone(xmllint, 'xmllint is missing; tools/setup check installs it')
        done = subprocess.run([xmllint, '--noout', '--schema', SCHEMA, path], check=False,
                              capture_output=True, encoding='utf-8', errors='replace')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_passes_is_a_plain_case_with_its_verdict(self):
        suite = self.junit(CASE)
        case, = suite.findall('testcase')
        self.assertEqual((case.get('classname'), case.get('name')),
                         ('fp8_gemm_nt', CASE + ' seed=0'))
        self.assertGreater(float(case.get('time')), 0)
        self.assertEqual([child.tag for child in case], ['properties'])
        found = {row.get('name'): row.get('value') for row in case.iter('property')}
        self.assertEqual((found['verdict'], found['numerics']),
                         ('bounded', 'deepgemm-1d2d'))
        self.assertLessEqual(float(found['error/bound']), 1)

    def test_a_flipped_bit_is_a_failure_whose_first_line_repeats_it(self):
        suite = self.junit('--recorded', FLIPPED, expected=1)
        failure, = suite.findall('testcase/failure')
        self.assertEqual(failure.get('type'), 'outside')
        self.assertEqual(failure.get('message'),
                         'outside; d: 1 of 5032 elements differ, 1 outside the bound')
        tool, *arguments = shlex.split(failure.text.splitlines()[0])
        self.assertEqual(tool, 'assay')
        self.assertEqual(run(*arguments).returncode, 1)
        self.assertIn('worst bits at [20, 100], tile 0,1', failure.text)

    def test_the_repeat_line_carries_candidate_and_requirement(self):
        suite = self.junit(CASE, '--candidate', 'oracle', '--require', 'equal',
                           expected=1)
        failure, = suite.findall('testcase/failure')
        self.assertRegex(failure.get('message'), '^bounded, equal is required; d: ')
        self.assertEqual(shlex.split(failure.text.splitlines()[0]),
                         ['assay', 'verify', CASE + ' seed=0', '--candidate', 'oracle',
                          '--require', 'equal'])

    def test_repeated_lines_of_recorded_files_are_told_apart(self):
        small = CORPUS / 'recorded' / 'deepgemm_many_c.safetensors.zst'
        twice = CORPUS / 'recorded' / 'deepgemm_n192_normal.safetensors.zst'
        for source, name in ((small, 'a'), (small, 'b'), (twice, 'c')):
            shutil.copy(source, self.folder / f'{name}.safetensors.zst')
        suite = self.junit('--recorded', self.folder, '--check', 'bitwise')
        cases = [(pathlib.Path(case.get('file')).name[0],
                  case.get('name').replace(str(self.folder), ''))
                 for case in suite.findall('testcase')]
        line = 'fp8_gemm_nt m={} data=recorded seed=0'
        one, two = line.format('1 n=576 k=384'), line.format('128 n=192 k=1024')
        long = line.format('128 n=192 k=1024 recipe=1d1d out=f32')
        self.assertEqual(cases, [('a', one + ' (/a.safetensors.zst case 0)'),
                                 ('b', one + ' (/b.safetensors.zst case 0)'),
                                 ('c', two),
                                 ('c', long + ' (/c.safetensors.zst case 1)'),
                                 ('c', long + ' (/c.safetensors.zst case 2)')])

    def test_a_line_that_is_repeated_gets_a_number(self):
        suite = self.junit(CASE, CASE + ' seed=1', CASE)
        self.assertEqual([case.get('name') for case in suite.findall('testcase')],
                         [CASE + ' seed=0', CASE + ' seed=1', CASE + ' seed=0 (2)'])

    def test_hostile_names_stay_valid_xml(self):
        name = os.fsencode(self.folder) + b'/a\x1b[31m<&\xff\xef\xbf\xbf.safetensors.zst'
        shutil.copy(FLIPPED, name)
        suite = self.junit('--recorded', os.fsdecode(name), expected=1)
        case, = suite.findall('testcase')
        self.assertTrue(case.get('file').endswith('/a?[31m<&????.safetensors.zst'))

    def test_an_indecisive_case_is_skipped_with_its_reason(self):
        suite = self.junit('fp8_gemm_nt m=0 n=8 k=16', expected=1)
        skipped, = suite.findall('testcase/skipped')
        self.assertEqual(skipped.get('type'), 'indecisive')
        self.assertEqual(skipped.get('message'),
                         'indecisive: no element of the outputs is defined')

    def test_a_case_that_a_recording_lacks_is_an_error(self):
        path = self.record(CASE + ' seed=9')
        suite = self.junit(CASE, '--candidate', f'recorded:{path}', expected=2)
        error, = suite.findall('testcase/error')
        self.assertEqual(error.get('type'), 'refused')
        self.assertIn('holds no case', error.get('message'))

    def test_a_run_of_nothing_is_an_error(self):
        suite = self.junit('--suite', '-', text='# nothing\n', expected=5)
        case, = suite.findall('testcase')
        self.assertEqual(case.get('name'), 'no case was selected')
        self.assertIsNotNone(case.find('error'))

    def test_text_stays_on_stdout_and_json_beside_it(self):
        json_path, junit_path = self.folder / 'a.json', self.folder / 'a.xml'
        done = run('verify', CASE, '--json', json_path, '--junit', junit_path)
        self.assertIn('PASSED', done.stdout)
        kinds = [json.loads(line)['type'] for line in json_path.read_text().splitlines()]
        self.assertEqual(kinds, ['header', 'case', 'summary'])
        self.check_schema(junit_path)
        self.assertEqual(sorted(self.folder.iterdir()), [json_path, junit_path])

    def test_a_dash_replaces_the_text(self):
        done = run('verify', CASE, '--junit', '-')
        self.assertEqual(ElementTree.fromstring(done.stdout).tag, 'testsuites')

    def test_two_reports_need_two_targets(self):
        for target in ('-', self.folder / 'report'):
            done = run('verify', CASE, '--json', target, '--junit', target)
            self.assertEqual((done.returncode, done.stdout), (2, ''))
            self.assertIn('--json and --junit both write to', done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_run_that_is_refused_keeps_the_old_report(self):
        path = self.folder / 'junit.xml'
        path.write_text('precious')
        self.assertEqual(run('verify', CASE + ' n=9', '--junit', path).returncode, 2)
        self.assertEqual(path.read_text(), 'precious')
        done = run('verify', CASE, '--junit', self.folder / 'no' / 'junit.xml')
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertEqual(list(self.folder.iterdir()), [path])

    def test_a_full_disk_is_the_environment_s_failure(self):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            done = subprocess.run([TOOL, 'verify', CASE, '--junit', '-'], stdout=full,
                                  stderr=subprocess.PIPE, encoding='utf-8', check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn('writing failed', done.stderr)


if __name__ == '__main__':
    unittest.main()

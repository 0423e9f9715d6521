# SPDX-License-Identifier: MIT
"""tools/gpu_check without a GPU: what it concludes from what the tools say. Programs that
only say things stand in for assay, nvidia-smi and compute-sanitizer."""
import json
import os
import re
import subprocess
import unittest

from assay_tool import ROOT, ToolTest

import gpu_host

PROGRAM = ROOT / 'tools' / 'gpu_check'
# Writes the report that a file names by the subcommand, and ends with its status.
ASSAY = '''#!/usr/bin/python3
import json, os, sys, time
with open(os.path.join(os.path.dirname(sys.argv[0]), 'answers')) as file:
    answers = json.load(file)
words = sys.argv[1:]
with open(os.path.join(os.path.dirname(sys.argv[0]), 'calls'), 'a') as file:
    print(json.dumps([words, os.environ.get('ASSAY_CUDA_LIBRARY')]), file=file)
for match, answer in answers:
    if all(any(part in word for word in words) for part in match):
        break
else:
    sys.exit('no answer to ' + ' '.join(words))
print('said', answer.get('said', ''), flush=True)
if answer.get('lines') and '--json' in words:
    with open(words[words.index('--json') + 1], 'w') as file:
        for line in answer['lines']:
            print(json.dumps(line), file=file)
if answer.get('bytes'):
    with open(os.path.join(words[words.index('--out') + 1], 'a'), 'w') as file:
        file.write('x' * answer['bytes'])
sys.exit(answer.get('status', 0))
'''
SMI = '#!/bin/sh\necho "name, driver"\necho "NVIDIA H200, 580.1"\n'
SANITIZER = '''#!/usr/bin/python3
import os, subprocess, sys
words = sys.argv[1:]
with open(os.path.join(os.path.dirname(sys.argv[0]), words[1] + '.said')) as file:
    said = file.read()
with open(words[words.index('--log-file') + 1].replace('%p', '17'), 'w') as file:
    file.write(said)
sys.exit(subprocess.run(words[6:]).returncode)
'''
CLEAN = '========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n'


def summary(ran=4, unsupported=1, compared=100, equal=100, **more):
    return {'type': 'summary', 'cases': ran + unsupported, 'unsupported': unsupported,
            'verdicts': {'not-judged': unsupported, 'equal': ran},
            'elements_compared': compared, 'elements_equal': equal, **more}


def case(status='ran', **more):
    return {'type': 'case', 'status': status, 'outputs': [{'name': 'd'}], **more}


GROUP = {'type': 'bench_group', 'group': 'fp8_gemm_nt 1d2d', 'cache': 'cold',
         'candidate': 'cuda:inputs=0', 'over_upstream': 0.625}
GOOD = [(['fuzz'], {'lines': [summary(ran=90, unsupported=10)]}),
        (['record', '--suite'], {'bytes': 1000}),
        (['bench'], {'lines': [{'type': 'header'}, GROUP]}),
        (['verify'], {'lines': [summary()]})]


class GpuCheck(ToolTest):
    def setUp(self):
        super().setUp()
        for name, text in (('assay', ASSAY), ('nvidia-smi', SMI),
                           ('compute-sanitizer', SANITIZER)):
            self.plant(name, text)
        for tool in 'memcheck', 'racecheck', 'synccheck':
            self.plant(tool + '.said', CLEAN)
        self.plant('library.so', '')

    def plant(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def check(self, *arguments, answers=GOOD, status=0, cases=60):
        """{step: (verdict, note)} and the last line."""
        self.plant('answers', json.dumps(answers))
        environment = {**os.environ, 'PATH': f'{self.folder}:/usr/bin:/bin'}
        done = subprocess.run(
            ['/usr/bin/python3', '-B', PROGRAM, '--assay', self.folder / 'assay',
             '--library', self.folder / 'library.so', '--out', self.folder / 'out',
             '--cases', str(cases), *arguments], env=environment, capture_output=True,
            encoding='utf-8', check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        rows = re.findall(r'^(\w\S*) +[\d.]+ s  (\w+)(?:  \((.*)\))?$', done.stdout,
                          re.MULTILINE)
        return {name: row for name, *row in rows}, done.stdout.splitlines()[-1]

    def calls(self):
        return [json.loads(line)
                for line in (self.folder / 'calls').read_text().splitlines()]

    def one(self, step, *answers, **options):
        rows, _ = self.check('--steps', step, answers=[*answers, *GOOD], **options)
        return rows[step]

    def test_all_is_well(self):
        (self.folder / 'out').mkdir()
        rows, last = self.check()
        self.assertEqual(last, f'{len(rows)} passed, 0 failed')
        self.assertEqual(rows['facts'], ['ok', 'NVIDIA H200, 580.1'])
        self.assertEqual(rows['campaign'],
                         ['ok', '90 ran, 10 unsupported, 100 elements, 0 differ'])
        self.assertEqual(rows['bench'], ['ok', 'of upstream: fp8_gemm_nt 1d2d cold 0.62'])
        self.assertEqual(rows['record'], ['ok', '1 files, 1000 bytes'])
        self.assertIn('1 processes, ERROR SUMMARY: 0 errors; 4 ran', rows['racecheck'][1])
        for name in rows:
            self.assertTrue((self.folder / 'out' / f'{name}.log').is_file(), name)
        self.assertEqual({library for _, library in self.calls()},
                         {str(self.folder / 'library.so')})

    def test_bench_gets_the_cases_of_gemms_with_their_figures(self):
        self.one('bench')
        lines = (self.folder / 'out' / 'targets.cases').read_text().splitlines()
        cases = [at for at, line in enumerate(lines) if not line.startswith('#')]
        self.assertGreater(len(cases), 10)
        for at in cases:
            self.assertRegex(lines[at], '^(fp8|m_grouped|k_grouped|quantise|scale)')
        self.assertTrue(lines[cases[0] - 1].startswith('#: upstream'))
        self.assertEqual(cases[-1], len(lines) - 1)

    def test_nothing_that_differs_or_did_not_run_passes(self):
        for step, word in (('recorded_deepgemm', 'verify'), ('repeats', 'verify'),
                           ('graph', 'verify'), ('campaign', 'fuzz')):
            for lines, status, note in (
                    ([summary(equal=99)], 0, '100 elements, 1 differ'),
                    ([summary(ran=0, unsupported=5)], 0, '0 ran, 5 unsupported'),
                    ([summary(compared=0, equal=0)], 0, '0 elements'),
                    ([summary()], 1, 'exit status 1; 4 ran'),
                    ([], 3, 'exit status 3')):
                with self.subTest(step=step, note=note):
                    row = self.one(step, ([word], {'lines': lines, 'status': status}),
                                   status=1, cases=4)
                    self.assertEqual(row[0], 'FAILED')
                    self.assertIn(note, row[1])

    def test_an_old_report_is_no_report(self):
        self.one('graph')
        row = self.one('graph', (['verify'], {}), status=1)
        self.assertEqual(row[0], 'FAILED')

    def test_a_campaign_goes_on_until_enough_cases_have_run(self):
        few = (['fuzz'], {'lines': [summary(ran=20, unsupported=80)]})
        row = self.one('campaign', (['campaign_2'], {'lines': [summary(ran=30)]}), few,
                       cases=50)
        self.assertEqual(row, ['ok', '50 ran, 81 unsupported, 200 elements, 0 differ'])
        asked = [int(words[words.index('--cases') + 1]) for words, _ in self.calls()]
        # As if 80 of 100 ran, and then as 20 of the 112 drawn did.
        self.assertEqual(asked, [112, 30 * 112 // 20 + 50])
        row = self.one('campaign', few, cases=200, status=1)
        self.assertEqual(row[0], 'FAILED')
        self.assertTrue(row[1].startswith('160 ran'), row[1])

    def test_a_failure_shows_the_end_of_its_log_and_the_rest_goes_on(self):
        self.plant('nvidia-smi', '#!/bin/sh\necho "no devices were found"\nexit 6\n')
        rows, last = self.check(status=1)
        self.assertEqual(rows['facts'], ['FAILED', 'exit status 6'])
        self.assertEqual(last, f'{len(rows) - 1} passed, 1 failed')
        self.assertIn('no devices were found',
                      (self.folder / 'out' / 'facts.log').read_text())
        os.unlink(self.folder / 'nvidia-smi')
        self.assertEqual(self.check('--steps', 'facts', status=1)[0]['facts'][0],
                         'FAILED')

    def test_recordings_that_are_too_large_or_absent(self):
        for size in 0, 2 ** 20 + 1:
            row = self.one('record', (['record'], {'bytes': size}), status=1)
            self.assertEqual(row[0], 'FAILED')
            self.assertIn(f'{size} bytes recorded', row[1])

    def test_sanitizers(self):
        hazards = '========= RACECHECK SUMMARY: {0} hazards displayed ({0} errors)\n'
        for said, verdict, note in (
                (hazards.format(0), 'ok', '1 processes, RACECHECK SUMMARY: 0 hazards'),
                (CLEAN + hazards.format(3), 'FAILED', '3 hazards'),
                (CLEAN + CLEAN.replace('0 err', '12 err'), 'FAILED', '12 errors'),
                ('========= Error: Device not supported. Please refer to the manual\n'
                 '========= ERROR SUMMARY: 1 error\n', 'refused', 'Device not supported'),
                ('', 'refused', 'nothing about any process')):
            self.plant('racecheck.said', said)
            # Refused is neither, but that alone proves nothing.
            row = self.one('racecheck', status=0 if verdict == 'ok' else 1)
            self.assertEqual(row[0], verdict)
            self.assertIn(note, row[1])
        self.plant('racecheck.said', CLEAN)
        row = self.one('racecheck', (['verify'], {'lines': [summary(equal=9)]}), status=1)
        self.assertEqual(row[0], 'FAILED')
        row = self.one('racecheck', (['verify'], {'status': 3}), status=1)
        self.assertEqual(row, ['FAILED', 'the run beneath it left no report'])

    def test_every_tile_there_is_gets_its_cases(self):
        self.assertEqual(self.one('tiles')[0], 'ok')
        asked = {word for words, _ in self.calls() for word in words if 'tile=' in word}
        self.assertEqual(asked, {f'cuda:tile={height}x{width},cluster=2'
                                 for case in ('fp8_gemm_nt', 'k_grouped_fp8_gemm_nt')
                                 for height, width in gpu_host.tiles(case)})
        row = self.one('tiles', (['fuzz'], {'lines': [summary(ran=40, equal=99)]}),
                       status=1)
        self.assertEqual(row, ['FAILED', '40 ran, 1 unsupported, 100 elements, 1 differ'])

    def test_refused_steps_are_counted_apart(self):
        self.plant('memcheck.said', 'Device not supported\n')
        rows, last = self.check()
        self.assertEqual(last, f'{len(rows) - 1} passed, 0 failed')
        self.assertEqual(rows['memcheck'][0], 'refused')

    def test_planted_faults(self):
        self.plant('memcheck.said', '========= Invalid __global__ write of size 8\n')
        finding = {'check': 'repeat', 'failure': True}
        rows, last = self.check(
            '--faults', str(self.folder / 'library.so'), status=1, answers=[
                (['fault=no-full-wait'], {'status': 1, 'lines': [case(
                    findings=[finding, {'check': 'batch', 'failure': False}],
                    outputs=[{'differ': 3, 'outside': 2}]), summary()]}),
                (['fault=early-release'], {'lines': [case(), summary()]}),
                (['fault=offset-32-bits'], {'status': 3, 'lines': [
                    case('failed', message='a launch wrote behind d'), summary()]}),
                (['fault=scale-stage'], {'status': 5, 'lines': [
                    case('unsupported'), summary()]}),
                (['fault='], {'status': 3, 'lines': [case('hung'), summary()]}),
                (['verify'], {'lines': [case(), summary()]})])
        self.assertEqual(rows['fault_no-full-wait'],
                         ['ok', 'found by bitwise, bound, repeat'])
        self.assertEqual(rows['fault_early-release'][0], 'FAILED')
        self.assertEqual(rows['fault_scale-stage'][0], 'FAILED')
        self.assertEqual(rows['fault_offset-32-bits'][1],
                         'found by failed: a launch wrote behind d')
        self.assertEqual(rows['fault_wrong-peer'], ['ok', 'found by hung'])
        self.assertEqual(rows['memcheck_control'],
                         ['ok', 'Invalid __global__ write of size 8'])
        self.assertGreater(len([name for name in rows if name.startswith('clean_')]), 3)
        self.assertEqual(last, f'{len(rows) - 2} passed, 2 failed')
        table = (self.folder / 'out' / 'faults.md').read_text().splitlines()
        self.assertRegex(table[3], r'\| no-full-wait \| `fp8_.*` \| bitwise, bound, rep')

    def test_a_faults_library_that_is_wrong_by_itself(self):
        rows, _ = self.check(
            '--faults', str(self.folder / 'library.so'), status=1, answers=[
                (['fault='], {'status': 3, 'lines': [case('hung'), summary()]}),
                (['verify'], {'lines': [case(), summary(equal=99)]})])
        self.assertEqual({row[0] for name, row in rows.items() if 'clean' in name},
                         {'FAILED'})
        self.assertEqual(rows['memcheck_control'], ['FAILED', 'memcheck saw nothing'])

    def test_bad_usage(self):
        for arguments, words in (
                (['--assay', '/nowhere'], '/nowhere does not exist; name a file'),
                (['--steps', 'facts,none'], "no step is called 'none'")):
            done = subprocess.run(['/usr/bin/python3', '-B', PROGRAM, '--library',
                                   '/dev/null', '--out', self.folder / 'out', *arguments],
                                  capture_output=True, encoding='utf-8', check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == '__main__':
    unittest.main()

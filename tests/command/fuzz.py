# SPDX-License-Identifier: MIT
"""`assay fuzz` and `assay merge`: campaigns that are killed, shared out, cut short and
misused."""
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from assay_tool import TOOL, ToolTest, run

PLUGINS = pathlib.Path(os.environ.get('ASSAY_PLUGINS',
                                      pathlib.Path(TOOL).parent / 'plugin'))
CASES = 240
CAMPAIGN = ('--op', 'fp8_gemm_nt,convert,quantise', '--candidate',
            'fault:sum-of-13-bits', '--seed', '7', '--cost', '60000')
KILLS = 10
SHARDING = ('TEST_SHARD_INDEX', 'TEST_TOTAL_SHARDS', 'TEST_SHARD_STATUS_FILE',
            'SLURM_ARRAY_TASK_ID', 'SLURM_ARRAY_TASK_COUNT', 'SLURM_ARRAY_TASK_MIN',
            'SLURM_ARRAY_TASK_STEP')


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if name not in SHARDING}
    return kept | variables


def without_times(lines):
    """JSON Lines, but for the seconds and the rate."""
    objects = [json.loads(line) for line in lines.splitlines()]
    for item in objects:
        item.pop('seconds', None)
        item.pop('rate', None)
    return objects


def text_of(done):
    """The text but for the line with the time."""
    return re.sub(r'\n\d+ cases? in .* cases/s\n$', '', done.stdout)


def finished_in(folder):
    """Numbers of the cases that have results."""
    path = folder / 'journal.jsonl'
    if not path.exists():
        return []
    lines = path.read_text(encoding='utf-8').split('\n')[:-1]
    return [json.loads(line)['number'] for line in lines if line.startswith('{"number"')]


class Fuzz(ToolTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / 'out'
        self.json = self.folder / 'report.json'

    def fuzz(self, *words, code=1, out=None, **variables):
        """The finished process, and its JSON report. Code None: 0 or 1."""
        self.json.unlink(missing_ok=True)
        done = run('fuzz', '--out', out or self.out, '--json', self.json, *words,
                   env=environment(**variables))
        if code is None:
            self.assertIn(done.returncode, (0, 1), done.stderr)
        else:
            self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done, without_times(self.json.read_text(encoding='utf-8'))

    def undisturbed(self):
        return self.fuzz(*CAMPAIGN, '--cases', CASES, out=self.folder / 'undisturbed')

    def refused(self, *words, command='fuzz', sentence, **variables):
        done = run(command, *words, env=environment(**variables))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)

    # --- killed ---------------------------------------------------------------------

    def kill_once(self, chance, finished):
        jobs = chance.choice(('1', '1', '3'))
        with subprocess.Popen(
                [TOOL, 'fuzz', *CAMPAIGN, '--cases', str(CASES), '--out', self.out,
                 '--resume', '--jobs', jobs], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env=environment()) as process:
            while len(finished_in(self.out)) < finished:
                self.assertIsNone(process.poll(), 'it ended too early')
                time.sleep(0.002)
            time.sleep(chance.random() * 0.01)
            process.send_signal(signal.SIGKILL)

    def test_a_campaign_that_is_killed_again_and_again_comes_to_the_same_report(self):
        chance = random.Random(time.time_ns())
        before = []
        for number in range(KILLS):
            self.kill_once(chance, number * (CASES * 2 // 3) // KILLS)
            now = finished_in(self.out)
            self.assertEqual(now[:len(before)], before)
            before = now
        resumed = self.fuzz(*CAMPAIGN, '--cases', CASES, '--resume')
        numbers = finished_in(self.out)
        self.assertEqual(sorted(numbers), list(range(CASES)))
        again = self.fuzz(*CAMPAIGN, '--cases', CASES, '--resume')
        self.assertEqual(finished_in(self.out), numbers)
        undisturbed = self.undisturbed()
        for done, report in resumed, again:
            self.assertEqual(report, undisturbed[1])
            self.assertEqual(text_of(done), text_of(undisturbed[0]))

    def test_the_report_counts_what_it_lists(self):
        done, report = self.undisturbed()
        kinds = [line['type'] for line in report]
        findings = [line for line in report if line['type'] == 'finding']
        coverage = [line for line in report if line['type'] == 'coverage']
        tally, summary = report[-2:]
        self.assertEqual(kinds, ['header', 'campaign'] + ['coverage'] * 3 +
                         ['finding'] * len(findings) + ['tally', 'summary'])
        self.assertGreater(len(findings), 2)
        self.assertRegex(done.stdout, rf'\n{CASES} cases in [\d.]+ s, [\d.]+ cases/s\n$')
        self.assertEqual(len({line['signature'] for line in findings}), len(findings))
        self.assertEqual([line['number'] for line in findings],
                         sorted(line['number'] for line in findings))
        self.assertEqual(sum(line['cases'] for line in findings), summary['failed'])
        self.assertEqual(tally['finding_cases'], summary['failed'])
        self.assertEqual(tally['illegal'], CASES // 16)
        self.assertEqual(tally['accepted'], 0)
        self.assertEqual(summary['cases'], CASES)
        self.assertEqual(CASES, tally['illegal'] + summary['unsupported'] +
                         sum(line['cases'] for line in coverage))
        self.assertEqual([line['cases'] for line in coverage if
                          line['operation'] != 'fp8_gemm_nt'], [0, 0])
        for line in done.stdout.splitlines():
            if line.startswith('   assay verify '):
                break
        repeated = subprocess.run(['bash', '-c', line.replace('assay', '"$0"', 1), TOOL],
                                  capture_output=True, check=False, encoding='utf-8')
        self.assertEqual(repeated.returncode, 1, repeated.stdout)
        self.assertIn(findings[0]['case'], repeated.stdout)

    # --- shared out -----------------------------------------------------------------

    def share(self, cases, ways):
        """Runs all shards, each the way of its place."""
        for index, way in enumerate(ways):
            words, variables = [], {}
            if way == 'option':
                words = ['--shard', f'{index}/{len(ways)}']
            elif way == 'test':
                status = self.folder / 'status'
                variables = {'TEST_SHARD_INDEX': str(index),
                             'TEST_TOTAL_SHARDS': str(len(ways)),
                             'TEST_SHARD_STATUS_FILE': str(status)}
            else:
                variables = {'SLURM_ARRAY_TASK_ID': str(10 + 2 * index),
                             'SLURM_ARRAY_TASK_COUNT': str(len(ways)),
                             'SLURM_ARRAY_TASK_MIN': '10', 'SLURM_ARRAY_TASK_STEP': '2'}
            self.fuzz(*CAMPAIGN, '--cases', cases, *words, '--jobs', 1 + index % 2,
                      code=None, **variables)
            if way == 'test':
                self.assertTrue(status.exists())

    def merge(self, *folders, code=1):
        path = self.folder / 'merged.json'
        done = run('merge', *folders, '--json', path)
        self.assertEqual(done.returncode, code, done.stderr)
        return done, without_times(path.read_text(encoding='utf-8'))

    def test_shards_merge_to_the_report_of_the_undivided_campaign(self):
        undisturbed = self.undisturbed()
        self.share(CASES, ('option', 'test', 'slurm', 'slurm'))
        folders = sorted(self.out.iterdir())
        self.assertEqual([folder.name for folder in folders],
                         [f'shard-{index}-of-4' for index in range(4)])
        for merged in (self.merge(self.out), self.merge(*reversed(folders)),
                       self.merge(self.folder / 'undisturbed')):
            self.assertEqual(merged[1], undisturbed[1])
            self.assertEqual(text_of(merged[0]).strip(), text_of(undisturbed[0]).strip())

    def test_a_merge_without_all_shards_is_refused(self):
        self.share(60, ('option',) * 4)
        shards = [self.out / f'shard-{index}-of-4' for index in range(4)]
        self.refused(*shards[:3], command='merge', sentence='shard 3 of 4 is missing')
        self.refused(shards[1], command='merge', sentence='shards 0, 2, 3 of 4 are')
        self.refused(*shards, shards[2], command='merge', sentence='shard 2 once more')
        self.refused(self.folder, command='merge', sentence='holds neither journal.jsonl')
        self.refused(self.folder / 'x', command='merge', sentence="can't be read")
        with open(shards[1] / 'journal.jsonl', 'rb') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.refused(self.out, command='merge', sentence='is still writing it')
        other = self.folder / 'other'
        self.fuzz(*CAMPAIGN, '--cases', 61, '--shard', '3/4', out=other, code=None)
        self.refused(*shards[:3], other / 'shard-3-of-4', command='merge',
                     sentence='of another campaign, with --cases 61')
        self.fuzz(*CAMPAIGN, '--cases', 60, '--shard', '1/2', out=other, code=None)
        self.refused(shards[0], other / 'shard-1-of-2', command='merge',
                     sentence='is one of 2 shards, others are of 4')
        path = shards[2] / 'journal.jsonl'
        lines = path.read_text(encoding='utf-8').splitlines(True)
        path.write_text(''.join(lines[:-3]), encoding='utf-8')
        self.refused(self.out, command='merge',
                     sentence='shard-2-of-4/journal.jsonl is not finished: 1 of 15 cases')
        path.write_text(''.join(lines[:4]) + '[]\n', encoding='utf-8')
        self.refused(self.out, command='merge', sentence='line 5 is damaged')
        path.write_text('', encoding='utf-8')
        self.refused(self.out, command='merge', sentence='no header')
        done = run('verify', 'fp8_gemm_nt m=1 n=8 k=16', '--resume', other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(other, command='merge', sentence='the journal of `assay verify`')

    # --- cut short ------------------------------------------------------------------

    def test_a_time_budget_ends_a_campaign_that_can_be_gone_on_with(self):
        began = time.monotonic()
        first = self.fuzz(*CAMPAIGN, '--time', '0.3s', code=None)
        self.assertLess(time.monotonic() - began, 20)
        count = len(finished_in(self.out))
        self.assertEqual(first[1][-1]['cases'], count)
        journal = (self.out / 'journal.jsonl').read_text(encoding='utf-8')
        self.assertNotIn('"summary"', journal)
        second = self.fuzz(*CAMPAIGN, '--time', '1.5s', '--resume', code=None)
        more = finished_in(self.out)
        self.assertGreater(len(more), count)
        self.assertEqual(sorted(more), list(range(len(more))))
        self.assertEqual(self.merge(self.out, code=second[0].returncode)[1], second[1])
        self.fuzz(*CAMPAIGN, '--cases', CASES, '--time', '5m', out=self.folder / 'both')
        self.assertEqual(len(finished_in(self.folder / 'both')), CASES)

    def test_a_short_time_leaves_a_counted_campaign_unfinished(self):
        words = (*CAMPAIGN, '--cases', 100000, '--time', '0.2s')
        done, _ = self.fuzz(*words, code=None)
        self.assertIn('of seed 7', done.stdout)
        self.refused(self.out, command='merge', sentence='of 100000 cases are missing')

    # --- findings -------------------------------------------------------------------

    def test_a_crash_of_a_plugin_is_a_finding(self):
        words = ('--op', 'fp8_gemm_nt', '--cases', 160, '--cost', '30000', '--candidate',
                 f'plugin:{PLUGINS / "example.so"},mode=abort,rows=1', '--check', 'bound')
        for jobs in 1, 2:
            done, report = self.fuzz(*words, '--jobs', jobs, code=3,
                                     out=self.folder / str(jobs))
            findings = [line for line in report if line['type'] == 'finding']
            self.assertEqual(len(findings), 1, done.stdout)
            self.assertIn('crashed', findings[0]['signature'])
            self.assertGreaterEqual(findings[0]['cases'], 1)
            self.assertIn(' m=1 ', findings[0]['case'])
            self.assertEqual(report[-1]['broken'], findings[0]['cases'])

    def test_saved_findings_are_a_suite_that_fails(self):
        suite = self.folder / 'found.cases'
        suite.write_text('# mine\nfp8_gemm_nt m=1 n=8 k=32 seed=1', encoding='utf-8')
        words = ('--op', 'fp8_gemm_nt', '--candidate', 'fault:k-step-dropped', '--cost',
                 '20000', '--cases', 60, '--save', suite)
        _, report = self.fuzz(*words)
        text = suite.read_text(encoding='utf-8')
        lines = text.splitlines()
        self.assertEqual(lines[:2], ['# mine', 'fp8_gemm_nt m=1 n=8 k=32 seed=1'])
        signatures = [line['signature'] for line in report if line['type'] == 'finding']
        saved = [line[2:] for line in lines[2::2]]
        self.assertTrue(saved and set(saved) <= set(signatures))
        self.assertEqual(len(set(lines[3::2])), len(saved))
        done = run('verify', '--suite', suite, '--candidate', 'fault:k-step-dropped',
                   '--json', '-', '--max-indecisive', '9')
        self.assertEqual(done.returncode, 1, done.stderr)
        cases = [json.loads(line) for line in done.stdout.splitlines()[1:-1]]
        self.assertEqual([case['passed'] for case in cases[1:]], [False] * len(saved))
        self.fuzz(*words, '--resume')
        self.assertEqual(suite.read_text(encoding='utf-8'), text)
        self.assertEqual(list(self.folder.glob('found.cases?*')), [])

    # --- misuse ---------------------------------------------------------------------

    def test_what_cannot_be_is_refused(self):
        out = ('--out', self.out)
        some = (*out, '--cases', '5')
        for words, sentence in (
                (('--cases', '5'), 'name a folder for it by --out DIR'),
                (out, 'a campaign needs an end'),
                ((*out, '--cases', '0'), '--cases 0 is no count'),
                ((*out, '--time', '5'), '--time 5 is no time'),
                ((*out, '--time', '0s'), '--time 0s is no time'),
                ((*out, '--time', 's'), '--time s is no time'),
                ((*out, '--time', '-3m'), '--time -3m is no time'),
                ((*some, '--op', 'fp8_gem_nt'), "did you mean 'fp8_gemm_nt'?"),
                ((*some, '--op', 'sfu,sfu'), 'names sfu twice'),
                ((*some, '--op', ''), 'no operation'),
                ((*some, '--shard', '4/4'), 'use I/N with I from 0'),
                ((*some, '--seed', '-1'), '--seed -1 is no count'),
                ((*some, '--cost', '5'), '--cost 5 is no count'),
                ((*some, '--shape-pool', '0'), '--shape-pool 0 is no count'),
                ((*some, '--jobs', '0'), '--jobs 0'),
                ((*some, '--candidate', 'nothing'), "no backend is called 'nothing'"),
                ((*some, '--candidate', 'model:nothing'), "unknown numerics 'nothing'"),
                ((*some, '--check', 'nothing'), 'which is no check'),
                ((*some, '--timeout', 'x'), '--timeout x is no time'),
                ((*some, '--json', self.folder / 'no' / 'x'), 'writable folder'),
                (('--out', '/proc/nowhere', '--cases', '5'), "the folder can't be made")):
            self.refused(*words, sentence=sentence)
        self.refused(*some, TEST_TOTAL_SHARDS='2', sentence='TEST_SHARD_INDEX=')
        self.assertEqual(run('fuzz', 'fp8_gemm_nt m=1 n=8 k=16').returncode, 2)
        self.assertEqual(run('merge').returncode, 2)
        self.assertFalse((self.out / 'journal.jsonl').exists())

    def test_another_campaign_in_the_same_folder_is_refused(self):
        words = ('--op', 'sfu', '--cases', '20', '--out', self.out)
        done = run('fuzz', *words, env=environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.refused(*words, sentence='add --resume to go on')
        for more, sentence in ((('--seed', '1'), '--seed 0, not 1'),
                               (('--cost', '5000'), '--cost 2097152, not 5000'),
                               (('--shape-pool', '3'), '--shape-pool 0, not 3'),
                               (('--cases', '21'), 'of 20 cases, not of the 21'),
                               (('--op', 'convert'), 'of other 20 cases'),
                               (('--check', 'bound'), '--check '),
                               (('--timeout', '7'), '--timeout 60, not 7')):
            self.refused(*words, *more, '--resume', sentence=sentence)
        shutil.rmtree(self.out)
        self.assertEqual(run('fuzz', *words, '--resume', env=environment()).returncode, 0)

    def test_nothing_that_ran_is_no_success(self):
        done = run('fuzz', '--op', 'sfu', '--candidate', 'fault:promote-never',
                   '--cases', '20', '--out', self.out, env=environment())
        self.assertEqual(done.returncode, 5, done.stdout)

    def test_numerics_that_some_cases_cannot_have_are_unsupported(self):
        done, report = self.fuzz('--op', 'fp8_gemm_nt', '--candidate',
                                 'model:deepgemm-1d2d', '--cases', 120, '--cost', '9000',
                                 '--require', 'bounded', code=None)
        self.assertGreater(report[-1]['unsupported'], 0, done.stdout)
        self.assertGreater(report[-1]['passed'], 0)


if __name__ == '__main__':
    unittest.main()

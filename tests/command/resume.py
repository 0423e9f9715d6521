# SPDX-License-Identifier: MIT
"""`--resume`: runs that are killed, damaged and repeated."""
import collections
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from assay_tool import TOOL, run
from mixed_runs import FEW, SOME, MixedRuns, suite

MANY = 200
KILLS = 50


def journal_of(folder):
    """The whole lines of a journal."""
    try:
        text = (folder / 'journal.jsonl').read_text(encoding='utf-8')
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split('\n')[:-1]]


def finished_in(folder):
    return {line['case'] for line in journal_of(folder) if line['type'] == 'case'}


def count_finished(folder):
    try:
        return (folder / 'journal.jsonl').read_bytes().count(b'"type":"case"')
    except FileNotFoundError:
        return 0


def children(process):
    try:
        path = pathlib.Path(f'/proc/{process}/task/{process}/children')
        return [int(word) for word in path.read_text(encoding='ascii').split()]
    except OSError:
        return []


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Resume(MixedRuns):
    def start(self, jobs):
        return subprocess.Popen(
            [TOOL, 'verify', *self.words('killed', '--jobs', jobs, '--resume',
                                         self.journal)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding='utf-8',
            env=self.environment())

    def wait_for(self, process, finished):
        while True:
            has_ended = process.poll() is not None
            if count_finished(self.journal) >= finished:
                return
            if has_ended:
                self.fail(f'ended too early: {process.communicate()[1]}')
            time.sleep(0.005)

    def begun(self, number):
        """How often the case was begun."""
        return journal_of(self.journal).count({'type': 'begin', 'case': number})

    def kill_somebody(self, process, chance, is_first):
        """True when that ended the run. A case survives one kill of its job or worker in
        a run, so further ones are the run's."""
        below = children(process.pid)
        workers = [child for job in below for child in children(job)]
        victim = chance.random() if is_first else 1
        if victim < 0.2 and below:
            kill(chance.choice(below))
        elif victim < 0.4 and workers:
            kill(chance.choice(workers))
        else:
            kill(process.pid)
            process.communicate()
            return True
        return False

    def kill_often(self):
        """What had been launched and finished when a run was killed, for each of them."""
        chance = random.Random(time.time_ns())
        process, kills, moments = None, 0, []
        for number in range(KILLS):
            is_first = process is None
            if is_first:
                process = self.start(chance.choice((1, 1, 3)))
            self.wait_for(process, number * (MANY - 10) // KILLS)
            time.sleep(chance.random() * 0.03)
            kills += 1
            if self.kill_somebody(process, chance, is_first):
                moments.append((self.log.stat().st_size, finished_in(self.journal)))
                process = None
        if process is not None:
            kill(process.pid)
            process.communicate()
        self.assertEqual(kills, KILLS)
        return moments

    def test_a_run_that_is_killed_again_and_again_comes_to_the_same_results(self):
        self.select(MANY)
        undisturbed = self.verify('undisturbed')
        self.log.write_bytes(b'')
        moments = self.kill_often()
        self.assertGreater(len(moments), KILLS // 3)
        resumed = self.verify('resumed', '--jobs=2', f'--resume={self.journal}')
        again = self.verify('again', f'--resume={self.journal}')
        self.assertEqual(resumed, again)
        launches = self.log.read_text(encoding='ascii')
        for size, finished in moments:
            self.assertFalse(finished & set(launches[size:].splitlines()))
        self.compare(resumed, undisturbed)

    def compare(self, resumed, undisturbed):
        """A case that three kills have met by chance is to be reported as such."""
        begun = collections.Counter(line['case'] for line in journal_of(self.journal)
                                    if line['type'] == 'begin')
        texts = resumed[1].splitlines(), undisturbed[1].splitlines()
        self.assertEqual(len(texts[0]), MANY + 1)
        met = [number for number in range(MANY) if texts[0][number] != texts[1][number]]
        self.assertLess(len(met), 10)
        for number in met:
            self.assertEqual(begun[number], 3, texts[0][number])
            self.assertIn('ended the run 3 times', texts[0][number])
        if not met:
            self.assertEqual(resumed, undisturbed)

    def test_a_case_that_ended_two_runs_comes_last_and_after_three_not_at_all(self):
        undisturbed = self.verify('undisturbed', f'--resume={self.journal}')
        path = self.journal / 'journal.jsonl'
        header = path.read_text(encoding='utf-8').splitlines(True)[0]
        died = '{"type":"begin","case":%d}\n{"type":"resumed"}\n'
        stopped = '{"type":"begin","case":%d}\n{"type":"stopped"}\n'
        for jobs in 1, 3:
            path.write_text(header + died % 5 * 2 + stopped % 6 * 3 + died % 7 * 3 +
                            died % 9, encoding='utf-8')
            reports = self.verify('resumed', f'--resume={self.journal}', f'--jobs={jobs}')
            lines = [line for line in journal_of(self.journal)[19:]
                     if line['type'] in ('begin', 'case')]
            self.assertEqual(lines[-2], {'type': 'begin', 'case': 5})
            self.assertEqual(lines[-1]['number'], 5)
            self.assertNotIn({'type': 'begin', 'case': 7}, lines)
            expected = undisturbed[1].splitlines()
            found = reports[1].splitlines()
            self.assertIn('"status":"crashed"', found[7])
            self.assertIn('the case ended the run 3 times', found[7])
            self.assertEqual(found[:7] + found[8:FEW],
                             expected[:7] + expected[8:FEW])

    def test_a_torn_line_is_dropped_and_a_damaged_one_refused(self):
        complete = self.verify('complete', f'--resume={self.journal}')
        path = self.journal / 'journal.jsonl'
        content = path.read_bytes()
        for cut in 1, 20, len(content) // 2, len(content) - 5:
            path.write_bytes(content[:-cut])
            self.assertEqual(self.verify('torn', f'--resume={self.journal}'), complete)
        lines = content.splitlines(True)
        for number, line in ((3, b'{"number":1,"type":"case"}\n'), (40, b'[]\n'),
                             (57, b'{}\n'), (70, lines[1]), (5, lines[2])):
            damaged = b''.join(lines[:number - 1] + [line] + lines[number:])
            path.write_bytes(damaged)
            done = run('verify', *self.words('damaged', f'--resume={self.journal}'))
            self.assertEqual(done.returncode, 2, number)
            self.assertRegex(done.stderr, f'journal.jsonl: line {number} is damaged')
            self.assertEqual(path.read_bytes(), damaged)

    def test_another_run_is_refused(self):
        self.verify('first', f'--resume={self.journal}')
        for more, sentence in ((['--require=bounded'], 'without --require, not bounded'),
                               (['--timeout=9'], 'with --timeout 1, not 9'),
                               (['--check=bound'], 'with --check bitwise,bound, not '),
                               (['--fresh'], 'with --fresh no, not yes'),
                               (['--candidate=model'], 'with --candidate plugin:'),
                               (['fp8_gemm_nt m=1 n=8 k=16'],
                                'of 36 cases, not of the 37')):
            done = run('verify', *self.words('second', f'--resume={self.journal}', *more))
            self.assertEqual(done.returncode, 2, more)
            self.assertIn(sentence, done.stderr)
        self.suite.write_text(suite(FEW - 1) + 'fp8_gemm_nt m=1 n=8 k=16 seed=1\n')
        done = run('verify', *self.words('third', f'--resume={self.journal}'))
        self.assertIn('of other 36 cases', done.stderr)

    def test_two_runs_at_once_are_refused(self):
        self.journal.mkdir()
        with open(self.journal / 'journal.jsonl', 'wb') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = run('verify', *self.words('second', f'--resume={self.journal}'))
            self.assertEqual(done.returncode, 2)
            self.assertIn('another run is using it', done.stderr)
        self.verify('second', f'--resume={self.journal}')

    def test_a_run_that_is_interrupted_blames_no_case(self):
        self.select(SOME)
        for attempt in range(3):
            process = self.start('1')
            self.wait_for(process, 38)
            while self.begun(38) <= attempt:  # it hangs for a second
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertEqual(journal_of(self.journal)[-1], {'type': 'stopped'})
        resumed = self.verify('resumed', f'--resume={self.journal}')
        self.assertEqual(resumed, self.verify('undisturbed'))


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: MIT
"""tools/cluster/fuzz.sbatch as Slurm would run it, with stand-ins for its programs."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from assay_tool import ROOT, TOOL, ToolTest

SCRIPT = ROOT / 'tools' / 'cluster' / 'fuzz.sbatch'

# Writes down how it was called. A file `stay` keeps it until SIGTERM, after which it has
# things to put in order; it then dies of the signal, or ends with what a file `end` says.
ASSAY = '''#!/usr/bin/python3
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[0]).parent
terms = []
signal.signal(signal.SIGTERM, lambda *_: terms.append(time.monotonic()))
environment = {name: value for name, value in os.environ.items()
               if name.startswith(('SLURM_', 'OMP_'))}
with open(folder / 'calls', 'a', encoding='utf-8') as file:
    print(json.dumps([sys.argv[1:], environment]), file=file)
limit = time.monotonic() + 30
while (folder / 'stay').exists() and not terms and time.monotonic() < limit:
    time.sleep(0.01)
if terms:
    time.sleep(0.2)
    (folder / 'stopped').write_text(str(len(terms)), encoding='utf-8')
if (folder / 'end').exists():
    sys.exit(int((folder / 'end').read_text(encoding='utf-8')))
if terms:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
'''
SCONTROL = '''#!/bin/sh
echo "$@" >> "${0%/*}/requeued"
'''
OPTIONS = ['--out', 'a folder', '--seed', '7', '--cases=40',
           '--candidate', "exec:python3 'my own.py' --timely"]


def directives():
    """What the script asks of sbatch, which reads it up to the first command."""
    found = {}
    for line in SCRIPT.read_text(encoding='utf-8').splitlines():
        if line and not line.startswith('#'):
            break
        match = re.fullmatch(r'#SBATCH --([a-z-]+)(?:=(.*))?', line)
        if match:
            found[match[1]] = match[2]
    return found


class Cluster(ToolTest):
    def setUp(self):
        super().setUp()
        self.write('assay', ASSAY)
        self.write('scontrol', SCONTROL)
        # Slurm runs a copy of the script, from the folder it was submitted in.
        self.script = self.folder / 'slurm_script'
        shutil.copyfile(SCRIPT, self.script)

    def write(self, name, text=''):
        path = self.folder / name
        path.write_text(text, encoding='utf-8')
        path.chmod(0o755)

    def read(self, name):
        path = self.folder / name
        return path.read_text(encoding='utf-8') if path.exists() else None

    def environment(self, task=2, **more):
        """Of a task of --array=4-10:2; the last one has the array's own job number."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(('SLURM_', 'OMP_', 'TEST_'))}
        job = '17' if task == 10 else str(18 + task)
        return {**kept, 'PATH': f'{self.folder}:{os.environ["PATH"]}',
                'ASSAY': str(self.folder / 'assay'), 'SLURM_JOB_ID': job,
                'SLURM_ARRAY_JOB_ID': '17', 'SLURM_ARRAY_TASK_ID': str(task),
                'SLURM_ARRAY_TASK_COUNT': '4', 'SLURM_ARRAY_TASK_MIN': '4',
                'SLURM_ARRAY_TASK_MAX': '10', 'SLURM_ARRAY_TASK_STEP': '2', **more}

    def start(self, *options, **environment):
        return subprocess.Popen(['bash', self.script, *(options or OPTIONS)],
                                cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding='utf-8',
                                env=self.environment(**environment))

    def finish(self, process):
        """Exit status and stderr."""
        errors = process.communicate(timeout=60)[1]
        return process.returncode, errors

    def signalled(self, number, *options, **environment):
        """The same for a task that was sent a signal while its campaign was running."""
        for name in 'calls', 'stopped':
            (self.folder / name).unlink(missing_ok=True)
        self.write('stay')
        process = self.start(*options, **environment)
        while not self.read('calls') and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)  # the shell sets its traps
        process.send_signal(number)
        return self.finish(process)

    def at_limit(self, *options, **environment):
        """The same for the signal that the script wants before its time limit."""
        name = re.fullmatch(r'B:([A-Z0-9]+)@60', directives()['signal'])[1]
        return self.signalled(getattr(signal, f'SIG{name}'), *options, **environment)

    def test_each_task_is_one_resumable_campaign_with_slurms_variables(self):
        for task in range(4, 11, 2):
            done = self.finish(self.start(task=task, SLURM_CPUS_PER_TASK='3'))
            self.assertEqual(done, (0, ''))
        calls = [json.loads(line) for line in self.read('calls').splitlines()]
        self.assertEqual(len(calls), 4)
        for task, (words, environment) in zip(range(4, 11, 2), calls):
            self.assertEqual(words, ['fuzz', '--jobs', '3', *OPTIONS, '--resume'])
            self.assertEqual(environment['OMP_NUM_THREADS'], '1')
            self.assertEqual(
                [environment[f'SLURM_ARRAY_TASK_{name}']
                 for name in ('ID', 'COUNT', 'MIN', 'STEP')], [str(task), '4', '4', '2'])

    def test_one_case_at_a_time_when_slurm_names_no_processors(self):
        self.assertEqual(self.finish(self.start()), (0, ''))
        self.assertEqual(json.loads(self.read('calls'))[0][1:3], ['--jobs', '1'])

    def test_the_exit_status_is_the_campaigns(self):
        for status in 1, 2, 3, 5:
            self.write('end', str(status))
            self.assertEqual(self.finish(self.start()), (status, ''))
        self.assertIsNone(self.read('requeued'))

    def test_sigterm_is_handed_on_and_nothing_queued_again(self):
        self.assertEqual(self.signalled(signal.SIGTERM), (143, ''))
        self.assertEqual(self.read('stopped'), '1')
        self.assertIsNone(self.read('requeued'))

    def test_before_its_time_limit_a_task_stops_in_order_and_queues_itself_again(self):
        for task in 4, 10:
            status, errors = self.at_limit(task=task)
            self.assertEqual(status, 143)
            self.assertIn('the task is queued again', errors)
            self.assertEqual(self.read('stopped'), '1')
            self.assertEqual(self.read('requeued').splitlines()[-1],
                             f'requeue 17_{task}')
        self.assertEqual(len(self.read('requeued').splitlines()), 2)

    def test_a_status_that_bash_has_lost_is_that_of_a_campaign_that_was_stopped(self):
        self.write('end', '255')
        self.assertEqual(self.at_limit()[0], 143)
        self.assertEqual(self.read('requeued'), 'requeue 17_2\n')

    def test_a_job_without_an_array_queues_itself_again_too(self):
        environment = self.environment()
        no_array = [name for name in environment if name.startswith('SLURM_ARRAY')]
        self.environment = lambda **_: {name: value for name, value in
                                        environment.items() if name not in no_array}
        self.assertEqual(self.at_limit()[0], 143)
        self.assertEqual(self.read('requeued'), 'requeue 20\n')

    def test_with_a_time_budget_it_stops_and_says_so(self):
        for words in ['--time', '8h'], ['--time=8h']:
            status, errors = self.at_limit('--out', 'x', *words)
            self.assertEqual(status, 143)
            self.assertIn("before the campaign's --time", errors)
        self.assertIsNone(self.read('requeued'))

    def test_a_campaign_that_ends_at_the_limit_is_not_queued_again(self):
        for status, options in (0, OPTIONS), (1, OPTIONS), (1, ['--time', '8h']):
            self.write('end', str(status))
            self.assertEqual(self.at_limit(*options), (status, ''))
            self.assertEqual(self.read('stopped'), '1')
        self.assertIsNone(self.read('requeued'))

    def test_a_real_campaign_stops_in_order_and_goes_on_where_it_was(self):
        journal = self.folder / 'out' / 'shard-2-of-4' / 'journal.jsonl'
        words = ['--out', 'out', '--seed', '7', '--cases', '2400', '--op', 'sfu,convert']
        process = self.start(*words, task=8, ASSAY=TOOL)
        while (process.poll() is None and
               not (journal.exists() and journal.read_bytes().count(b'"number":') > 5)):
            time.sleep(0.005)
        process.send_signal(signal.SIGUSR1)
        status, errors = self.finish(process)
        self.assertEqual(status, 143, errors)
        self.assertEqual(self.read('requeued'), 'requeue 17_8\n')
        status, errors = self.finish(self.start(*words, task=8, ASSAY=TOOL))
        self.assertEqual(status, 0, errors)
        lines = [json.loads(line) for line in journal.read_text('utf-8').splitlines()]
        kinds = [line['type'] for line in lines if 'number' not in line]
        self.assertEqual([kind for kind in kinds if kind != 'begin'],
                         ['header', 'stopped', 'resumed', 'summary'])
        self.assertEqual(sorted(line['number'] for line in lines if 'number' in line),
                         list(range(600)))

    def test_without_the_program_it_says_what_to_do(self):
        status, errors = self.finish(self.start(ASSAY='build/none'))
        self.assertEqual(status, 2)
        self.assertIn("there is no program 'build/none'", errors)
        self.assertIn('set ASSAY', errors)

    def test_slurm_is_asked_to_queue_it_again_and_to_keep_its_output(self):
        found = directives()
        self.assertIn('requeue', found)
        self.assertEqual(found['open-mode'], 'append')
        self.assertNotIn('output', found)  # a name of ours would not know arrays


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: MIT
"""Runs of small cases on a plugin that the cases' seeds break in one way or another."""
import os
import pathlib
import random
import re

from assay_tool import TOOL, ToolTest, run

PLUGIN = os.environ.get('ASSAY_MIXED_PLUGIN',
                        pathlib.Path(TOOL).parents[1] / 'tests' / 'command' / 'mixed.so')
FEW = 36
SOME = 60  # with one that hangs
REPORTS = 'json', 'junit'


def suite(count):
    """Small cases; their seeds say how the plugin breaks them."""
    shape = random.Random(1)
    return ''.join(f'fp8_gemm_nt m={shape.choice((1, 9, 70))} n={shape.choice((8, 72))} '
                   f'k={shape.choice((16, 128, 208))} seed={seed}\n'
                   for seed in range(count))


def without_times(text):
    text = re.sub(r'"seconds":[-+.e\d]+', '', text)
    text = re.sub(r' (time|timestamp)="[^"]*"', '', text)
    return re.sub(r'^\{"type":"header".*\n', '', text)


class MixedRuns(ToolTest):
    def setUp(self):
        super().setUp()
        self.suite = self.folder / 'mixed.cases'
        self.select(FEW)
        self.log = self.folder / 'launches'
        self.log.touch()
        self.journal = self.folder / 'run'

    def select(self, count):
        self.suite.write_text(suite(count), encoding='ascii')

    def words(self, name, *more):
        reports = [word for report in REPORTS
                   for word in (f'--{report}', self.folder / f'{name}.{report}')]
        return [*map(str, ('--suite', self.suite, '--candidate', f'plugin:{PLUGIN}',
                           '--timeout', '1', '--check', 'bitwise,bound', *reports,
                           *more))]

    def environment(self):
        return os.environ | {'ASSAY_MIXED_LOG': str(self.log)}

    def verify(self, name, *more):
        """All reports of a run, times left out."""
        done = run('verify', *self.words(name, *more), env=self.environment())
        self.assertEqual(done.stderr, '')
        self.assertEqual(done.returncode, 3)
        return [without_times(text) for text in (done.stdout, *(
            (self.folder / f'{name}.{report}').read_text(encoding='utf-8')
            for report in REPORTS))]

# SPDX-License-Identifier: MIT
"""`--jobs`, and the progress that long runs show."""
import os
import pty
import subprocess
import unittest

from assay_tool import TOOL, run
from mixed_runs import SOME, MixedRuns


class Jobs(MixedRuns):
    def test_any_number_of_jobs_gives_the_same_reports(self):
        self.select(SOME)
        alone = self.verify('alone', '--check=bitwise,bound,repeat,poison')
        self.assertEqual(alone[1].count('"status":"crashed"'), 4)
        self.assertEqual(alone[1].count('"status":"hung"'), 1)
        resume = f'--resume={self.journal}'
        for more in ('--jobs=2',), ('--jobs=5',), ('--jobs=5', resume):
            shared = self.verify('shared', '--check=bitwise,bound,repeat,poison', *more)
            self.assertEqual(shared, alone, more)

    def seen_on_a_terminal(self, lines):
        self.suite.write_text(lines, encoding='ascii')
        main, terminal = pty.openpty()
        with subprocess.Popen([TOOL, 'verify', *self.words('seen')], stderr=terminal,
                              stdout=subprocess.DEVNULL):
            os.close(terminal)
            seen = b''
            try:
                while True:
                    seen += os.read(main, 1000)
            except OSError:
                pass
        os.close(main)
        return seen

    def test_progress_is_for_long_runs_on_terminals(self):
        seen = self.seen_on_a_terminal('fp8_gemm_nt m=1 n=8 k=16 seed=38\n' * 4)
        self.assertRegex(seen.decode(),
                         r'\d of 4 cases done, \d failed, about \d s left')
        self.assertTrue(seen.endswith(b'\r\x1b[K'))
        self.assertEqual(self.seen_on_a_terminal('fp8_gemm_nt m=1 n=8 k=16\n' * 2), b'')

    def test_what_cannot_be_is_refused(self):
        for more, sentence in ((['--jobs=0'], 'use 1 to 256'),
                               (['--jobs=257'], 'use 1 to 256'),
                               (['--jobs=x'], '--jobs x'),
                               (['--resume=/proc/nowhere'], "the folder can't be made"),
                               ([f'--resume={self.suite}'], 'writable folder')):
            done = run('verify', *self.words('refused', *more))
            self.assertEqual(done.returncode, 2, more)
            self.assertIn(sentence, done.stderr)
        done = run('job', 'verify')
        self.assertIn('start by themselves', done.stderr)


if __name__ == '__main__':
    unittest.main()

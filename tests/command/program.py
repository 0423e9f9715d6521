# SPDX-License-Identifier: MIT
"""`--candidate exec:COMMAND`: honest and broken programs, as a user meets them."""
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from assay_tool import ROOT, TOOL, ToolTest, results, run

ADAPTERS = ROOT / 'tools' / 'adapters'
STAND_IN = ADAPTERS / 'stand_in.py'
CASES = [f'fp8_gemm_nt m={m} n=8 k=64 recipe=tensor seed={seed}'
         for seed, m in enumerate((6, 7, 6))]
MIDDLE = 7
DENSE = 'mla_dense_decode b=2 h_q=16 s_k=300,64 sms=4 seed=1'

# Many short computations: idle threads would only be in the way.
os.environ['OMP_NUM_THREADS'] = '1'
os.environ['PYTHONDONTWRITEBYTECODE'] = '1'


def command(*words):
    return 'exec:exec ' + shlex.join(map(str, (sys.executable, *words)))


def stand_in(mode=None, *words):
    if mode:
        words = '--mode', mode, '--rows', MIDDLE, *words
    return command(STAND_IN, *words)


class Program(ToolTest):
    def check_middle(self, mode, exit_status, *options):
        """The middle one of three cases; the others must pass."""
        log = self.folder / 'starts'
        log.write_text('', encoding='utf-8')
        status, cases, summary = results(
            *CASES, '--check', 'bitwise,bound', '--candidate',
            stand_in(mode, '--log', log), *options)
        self.assertEqual(status, exit_status, cases)
        self.assertEqual([case['passed'] for case in cases],
                         [True, exit_status == 0 and cases[1]['status'] == 'ran', True])
        self.assertEqual(summary['exit_code'], exit_status)
        self.starts = len(log.read_text(encoding='utf-8').splitlines())
        return cases[1]

    def test_the_honest_one_is_bounded_for_all_formats_and_strides(self):
        status, cases, _ = results(
            *CASES, 'fp8_gemm_nt m=5 n=16 k=48 recipe=tensor out=f32 a_format=e5m2 '
            'a_stride=64 b_stride=80 d_stride=32 data=special unsafe=1',
            '--candidate', stand_in())
        self.assertEqual(status, 0, cases)
        for case in cases:
            self.assertEqual(case['status'], 'ran')
            self.assertIn(case['verdict'], ('equal', 'bounded'))
            self.assertNotIn('output', case)

    def test_a_thousand_cases_take_one_start(self):
        log = self.folder / 'starts'
        lines = ''.join(f'fp8_gemm_nt m=8 n=8 k=64 recipe=tensor seed={seed}\n'
                        for seed in range(1000))
        status, cases, summary = results(
            '--suite', '-', '--check', 'bitwise,bound', '--candidate',
            stand_in(None, '--log', log), text=lines)
        self.assertEqual((status, len(cases), summary['passed']), (0, 1000, 1000))
        self.assertEqual(len(log.read_text(encoding='utf-8').splitlines()), 1)

    def test_fresh_starts_one_for_every_case(self):
        self.assertEqual(self.check_middle('noise', 0, '--fresh')['status'], 'ran')
        self.assertEqual(self.starts, 3)

    def test_what_ends_costs_one_case(self):
        for mode, status, sentence in (
                ('crash', 'crashed', r'killed by signal 11 \(SIGSEGV\)$'),
                ('exit', 'crashed', r'exited with status 0; .*--fresh'),
                ('no-file', 'failed', 'no outputs.safetensors')):
            with self.subTest(mode):
                case = self.check_middle(mode, 3)
                self.assertEqual(case['status'], status)
                self.assertRegex(case['message'], sentence)
                self.assertEqual(case['outputs'], [])
                self.assertEqual(self.starts, 2)

    def test_a_kill_from_outside_is_tried_once_more(self):
        killed = self.folder / 'killed'
        for most, passed in (1, True), (2, False):
            killed.write_text('', encoding='utf-8')
            script = (f'if [ $(wc -l < {killed}) -lt {most} ]; then read folder; '
                      f'echo >> {killed}; kill -9 $$; fi; '
                      f'exec {sys.executable} {STAND_IN}')
            status, cases, _ = results(CASES[0], '--check', 'bound', '--candidate',
                                       f'exec:{script}')
            self.assertEqual((status == 0, cases[0]['passed']), (passed, passed))
        self.assertEqual(cases[0]['status'], 'crashed')
        self.assertIn('SIGKILL', cases[0]['message'])

    def test_what_does_not_end_is_ended(self):
        for mode in 'hang', 'endless-noise':
            with self.subTest(mode):
                case = self.check_middle(mode, 3, '--timeout', '1')
                self.assertEqual(case['status'], 'hung')
                self.assertIn('no answer within 1 s; --timeout', case['message'])
                self.assertEqual(self.starts, 2)

    def test_memory_is_limited(self):
        case = self.check_middle('grow', 3, '--memory-limit', '200M')
        self.assertEqual(case['status'], 'out of memory')
        self.assertIn('more than 200 MiB', case['message'])

    def test_what_it_says_of_itself_needs_no_new_start(self):
        for mode, status, sentence, exit_status in (
                ('fail', 'failed', 'RuntimeError: the launch gave error 700', 3),
                ('unsupported', 'unsupported', 'not today', 0),
                ('out-of-memory', 'out of memory', 'out of memory', 3)):
            with self.subTest(mode):
                case = self.check_middle(mode, exit_status)
                self.assertEqual(case['status'], status)
                self.assertTrue(case['message'].endswith(f"': {sentence}"),
                                case['message'])
                self.assertEqual(self.starts, 1)

    def test_outputs_of_another_form_are_no_outputs(self):
        for mode, sentence in (
                ('missing-output', "has no tensor 'd'"),
                ('wrong-shape', "'d' is BF16 [8, 7, 1], but this case needs BF16 [7, 8]"),
                ('wrong-dtype', "'d' is F32 [7, 8], but this case needs BF16 [7, 8]"),
                ('extra-tensor', "a tensor 'workspace', which is no output")):
            with self.subTest(mode):
                case = self.check_middle(mode, 3)
                self.assertEqual(case['status'], 'failed')
                self.assertIn(sentence, case['message'])
                self.assertEqual(self.starts, 1)

    def test_wrong_outputs_are_outside(self):
        case = self.check_middle('wrong-tile', 1)
        self.assertEqual((case['status'], case['verdict']), ('ran', 'outside'))
        self.assertEqual(self.starts, 1)
        lines = [f'fp8_gemm_nt m=7 n=8 k=64 recipe=tensor seed={seed}'
                 for seed in range(20)]
        status, cases, _ = results(*lines, '--check', 'bound', '--candidate',
                                   stand_in('one-in-ten'))
        self.assertEqual(status, 1)
        self.assertEqual([at for at in range(20) if not cases[at]['passed']], [9, 19])

    def test_noise_is_kept_and_changes_nothing(self):
        case = self.check_middle('noise', 0)
        self.assertEqual(sorted(case['output'].splitlines()),
                         ['a warning', 'assay: failed to be quiet',
                          'launching 1 x 1 blocks'])
        self.assertEqual(self.starts, 1)

    def test_a_slow_start_has_a_time_of_its_own(self):
        case = self.check_middle('slow-start', 0, '--timeout', '1')
        self.assertEqual(case['status'], 'ran')
        done = run('verify', CASES[1], '--candidate', stand_in('slow-start'),
                   '--warmup-timeout', '0.2')
        self.assertEqual(done.returncode, 3)
        self.assertIn('no first answer within 0.2 s; --warmup-timeout', done.stdout)

    def test_a_command_that_cannot_be_run(self):
        status, cases, _ = results(*CASES, '--candidate', 'exec:no-such-command --fast')
        self.assertEqual(status, 3)
        for case in cases:
            self.assertEqual(case['status'], 'failed')
            self.assertIn("the command 'no-such-command --fast' cannot be run: ",
                          case['message'])
            self.assertIn('not found', case['message'])
        for candidate in 'exec', 'exec:', 'exec:  ':
            done = run('verify', CASES[0], '--candidate', candidate)
            self.assertEqual(done.returncode, 2)
            self.assertIn('needs a command; write exec:COMMAND', done.stderr)

    def test_a_time_that_is_none(self):
        for value in '0', '-1', 'x', '':
            done = run('verify', CASES[0], f'--warmup-timeout={value}')
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'--warmup-timeout {value} is no time', done.stderr)

    def test_a_program_can_be_recorded(self):
        path = self.record(CASES[0], stand_in())
        status, cases, _ = results('--recorded', path, '--require', 'bounded')
        self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'))

    def test_an_interrupt_leaves_no_folder_and_no_program(self):
        environment = {**os.environ, 'TMPDIR': str(self.folder)}
        with subprocess.Popen(
                [TOOL, 'verify', CASES[1], '--candidate', stand_in('hang')],
                env=environment, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as tool:
            deadline = time.monotonic() + 60
            while not list(self.folder.glob('assay-case-*')):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            tool.send_signal(signal.SIGTERM)
            self.assertEqual(tool.wait(30), -signal.SIGTERM)
        self.assertEqual(list(self.folder.iterdir()), [])


TORCH_GEMM = '''
    import os
    import sys
    import assay_torch
    import stand_in
    torch = assay_torch.torch

    def rows(tensor):
        name = {torch.float8_e4m3fn: 'F8_E4M3', torch.float8_e5m2: 'F8_E5M2'}[
            tensor.dtype]
        values = [stand_in.VALUES[name][code] for code in tensor.codes()]
        width = tensor.shape[1]
        return [values[row * width:][:width] for row in range(tensor.shape[0])]

    def gemm(case):
        print('a word')
        if case.parameters['m'] == 7:
            go_wrong(sys.argv[1])
        a, b = rows(case.tensors['a']), rows(case.tensors['b'])
        scale = 1.0
        for name in 'sfa', 'sfb':
            scale *= stand_in.struct.unpack('<f', bytes(case.tensors[name].memory))[0]
        d = case.outputs['d']
        assert set(d.codes()) == {0xDBDBDBDB if d.dtype is torch.float32 else 0xDBDB}
        encode = stand_in.f32_bits if d.dtype is torch.float32 else stand_in.bf16_bits
        codes = [encode(scale * sum(x * y for x, y in zip(row, column)))
                 for row in a for column in b]
        if sys.argv[1] == 'returned':
            d = torch.empty(d.shape, d.dtype)
            case.launch(lambda: d.set_codes(codes))
            return d
        case.launch(lambda: d.set_codes(codes))

    def go_wrong(mode):
        if mode == 'fails':
            raise ValueError('CUDA error: invalid argument')
        if mode == 'refuses':
            raise NotImplementedError('no such tile')
        if mode == 'has no room':
            raise torch.cuda.OutOfMemoryError('tried to allocate')

    assay_torch.serve({'fp8_gemm_nt': gemm}, 'cpu')
'''


class Torch(ToolTest):
    def setUp(self):
        super().setUp()
        packages = pathlib.Path(__file__).parent / 'fake_packages'
        path = os.pathsep.join(map(str, (packages, ADAPTERS, ROOT / 'tools')))
        before = os.environ.get('PYTHONPATH')
        os.environ['PYTHONPATH'] = path
        self.addCleanup(os.environ.pop, 'PYTHONPATH')
        if before is not None:
            self.addCleanup(os.environ.__setitem__, 'PYTHONPATH', before)
        self.script = self.folder / 'mine.py'
        self.script.write_text(textwrap.dedent(TORCH_GEMM), encoding='utf-8')

    def test_tensors_go_there_and_back(self):
        padded = ('fp8_gemm_nt m=5 n=16 k=48 recipe=tensor out=f32 a_format=e5m2 '
                  'a_stride=64 b_stride=80 d_stride=32 seed=4')
        empty = 'fp8_gemm_nt m=3 n=8 k=0 recipe=tensor out=f32 a_stride=64 seed=4'
        for mode in 'written', 'returned':
            with self.subTest(mode):
                status, cases, _ = results(*CASES, padded, empty, DENSE,
                                           '--candidate', command(self.script, mode))
                self.assertEqual(status, 0, cases)
                self.assertEqual([case['status'] for case in cases],
                                 ['ran'] * 5 + ['unsupported'])
                for case in cases[:5]:
                    self.assertIn(case['verdict'], ('equal', 'bounded'))
                self.assertEqual(cases[0]['output'], 'a word\n')

    def test_exceptions_become_answers(self):
        for mode, status, sentence in (
                ('fails', 'failed', 'ValueError: CUDA error: invalid argument'),
                ('refuses', 'unsupported', 'no such tile'),
                ('has no room', 'out of memory', 'out of memory')):
            with self.subTest(mode):
                _, cases, _ = results(*CASES, '--candidate', command(self.script, mode))
                self.assertEqual([case['status'] for case in cases],
                                 ['ran', status, 'ran'])
                self.assertTrue(cases[1]['message'].endswith(f"': {sentence}"),
                                cases[1]['message'])

    def test_the_plan_that_was_used_is_modelled(self):
        """The outputs are those of another plan than the case's: with that plan they are
        equal to the bit, without it they are not."""
        split = self.record(DENSE.replace('seed', 'plan=blocks seed'))
        adapter = self.folder / 'flash_mla_adapter.py'
        text = (ADAPTERS / 'flash_mla_adapter.py').read_text(encoding='utf-8')
        serve = "'mla_sparse_prefill': sparse_prefill}"
        self.assertEqual(text.count(serve), 1)
        adapter.write_text(text.replace(serve, serve + ", 'cpu'"), encoding='utf-8')
        os.environ['ASSAY_RECORDED'] = str(split)
        self.addCleanup(os.environ.pop, 'ASSAY_RECORDED')
        status, cases, _ = results(DENSE, '--check', 'bitwise,bound', '--require',
                                   'equal', '--candidate', command(adapter))
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'), cases)
        adapter.write_text(adapter.read_text(encoding='utf-8').replace(
            "'tile_scheduler_metadata': plans[-1].tile_scheduler_metadata,", '').replace(
            "'num_splits': plans[-1].num_splits", ''), encoding='utf-8')
        status, cases, _ = results(DENSE, '--check', 'bitwise,bound', '--require',
                                   'equal', '--candidate', command(adapter))
        self.assertEqual((status, cases[0]['verdict']), (1, 'bounded'), cases)


class Adapters(ToolTest):
    def test_they_refuse_clearly_without_their_packages(self):
        packages = pathlib.Path(__file__).parent / 'fake_packages'
        for name, missing in (('flash_mla', 'torch'), ('deep_gemm', 'torch'),
                              ('flashinfer', 'torch'), ('example', 'torch'),
                              ('deep_gemm', 'deep_gemm'), ('flashinfer', 'flashinfer')):
            environment = dict(os.environ)
            environment.pop('PYTHONPATH', None)
            if missing != 'torch':
                environment['PYTHONPATH'] = str(packages)
            with self.subTest(f'{name} without {missing}'):
                done = subprocess.run(
                    [sys.executable, '-S', ADAPTERS / f'{name}_adapter.py'], text=True,
                    env=environment, capture_output=True, check=False, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"No module named '{missing}'", done.stderr)

    def test_they_work_when_copied_elsewhere(self):
        for name in 'assay_exchange.py', 'stand_in.py':
            (self.folder / name).write_bytes((ADAPTERS / name).read_bytes())
        status, cases, _ = results(*CASES, '--candidate',
                                   command(self.folder / 'stand_in.py'))
        self.assertEqual(status, 0, cases)


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: MIT
"""`assay bench` names what it measured, and its figures fit together. How large they are
is no test: that depends on the machine and on what else runs there."""
import json
import math
import os
import subprocess
import unittest

from assay_tool import ROOT, ToolTest, run

CASE = 'fp8_gemm_nt m=64 n=72 k=256'
# Operand formats of the unit.
PAIRS = [('e4m3', 'e4m3'), ('e5m2', 'e5m2'), ('e4m3', 'e5m2'), ('e5m2', 'e4m3'),
         ('bf16', 'bf16'), ('f16', 'f16'), ('tf32', 'tf32')]
# Says for each launch that it took as many seconds as option each= says, the very first
# one a hundred times as many; writes the number of launches of each run to option log=.
PLUGIN = r'''
#include <assay_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int claim(const struct assay_call *call, struct assay_claim *claim)
{
    (void)claim;
    return assay_call_tensor(call, "c") ? ASSAY_PLUGIN_UNSUPPORTED : ASSAY_PLUGIN_OK;
}
static int prepare(const struct assay_call *call, void **run)
{
    *run = (void *)call;
    return ASSAY_PLUGIN_OK;
}
static int launch(void *run, int repeats, double *seconds)
{
    static int has_run;
    char text[4096];
    const struct assay_call *call = run;
    if (assay_plugin_setting(call->options, ',', "each", text, sizeof(text)))
        *seconds = atof(text) * repeats * (has_run ? 1 : 100);
    has_run = 1;
    usleep(20000);
    assay_plugin_setting(call->options, ',', "log", text, sizeof(text));
    FILE *log = fopen(text, "a");
    fprintf(log, "%d\n", repeats);
    fclose(log);
    return ASSAY_PLUGIN_OK;
}
static int fetch(void *run)
{
    (void)run;
    return ASSAY_PLUGIN_OK;
}
static void release(void *run)
{
    (void)run;
}
const struct assay_plugin *assay_plugin_v1(void)
{
    static const struct assay_plugin plugin = { ASSAY_PLUGIN_ABI, sizeof(plugin), 0, 0,
        "clock", "1", claim, prepare, launch, fetch, release };
    return &plugin;
}
'''


class Bench(ToolTest):
    def figures(self, *arguments, expected=0, **options):
        """The objects of one run between header and summary."""
        done = run('bench', *arguments, '--json', '-', '--repeats', 2, **options)
        self.assertEqual(done.returncode, expected, done.stderr)
        header, *rows, summary = map(json.loads, done.stdout.splitlines())
        self.assertEqual((header['type'], header['command']), ('header', 'bench'))
        self.assertEqual(summary['type'], 'summary')
        self.assertEqual((summary['cases'], summary['exit_code']), (len(rows), expected))
        for row in rows:
            self.assertEqual(row['type'], 'bench')
            for key in ('op', 'case', 'candidate', 'unit'):
                self.assertTrue(row[key], key)
            for key in ('threads', 'seconds', 'rate'):
                self.assertGreater(row[key], 0, key)
                self.assertTrue(math.isfinite(row[key]), key)
            self.assertTrue(row['case'].startswith(row['op'] + ' '))
        return rows

    def test_a_case_is_measured_by_its_own_cost(self):
        for candidate in ('model', 'oracle', 'model:promote_k=64'):
            row, = self.figures(CASE, '--candidate', candidate)
            self.assertEqual((row['op'], row['case'], row['candidate'], row['unit']),
                             ('fp8_gemm_nt', CASE + ' seed=0', candidate,
                              'multiply-adds/s'))
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (64 * 72 * 256), 1)
            self.assertNotIn('ratio_one_core', row)

    def test_cases_of_a_suite_come_in_order(self):
        suite = f'# two\n{CASE} seed=3\n{CASE} seed=2\n'
        rows = self.figures('--suite', '-', text=suite)
        self.assertEqual([row['case'] for row in rows],
                         [CASE + ' seed=3', CASE + ' seed=2'])

    def test_an_operation_without_cases_gets_the_same_ones_every_time(self):
        rows = self.figures('--op', 'fp8_gemm_nt')
        self.assertEqual({row['op'] for row in rows}, {'fp8_gemm_nt'})
        again = self.figures('--op', 'fp8_gemm_nt', '--candidate', 'oracle')
        self.assertEqual([row['case'] for row in rows], [row['case'] for row in again])
        self.assertEqual(len(set(row['case'] for row in rows)), len(rows))

    def test_the_unit_is_measured_beside_sgemm(self):
        two_threads = {**os.environ, 'OMP_NUM_THREADS': '2'}
        sgemm, *rows = self.figures('--op', 'wgmma', env=two_threads)
        self.assertEqual((sgemm['op'], sgemm['candidate'], sgemm['threads']),
                         ('sgemm', 'openblas', 1))
        self.assertAlmostEqual(sgemm['rate'] * sgemm['seconds'] / 2 ** 30, 1)
        names = [f'wgmma a_format={a} b_format={b} m=64 n=64 k=1024' for a, b in PAIRS]
        self.assertEqual([row['case'] for row in rows[::2]], names)
        self.assertEqual([row['case'] for row in rows[1::2]], names)
        for row in rows:
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (64 * 64 * 1024), 1)
        for one, all_cores in zip(rows[::2], rows[1::2]):
            self.assertEqual((one['threads'], all_cores['threads']), (1, 2))
            self.assertAlmostEqual(one['ratio_one_core'] * sgemm['rate'] / one['rate'], 1)
            self.assertNotIn('ratio_one_core', all_cores)

    def test_text_goes_to_stdout_unless_json_does(self):
        path = self.folder / 'bench.json'
        done = run('bench', CASE, '--json', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        line, = done.stdout.splitlines()
        self.assertIn('multiply-adds/s', line)
        self.assertTrue(line.endswith('model  ' + CASE + ' seed=0'))
        self.assertEqual(len(path.read_text().splitlines()), 3)
        self.assertEqual(list(self.folder.iterdir()), [path])

    def plugin(self, options):
        """What names the plugin above, and the file it writes launches to."""
        source, library = self.folder / 'clock.c', self.folder / 'clock.so'
        log = self.folder / 'launches'
        source.write_text(PLUGIN, encoding='utf-8')
        if not library.exists():
            subprocess.run(['cc', '-shared', '-fPIC', '-I', ROOT / 'verify' / 'plugin',
                            '-o', library, source], check=True)
        log.write_text('', encoding='utf-8')
        return f'plugin:{library},log={log}{options}', log

    def test_a_plugin_s_own_clock_counts_over_as_many_launches_as_take_0_1_s(self):
        for each, launches in (('0.01', [1, 1, 10, 10, 10]),
                               ('0.3', [1, 1, 1, 1]),
                               ('0.0001', [1, 1, 100, 1000, 1000, 1000]),
                               ('1e-9', [1, 1, 100, 10000, 10000, 10000])):
            candidate, log = self.plugin(f',each={each}')
            row, = self.figures(CASE, '--candidate', candidate)
            self.assertAlmostEqual(row['seconds'] / float(each), 1, 6)
            self.assertEqual(row['launches'], launches[-1])
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (64 * 72 * 256), 1)
            counts = [int(line) for line in log.read_text(encoding='utf-8').split()]
            self.assertEqual(counts, launches)

    def test_without_a_clock_of_its_own_a_plugin_is_timed_from_outside(self):
        candidate, log = self.plugin('')
        row, = self.figures(CASE, '--candidate', candidate)
        self.assertGreater(row['seconds'], 0.02)
        self.assertNotIn('launches', row)
        self.assertEqual(set(log.read_text(encoding='utf-8').split()), {'1'})

    def test_a_case_that_a_plugin_does_not_do_is_left_out(self):
        candidate, _ = self.plugin(',each=1')
        adds = 'fp8_gemm_nt m=64 n=72 k=256 recipe=1d1d out=f32 c=1'
        row, = self.figures(adds, CASE, '--candidate', candidate)
        self.assertEqual(row['case'], CASE + ' seed=0')
        done = run('bench', adds, '--candidate', candidate)
        self.assertEqual((done.returncode, done.stdout), (5, ''))
        self.assertIn('assay: not measured: ' + adds, done.stderr)

    def test_a_plugin_that_hangs_is_stopped(self):
        candidate, _ = self.plugin(',each=1')
        done = run('bench', CASE, '--candidate', candidate, '--timeout', '0.01')
        self.assertEqual((done.returncode, done.stdout), (3, ''))
        self.assertIn('within 0.01 s', done.stderr)
        done = run('record', CASE, '--candidate', candidate, '--out', self.folder,
                   '--timeout', '0.01')
        self.assertEqual((done.returncode, done.stdout), (3, ''))
        self.assertIn('within 0.01 s', done.stderr)
        done = run('record', CASE, '--out', self.folder, '--memory-limit', 'x')
        self.assertEqual((done.returncode, done.stdout), (2, ''))

    def test_nothing_selected_is_no_success(self):
        self.assertEqual(self.figures('--suite', '-', text='# no\n', expected=5), [])
        self.assertEqual(self.figures(CASE, '--op', 'wgmma', expected=5), [])

    def test_mistakes_are_named_and_leave_nothing(self):
        path = self.folder / 'bench.json'
        for arguments, word in [
                (['--op', 'fp8_gemm_tn'], 'fp8_gemm_nt'),
                (['--op', 'wgmma', '--candidate', 'oracle'], '--candidate model'),
                ([CASE, '--candidate', 'modell'], 'model'),
                ([CASE, '--candidate', 'model:nonsense'], 'nonsense'),
                ([CASE, '--repeats', '0'], '--repeats 0'),
                ([CASE, '--repeats', 'x'], '--repeats x'),
                ([CASE, '--timeout', 'x'], '--timeout x'),
                ([CASE + ' n=9'], 'n'),
                (['--suite', '/no/such/suite'], '/no/such/suite')]:
            done = run('bench', *arguments, '--json', path)
            self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
            self.assertIn(word, done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [], arguments)
        done = run('bench', CASE, '--json', self.folder / 'no' / 'bench.json')
        self.assertEqual((done.returncode, done.stdout), (2, ''))


if __name__ == '__main__':
    unittest.main()

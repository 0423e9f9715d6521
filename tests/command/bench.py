# SPDX-License-Identifier: MIT
"""`assay bench` names what it measured, and its figures fit together. How large they are
is no test: that depends on the machine and on what else runs there."""
import json
import math
import os
import subprocess
import sys
import unittest

from assay_tool import ROOT, ToolTest, run

CASE = 'fp8_gemm_nt m=64 n=72 k=256'
# Operand formats of the unit.
PAIRS = [('e4m3', 'e4m3'), ('e5m2', 'e5m2'), ('e4m3', 'e5m2'), ('e5m2', 'e4m3'),
         ('bf16', 'bf16'), ('f16', 'f16'), ('tf32', 'tf32')]
# Says for each launch that it took as many seconds as option each= says, twice as many
# with cold=1, the very first one a hundred times as many; writes the number of launches
# of each run to option log=; fails where a has as many rows as option breaks= says.
PLUGIN = r'''
#include <assay_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int claim(const struct assay_call *call, struct assay_claim *claim)
{
    (void)claim;
    char text[64];
    if (assay_plugin_setting(call->options, ',', "claims", text, sizeof(text)))
        return ASSAY_PLUGIN_FAILED;
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
    if (assay_plugin_setting(call->options, ',', "breaks", text, sizeof(text)) &&
        assay_call_tensor(call, "a")->shape[0] == atoi(text)) {
        snprintf(call->why, call->why_bytes, "on purpose");
        return ASSAY_PLUGIN_FAILED;
    }
    if (assay_plugin_setting(call->options, ',', "each", text, sizeof(text)))
        *seconds = atof(text) * repeats * (has_run ? 1 : 100);
    if (assay_plugin_setting(call->options, ',', "cold", text, sizeof(text)))
        *seconds *= 2;
    has_run = 1;
    usleep(20000);
    assay_plugin_setting(call->options, ',', "log", text, sizeof(text));
    FILE *log = fopen(*text ? text : "/dev/null", "a");
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


# Device FAKE_INDEX draws 600 W at 1500 MHz in every other sample, else 100 W at 345 MHz.
NVML = r'''
#include <stdlib.h>
static unsigned samples;
int nvmlInit_v2(void) { return getenv("FAKE_NO_DRIVER") ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &samples;
    return index == (unsigned)atoi(getenv("FAKE_INDEX")) ? 0 : 2;
}
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    *mhz = samples++ % 2 ? 345 : 1500;
    return device == &samples && type == 1 ? 0 : 2;
}
#ifndef WITHOUT_POWER
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = samples % 2 ? 600000 : 100000;
    return device == &samples ? 0 : 2;
}
#endif
#ifdef WITH_FIELDS
struct field {
    unsigned id, scope;
    long long times[2];
    int type, result;
    unsigned value[2];
};
int nvmlDeviceGetFieldValues(void *device, int count, struct field *field)
{
    field->result = field->id == 186 ? 0 : 3;
    field->value[0] = samples % 2 ? 650000 : 90000;
    return device == &samples && count == 1 ? 0 : 2;
}
#endif
'''


class BenchTest(ToolTest):
    def figures(self, *arguments, expected=0, **options):
        """The objects of one run between header and summary."""
        done = run('bench', *arguments, '--json', '-', '--repeats', 2, **options)
        self.assertEqual(done.returncode, expected, done.stderr)
        header, *objects, summary = map(json.loads, done.stdout.splitlines())
        rows = [one for one in objects if one['type'] != 'bench_group']
        self.groups = objects[len(rows):]
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
            self.assertEqual('launches' in row, 'cache' in row)
            if 'multiply' in row['unit'] and 'group' in row:
                self.assertAlmostEqual(row['tflop_per_s'] * 1e12 / row['rate'], 2)
        return rows

    def plugin(self, options, name='clock'):
        """What names the plugin above, and the file it writes launches to."""
        source, library = self.folder / f'{name}.c', self.folder / f'{name}.so'
        log = self.folder / 'launches'
        source.write_text(PLUGIN, encoding='utf-8')
        if not library.exists():
            subprocess.run(['cc', '-shared', '-fPIC', '-I', ROOT / 'verify' / 'plugin',
                            '-o', library, source], check=True)
        log.write_text('', encoding='utf-8')
        return f'plugin:{library},log={log}{options}', log

    def suite(self, *lines):
        path = self.folder / 'some.cases'
        path.write_text(''.join(line + '\n' for line in lines), encoding='utf-8')
        return path


class Bench(BenchTest):
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


class OnAGpu(BenchTest):
    """Candidates with a clock of their own."""

    def test_rates_are_two_operations_a_multiply_add_and_every_tensor_once(self):
        candidate, _ = self.plugin(',each=1e-6')
        row, = self.figures(CASE, '--candidate', candidate)
        counted = 64 * 256 + 72 * 256 + 4 * (64 * 2 + 2) + 2 * 64 * 72
        self.assertAlmostEqual(row['tflop_per_s'] * row['seconds'] * 1e12 /
                               (2 * 64 * 72 * 256), 1)
        self.assertAlmostEqual(row['gb_per_s'] * row['seconds'] * 1e9 / counted, 1)
        self.assertAlmostEqual(row['roofline_share'] * 1e-6 * 4.3e12 / counted, 1)
        self.assertEqual((row['group'], row['cache']),
                         ('fp8_gemm_nt recipe=1d2d', 'hot'))
        self.assertEqual(self.groups, [])

    def test_the_roofline_is_the_higher_one_of_arithmetic_and_memory(self):
        candidate, _ = self.plugin(',each=1e-3')
        compute = 'fp8_gemm_nt m=1024 n=1024 k=4096'
        attention = 'mla_dense_decode b=1 h_q=128 s_q=4 s_k=512'
        gemm, decode = self.figures(compute, attention, '--candidate', candidate)
        self.assertAlmostEqual(gemm['roofline_share'] * 1e-3 * 1979e12 / 2 ** 33, 1)
        self.assertAlmostEqual(decode['roofline_share'] * 1e-3 * 989e12 /
                               (2 * 128 * 4 * 512 * 1088), 1)

    def test_without_a_clock_of_its_own_a_candidate_is_on_no_gpu(self):
        suite = self.suite('#: upstream cold=10 hot=20', CASE)
        for candidate in 'model', self.plugin('')[0]:
            row, = self.figures('--suite', suite, '--candidate', candidate)
            self.assertFalse({'cache', 'roofline_share', 'over_upstream', 'power_w',
                              'upstream_tflop_per_s'} & set(row))
            self.assertGreater(row['tflop_per_s'], 0)
            self.assertEqual(self.groups, [])

    def test_cold_launches_are_few_and_both_ways_are_measured_on_request(self):
        candidate, log = self.plugin(',each=0.0001')
        cold, hot = self.figures(CASE, '--candidate', candidate, '--cold', '--hot')
        self.assertEqual([cold['cache'], hot['cache']], ['cold', 'hot'])
        self.assertEqual([cold['launches'], hot['launches']], [15, 1000])
        self.assertAlmostEqual(cold['seconds'], 0.0002)
        self.assertAlmostEqual(hot['seconds'], 0.0001)
        self.assertEqual({cold['candidate'], hot['candidate']}, {candidate})
        counts = [int(line) for line in log.read_text(encoding='utf-8').split()]
        self.assertEqual(counts, [1, 15, 15] + [1, 1, 100, 1000, 1000, 1000])
        for options, expected in ((',cold=1', 'cold'), (',cold=0', 'hot')):
            row, = self.figures(CASE, '--candidate', candidate + options)
            self.assertEqual(row['cache'], expected)
        row, = self.figures(CASE, '--candidate', candidate, '--hot')
        self.assertEqual(row['cache'], 'hot')

    def test_the_backend_cuda_takes_the_same_options(self):
        plugin, log = self.plugin('')
        library = {**os.environ, 'ASSAY_CUDA_LIBRARY': plugin[7:].split(',', 1)[0]}
        cold, hot = self.figures(CASE, '--candidate', f'cuda:each=0.01,log={log}',
                                 '--cold', '--hot', env=library)
        self.assertAlmostEqual(cold['seconds'] / hot['seconds'], 2)
        row, = self.figures(CASE, '--candidate', 'cuda', '--cold', env=library)
        self.assertEqual((row['candidate'], 'cache' in row), ('cuda', False))

    def test_others_are_measured_beside_the_candidate(self):
        candidate, _ = self.plugin(',each=0.001')
        slower, faster = candidate + '1', candidate.replace('each=0.001', 'each=0.0005')
        rows = self.figures(CASE, CASE + ' seed=1', '--candidate', candidate, '--beside',
                            slower, '--beside', faster, '--beside', 'model')
        self.assertEqual([row['candidate'] for row in rows],
                         [candidate, slower, faster, 'model'] * 2)
        for row in rows[::4]:
            ratios = {one['candidate']: one['ratio'] for one in row['over_beside']}
            self.assertAlmostEqual(ratios[slower], 1.1)
            self.assertAlmostEqual(ratios[faster], 0.5)
            self.assertGreater(ratios['model'], 0)
        self.assertFalse(any('over_beside' in row for row in rows[1:4]))
        group, = self.groups
        self.assertEqual((group['cases'], group['cache']), (2, 'hot'))
        self.assertNotIn('over_upstream', group)
        self.assertAlmostEqual(group['over_beside'][0]['ratio'], 1.1)

    def test_what_a_candidate_turns_down_is_not_measured_beside_it(self):
        candidate, _ = self.plugin(',each=0.001')
        adds = 'fp8_gemm_nt m=64 n=72 k=256 recipe=1d1d out=f32 c=1'
        row, = self.figures(adds, '--candidate', 'model', '--beside', candidate)
        self.assertEqual((row['candidate'], 'over_beside' in row), ('model', False))
        self.assertEqual(self.figures(adds, '--candidate', candidate, '--beside',
                                      'model', expected=5), [])
        done = run('bench', CASE, '--candidate', candidate, '--beside',
                   candidate + ',claims=0', '--repeats', 1)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (3, 1))
        self.assertIn(f'not measured: {CASE} seed=0: plugin clock 1: failed', done.stderr)

    def test_a_candidate_that_breaks_a_case_leaves_the_others_figures(self):
        candidate, _ = self.plugin(',each=0.001')
        path = self.folder / 'bench.json'
        other = 'fp8_gemm_nt m=8 n=72 k=256 seed=0'
        bad = candidate + ',breaks=64'
        case, fails = CASE + ' seed=0', ('bench_failure', CASE + ' seed=0', bad)
        for first, second, expected in (
                (bad, candidate, [fails]),
                (candidate, bad, [fails, ('bench', case, candidate)])):
            done = run('bench', CASE, other, '--candidate', first, '--beside', second,
                       '--json', path, '--repeats', 1)
            self.assertEqual(done.returncode, 3)
            self.assertIn(f'not measured: {case}: plugin clock 1: on purpose',
                          done.stderr)
            _, *rows, _, summary = map(json.loads, path.read_text().splitlines())
            self.assertEqual([(row['type'], row['case'], row['candidate'])
                              for row in rows],
                             expected + [('bench', other, first),
                                         ('bench', other, second)])
            self.assertEqual(rows[0]['status'], 'failed')
            self.assertEqual((summary['broken'], summary['exit_code']), (1, 3))

    def test_groups_have_geometric_means_of_ratios(self):
        suite = self.suite('# Two groups.', '#: upstream cold=4 hot=8 gbps=5 vendor=3',
                           CASE, '', '#: upstream cold=1 hot=2', CASE + ' out=f32 seed=3',
                           CASE + ' recipe=tensor seed=4', '#: upstream cold=2 vendor=1',
                           CASE + ' recipe=1d1d out=f32')
        candidate, _ = self.plugin(',each=1e-6')
        vendor = candidate.replace('1e-6', '3e-6') + ',kernel=cublaslt'
        rows = self.figures('--suite', suite, '--candidate', candidate, '--beside',
                            vendor, '--cold', '--hot')
        tflop = {'cold': 64 * 72 * 256 / 1e6, 'hot': 2 * 64 * 72 * 256 / 1e6}
        ours = [row for row in rows if row['candidate'] == candidate]
        self.assertEqual([row.get('upstream_tflop_per_s') for row in ours],
                         [4, 8, 1, 2, None, None, 2, None])
        self.assertEqual([row.get('upstream_gb_per_s') for row in ours],
                         [5] + [None] * 7)
        for row in ours:
            upstream = row.get('upstream_tflop_per_s')
            self.assertEqual(upstream is None, 'over_upstream' not in row)
            if upstream:
                self.assertAlmostEqual(row['over_upstream'] * upstream,
                                       tflop[row['cache']])
        groups = {(one['group'][12:], one['cache']): one for one in self.groups}
        self.assertEqual(set(groups), {(f'recipe={recipe}', cache) for cache in tflop
                                       for recipe in ('1d2d', 'tensor', '1d1d')})
        for cache, most in (('cold', 4), ('hot', 8)):
            group = groups['recipe=1d2d', cache]
            self.assertEqual((group['cases'], group['candidate']), (2, candidate))
            self.assertAlmostEqual(group['over_upstream'],
                                   tflop[cache] / math.sqrt(most * most / 4))
            self.assertAlmostEqual(group['least_over_upstream'], tflop[cache] / most)
            self.assertAlmostEqual(group['over_beside'][0]['ratio'], 3)
        by_vendor = {key: one.get('over_upstream_by_vendor')
                     for key, one in groups.items()}
        self.assertAlmostEqual(by_vendor.pop(('recipe=1d2d', 'cold')), 3 * 3 / 4)
        self.assertAlmostEqual(by_vendor.pop(('recipe=1d1d', 'cold')), 3 * 1 / 2)
        self.assertEqual(set(by_vendor.values()), {None})
        self.assertNotIn('over_upstream', groups['recipe=tensor', 'cold'])
        self.assertNotIn('over_upstream', groups['recipe=1d1d', 'hot'])

    def test_figures_of_others_come_from_any_suite_whatever_the_seed(self):
        suite = self.suite('#: upstream hot=8', CASE + ' seed=77 # of somebody')
        candidate, _ = self.plugin(',each=1e-6')
        row, other = self.figures(CASE + ' seed=5', CASE + ' data=wide', '--candidate',
                                  candidate, '--upstream', suite)
        self.assertEqual(row['upstream_tflop_per_s'], 8)
        self.assertNotIn('upstream_tflop_per_s', other)

    def test_tables_in_markdown_hold_the_figures(self):
        suite = self.suite('#: upstream cold=4 hot=8', CASE, CASE + ' recipe=tensor')
        candidate, _ = self.plugin(',each=1e-6')
        done = run('bench', '--suite', suite, '--candidate', candidate, '--cold', '--hot',
                   '--beside', candidate + ',x=1', '--json', '-', '--repeats', 1)
        script = [sys.executable, ROOT / 'tools' / 'bench_table.py', '-']
        table = subprocess.run(script, input=done.stdout, capture_output=True, check=True,
                               encoding='utf-8').stdout.splitlines()
        self.assertEqual(table[0], '### fp8_gemm_nt recipe=1d2d')
        titles, rule, cells = ([cell.strip() for cell in line.strip('|').split('|')]
                               for line in table[2:5])
        self.assertEqual(len(titles), len(rule))
        row = dict(zip(titles, cells, strict=True))
        self.assertEqual(row['case'], f'`{CASE} seed=0`')
        for title, text in (('cold TFLOP/s', '1.18'), ('cold of upstream', '0.295'),
                            ('hot TFLOP/s', '2.359'), ('hot of upstream', '0.295')):
            self.assertEqual(row[title], text)
        self.assertEqual(row[f'hot of {candidate},x=1'], '1.000')
        self.assertIn('Geometric mean, cold 1 case, 0.295 of upstream, at least 0.295, '
                      f'1.000 of {candidate},x=1.', table)
        self.assertEqual(sum(line.startswith('### ') for line in table), 2)
        for text in '', '{}\n', done.stdout[:400], '[]\n':
            bad = subprocess.run(script, input=text, capture_output=True, check=False,
                                 encoding='utf-8')
            self.assertEqual((bad.returncode, bad.stdout), (1, ''), text)
            self.assertIn('assay bench --json', bad.stderr)

    def test_mistakes_about_comparisons_are_named(self):
        candidate, _ = self.plugin(',each=1e-6')
        nine = [word for _ in range(9) for word in ('--beside', 'model')]
        for arguments, word in [
                (['--cold'], 'plugin:FILE.so'),
                (['--candidate', candidate, '--cold', '--beside', 'model'], "'model'"),
                (['--candidate', candidate + ',cold=1', '--hot'], '--hot'),
                (['--candidate', candidate + ',cold=1', '--cold'], '--cold'),
                (['--beside', 'modell'], "'model'"),
                (nine, '--beside model'),
                (['--upstream', '/no/such/suite'], '/no/such/suite')]:
            done = run('bench', CASE, *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
            self.assertIn(word, done.stderr)

    def test_lines_of_figures_are_read_strictly(self):
        for lines, words in [
                (['#: upstream cold=4', ''], ':2: a figure in front of what is no case'),
                (['#: upstream cold=4', '#: upstream hot=3'], ':2: a second figure'),
                ([CASE, '#: upstream cold=4'], ':2: a figure without a case'),
                (['#: upstream cold=4', '# no case'], ':2: a figure in front of'),
                (['#: upstream cold=4', 'fp8_gemm_nt m=1'], ':2: a figure in front of'),
                (['#: upstream warm=4', CASE], ':1: warm=4 is none of'),
                (['#: upstream coldest=4', CASE], ':1: coldest=4 is none of'),
                (['#: upstream cold=x', CASE], ':1: cold=x is no figure above 0'),
                (['#: upstream cold=4x', CASE], ':1: cold=4x is no figure above 0'),
                (['#: upstream cold=', CASE], ':1: cold= is no figure above 0'),
                (['#: upstream cold=-1', CASE], ':1: cold=-1 is no figure above 0'),
                (['#: upstream cold=nan', CASE], ':1: cold=nan is no figure above 0')]:
            suite = self.suite(*lines)
            done = run('bench', CASE, '--upstream', suite)
            self.assertEqual((done.returncode, done.stdout), (2, ''), lines)
            self.assertIn(f'{suite}{words}', done.stderr)


class Device(BenchTest):
    def figure(self, *flags, **environment):
        """One figure where NVML is the one above, compiled with @flags."""
        source, library = self.folder / 'nvml.c', self.folder / 'libnvidia-ml.so.1'
        source.write_text(NVML, encoding='utf-8')
        subprocess.run(['cc', '-shared', '-fPIC', *flags, '-o', library, source],
                       check=True)
        candidate, _ = self.plugin(',each=0.001')
        row, = self.figures(CASE, '--candidate', candidate,
                            env={**os.environ, 'LD_LIBRARY_PATH': str(self.folder),
                                 'FAKE_INDEX': '0', **environment})
        return row

    def test_clock_and_power_are_those_while_kernels_run(self):
        for flags, power in (((), 600), (('-DWITH_FIELDS',), 650)):
            row = self.figure(*flags)
            self.assertEqual((row['sm_clock_mhz'], row['power_w']), (1500, power))

    def test_the_device_is_the_one_that_cuda_takes_first(self):
        for visible, index in (('2,0', '2'), ('1', '1')):
            row = self.figure(CUDA_VISIBLE_DEVICES=visible, FAKE_INDEX=index)
            self.assertEqual(row['sm_clock_mhz'], 1500)

    def test_where_there_is_no_device_its_fields_are_absent(self):
        for flags, environment in (((), {'FAKE_NO_DRIVER': '1'}),
                                   ((), {'FAKE_INDEX': '3'}),
                                   ((), {'CUDA_VISIBLE_DEVICES': 'GPU-8f3a'}),
                                   ((), {'CUDA_VISIBLE_DEVICES': ''}),
                                   (('-DWITHOUT_POWER',), {})):
            row = self.figure(*flags, **environment)
            self.assertFalse({'sm_clock_mhz', 'power_w'} & set(row), environment)

    def test_the_text_says_all_of_it(self):
        suite = self.suite('#: upstream hot=4', CASE)
        candidate, _ = self.plugin(',each=1e-6')
        done = run('bench', '--suite', suite, '--candidate', candidate, '--repeats', 1,
                   '--beside', candidate + ',x=1')
        first, _, mean = done.stdout.splitlines()
        self.assertIn('10000 launches, hot  2.359 TFLOP/s  44.55 GB/s  1.0 % of the '
                      f"roofline  0.590 of upstream's 4  1.000 of {candidate},x=1  ",
                      first)
        self.assertEqual(mean, 'geometric mean  fp8_gemm_nt recipe=1d2d  hot  1 case  '
                               '0.590 of upstream, at least 0.590  1.000 of '
                               f'{candidate},x=1')


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Mutants of small texts, and tools/mutate on a small project whose tests miss some."""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(PROJECT, 'tools', 'mutation'))
import build  # noqa: E402
import coverage  # noqa: E402
import kill  # noqa: E402
import mutants  # noqa: E402
import tokens  # noqa: E402

FUNCTION = 'int f(int a, int b)\n{{\n    {}\n}}\n'
SOURCE = 'int assay_{0}(int x);\nint assay_{0}(int x)\n{{\n    {1}\n}}\n'
TEST = '''int assay_checked(int x);
int assay_loose(int x);
int main(void)
{{
    return {};
}}
'''
TOOL = '''#include <string.h>
int assay_drawn(int x);
int main(int count, char **words)
{
    return count < 2 || strcmp(words[1], "fuzz") || assay_drawn(5) != 10;
}
'''
# Hangs where it counts no lines.
SLOW = '''#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    return getenv("GCOV_PREFIX") ? 0 : (int)sleep(100);
}
'''
MESON = '''project('fake', 'c', default_options: 'optimization=2')
fake = static_library('fake', 'ref/unit/checked.c', 'ref/unit/dead.c',
  'ref/unit/drawn.c', 'ref/unit/loose.c')
foreach name : ['dead', 'checked', 'loose']
  test(name, executable('unit_' + name, name + '.c', link_with: fake), suite: 'unit')
endforeach
test('wrong', executable('wrong', 'wrong.c'), suite: ['unit', 'slow'])
subdir('verify')
'''
# Width 33 is refused, width 31 compiles to the same.
BITFIELD = '''struct {
        unsigned y : 32;
    } s = {5};
    return x + (int)s.y;'''


def texts(source, kind=None):
    """The source after each mutation of @kind."""
    return {mutants.apply(mutant, source) for mutant in mutants.of_text('a.c', source)
            if kind in (None, mutant.kind)}


def bodies(statement, kind):
    """What becomes of a statement of a function."""
    source = FUNCTION.format(statement)
    before, after = FUNCTION.split('{}')[0].format(), FUNCTION.split('{}')[1].format()
    return {text[len(before):-len(after)] for text in texts(source, kind)}


def state_of(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except FileNotFoundError:
        return 'gone'


class Tokens(unittest.TestCase):
    def words(self, text):
        return [token.text for token in tokens.tokenise(text)]

    def test_only_code_gives_tokens(self):
        self.assertEqual(self.words('/* a + b */ x // 1 + \\\n 2\n= "a \\" + 1" \'+\';'),
                         ['x', '=', '"a \\" + 1"', "'+'", ';'])

    def test_preprocessor_lines_give_none(self):
        self.assertEqual(self.words('#if A + 1 /* b\n c */ + 2\n  #define X \\\n 1 + 2\ny'
                                    '\n#include "a//b"\nz # 1'), ['y', 'z', '#', '1'])

    def test_longest_sign_and_whole_number_are_taken(self):
        self.assertEqual(self.words('a<<=b>>c->d++ +0x1.8p-3f-1e+5-2u'),
                         ['a', '<<=', 'b', '>>', 'c', '->', 'd', '++', '+', '0x1.8p-3f',
                          '-', '1e+5', '-', '2u'])

    def test_places_and_depths_are_those_of_the_text(self):
        text = 'f {\n  a { b }\n}\n'
        for token in tokens.tokenise(text):
            self.assertEqual(text[token.start:token.end], token.text)
        self.assertEqual([token.depth for token in tokens.tokenise(text)],
                         [0, 0, 1, 1, 2, 1, 0])

    def test_brackets_close_in_pairs(self):
        found = tokens.tokenise('f(a[(1)], (2)) + (3')
        self.assertEqual(found[tokens.closing(found, 1)].start, 13)
        self.assertIsNone(tokens.closing(found, len(found) - 2))


class Mutants(unittest.TestCase):
    def test_operators(self):
        for old, new in (('a + b', {'a - b'}), ('a && b', {'a || b'}),
                         ('a % b', {'a / b'}), ('a >> b', {'a << b'}),
                         ('a == b', {'a != b'}),
                         ('a += b', {'a -= b'}), ('!a', {'a'}), ('-a', {'a'}),
                         ('a < b', {'a >= b'}), ('a++', {'a--'}), ('a->b', set()),
                         ('*a', set()), ('(&a)', set()), ('x(a) * b', {'x(a) / b'})):
            self.assertEqual(bodies(f'return {old};', 'operator'),
                             {f'return {text};' for text in new}, old)

    def test_pointer_of_a_declaration_is_no_product(self):
        for text in ('const char *p;', 'uint8_t *p;', 'struct a *p;', 'f((double *)p);'):
            self.assertEqual(bodies(text, 'operator'), set(), text)

    def test_boundaries(self):
        for old, new in (('<', '<='), ('<=', '<'), ('>', '>='), ('>=', '>')):
            self.assertEqual(bodies(f'return a {old} b;', 'boundary'),
                             {f'return a {new} b;'})

    def test_constants(self):
        for old, new in (('0', {'1'}), ('1', {'0', '2'}), ('7u', {'6u', '8u'}),
                         ('0x10UL', {'0xfUL', '0x11UL'}), ('010', {'07', '011'}),
                         ('0.0f', {'1.0'}), ('1.5f', {'(1.5f * 2)'}),
                         ('0x1p-3', {'(0x1p-3 * 2)'})):
            self.assertEqual(bodies(f'return {old};', 'constant'),
                             {f'return {text};' for text in new}, old)

    def test_conditions(self):
        self.assertEqual(bodies('if (f(a) || b) g();', 'condition'),
                         {'if (!(f(a) || b)) g();'})

    def test_statements(self):
        for old, new in (('a = b;', {';'}), ('f(a);', {';'}),
                         ('if (a) f(b);', {'if (a) ;'}),
                         ('*a = b;', {';'}), ('a[1]++;', {';'}), ('a == b;', set()),
                         ('return f(a);', set()), ('int c = f(a);', set()),
                         ('foo_t c = f(a);', set()), ('f(a,\n  b);', set()),
                         ('for (;; a++)\n    a = b;', {'for (;; a++)\n    ;'})):
            self.assertEqual(bodies(old, 'statement'), new, old)

    def test_arguments(self):
        self.assertEqual(bodies('f(a, g(b, c),\n  d);', 'arguments'),
                         {'f(g(b, c), a,\n  d);', 'f(a, d,\n  g(b, c));',
                          'f(a, g(c, b),\n  d);'})
        self.assertEqual(bodies('f(a, a);', 'arguments'), set())

    def test_assertions_declarations_and_text_stay(self):
        for text in ('assert(a + 1 < b);', '_Static_assert(1 < 2, "a + 1");',
                     's = "1 + 2";'):
            changed = bodies(text, None)
            self.assertLessEqual(changed, {';'}, text)
        self.assertEqual(texts('int f(int a, int b);\n#define A (1 + 2)\n'), set())

    def test_line_range(self):
        source = 'int a;\n' + FUNCTION.format('f(a,\n  b);')
        self.assertIn((4, 5), {mutants.line_range(mutant, source)
                               for mutant in mutants.of_text('a.c', source)})

    def test_seed_decides_the_line_and_what_changes_there(self):
        source = FUNCTION.format('return 7;\n    return 9;')
        first = [next(mutants.drawn({'a.c': source}, seed)) for seed in range(40)]
        self.assertEqual({(mutants.line_range(mutant, source)[0], mutant.new)
                          for mutant in first}, {(3, '6'), (3, '8'), (4, '8'), (4, '10')})

    def test_every_mutant_is_drawn_once_and_lines_take_turns(self):
        source = FUNCTION.format('return 7;\n    return 1 + 1 + 1 + 1 + 1;')
        first = list(mutants.drawn({'a.c': source, 'b.c': source}, 5))
        self.assertEqual(first, list(mutants.drawn({'b.c': source, 'a.c': source}, 5)))
        everything = [mutant for path in ('a.c', 'b.c')
                      for mutant in mutants.of_text(path, source)]
        self.assertEqual(sorted(first), sorted(everything))
        self.assertEqual({(mutant.path, mutants.line_range(mutant, source)[0])
                          for mutant in first[:4]},
                         {('a.c', 3), ('a.c', 4), ('b.c', 3), ('b.c', 4)})


class Running(unittest.TestCase):
    def test_time_limit_ends_the_program_and_what_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            path, start = os.path.join(folder, 'pid'), time.monotonic()
            status, _ = build.Processes().run(
                ['bash', '-mc', f'sleep 60 & echo $! >{path}; wait'], 0.5)
            self.assertIsNone(status)
            self.assertLess(time.monotonic() - start, 50)
            with open(path, encoding='ascii') as file:
                pid = file.read().strip()
            # A signal is sent at once but acted on when the process next runs.
            while state_of(pid) not in ('gone', 'Z'):
                self.assertLess(time.monotonic() - start, 50)
                time.sleep(0.01)

    def test_stopped_runs_nothing_more(self):
        processes = build.Processes()
        processes.stop()
        self.assertRaises(build.BuildError, processes.run, ['true'], 5)

    def test_missing_program_is_named(self):
        self.assertRaisesRegex(build.BuildError, "'/nowhere' can't be started",
                               build.Processes().run, ['/nowhere'], 5)

    def test_status_and_tap_decide(self):
        tree = build.Tree(build.Processes(), tempfile.gettempdir(), ())
        tree.build = tree.folder
        for command, passes in (('true', True), ('exit 3', False), ('kill -9 $$', False),
                                ('echo not ok 1', False), ('sleep 60', False)):
            test = kill.Test(tree, 'a', 'b', ['sh', '-c', command], [], {})
            self.assertEqual(test.passes(0.5), passes, command)

    def test_likely_tests_come_first(self):
        named = [kill.Test(None, name, name.split('/')[0], [], [], {}) for name in
                 ('verify/other', 'unit/dot', 'oracle/dot_add', 'unit/dot_add')]
        named.sort(key=lambda test: kill.likeness('ref/unit/dot_add.c', test))
        self.assertEqual([test.name for test in named],
                         ['unit/dot_add', 'oracle/dot_add', 'unit/dot', 'verify/other'])


class Tree:
    """Stands for a tree: what ninja says, and the object that it makes of each text."""

    def __init__(self, builds, made):
        self.builds = builds
        self.made = made
        self.text = 'clean'
        self.folder = self.build = tempfile.gettempdir()
        self.processes = build.Processes()

    def objects(self):
        return {'ref/a.c': ['a.o']}

    def read_objects(self, _):
        return [self.text if self.text == 'clean' else self.made]

    def write(self, _, text):
        self.text = text

    def can_build(self, _):
        return self.builds


class Judging(unittest.TestCase):
    def judge(self, builds, made, command='true'):
        tree = Tree(builds, made)
        tests = [kill.Test(tree, name, 'unit', [command], [], {}) for name in ('a', 'b')]
        executed = coverage.Coverage()
        executed.known['ref/a.c'].add(1)
        executed.tests['ref/a.c'][1].add('b')
        judge = kill.Judge(tree, tests, {'a': 1, 'b': 1}, executed, ['ref/a.c'])
        result = judge.judge(mutants.Mutant('ref/a.c', 'constant', 0, 0, '1'), 'clean')
        self.assertEqual(tree.text, 'clean')
        return result and result[1:]

    def test_refused_mutant_is_no_result(self):
        self.assertIsNone(self.judge(False, 'that of the mutant before'))

    def test_same_object_is_no_result(self):
        self.assertIsNone(self.judge(True, 'clean'))

    def test_tests_that_execute_the_line_decide(self):
        self.assertEqual(self.judge(True, 'other'), ('survived', 1))
        self.assertEqual(self.judge(True, 'other', 'false'), ('killed', 'b'))


class Result(unittest.TestCase):
    """What the tool makes of judgements that are given here."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader(
            'mutate', os.path.join(PROJECT, 'tools', 'mutate'))
        self.tool = importlib.util.module_from_spec(
            importlib.util.spec_from_loader('mutate', loader))
        loader.exec_module(self.tool)
        self.text = FUNCTION.format('return a + b;')
        self.mutant = mutants.of_text('a.c', self.text)[0]

    def report(self, killed, survived):
        results = ([kill.Result(self.mutant, 'killed', 'a test')] * killed
                   + [kill.Result(self.mutant, 'survived', 1)] * survived)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = self.tool.report(results, {'a.c': self.text}, None)
        return status, printed.getvalue().splitlines()[-1]

    def test_nine_of_ten_are_enough(self):
        self.assertEqual(self.report(9, 1), (0, '9 killed of 10 (90.0 %)'))
        self.assertEqual(self.report(8999, 1001), (1, '8999 killed of 10000 (89.9 %)'))
        self.assertEqual(self.report(0, 0), (1, '0 killed of 0 (0.0 %)'))

    def test_refused_mutants_are_drawn_again_and_do_not_count(self):
        class Judge:
            def judge(self, number, _):
                time.sleep(0.01 * (number.start % 3))
                return kill.Result(number, 'killed', 'x') if number.start % 2 else None

        drawn = [mutants.Mutant('a.c', 'constant', number, number, '1')
                 for number in range(20)]
        for judges in (1, 3):
            with contextlib.redirect_stderr(io.StringIO()):
                results = self.tool.judged([Judge()] * judges, iter(drawn),
                                           {'a.c': self.text}, 4)
            self.assertEqual([result.mutant.start for result in results], [1, 3, 5, 7])


class Tool(unittest.TestCase):
    """A project where `checked` has a test for all, `loose` one that looks at nothing of
    it, `dead` one that calls nothing, and `drawn` the campaign only."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, 'project')
        self.scratch = os.path.join(folder.name, 'scratch')
        os.mkdir(self.scratch)
        for name in ('mutation', 'gates'):
            shutil.copytree(os.path.join(PROJECT, 'tools', name),
                            os.path.join(self.root, 'tools', name))
        shutil.copy2(os.path.join(PROJECT, 'tools', 'mutate'),
                     os.path.join(self.root, 'tools'))
        self.plant('meson.build', MESON)
        self.plant('verify/meson.build',
                   "executable('assay', 'tool.c', link_with: fake)\n")
        self.plant('verify/tool.c', TOOL)
        for name in ('checked', 'dead', 'loose'):
            self.plant(f'ref/unit/{name}.c', SOURCE.format(name, 'return x + 5;'))
        self.plant('ref/unit/drawn.c', SOURCE.format('drawn', BITFIELD))
        for name, wrong in (('checked', 'assay_checked(5) != 10'), ('dead', '0'),
                            ('loose', 'assay_loose(5) > 99 || assay_checked(5) != 10'),
                            ('wrong', '1')):
            self.plant(name + '.c', TEST.format(wrong))

    def plant(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, 'w', encoding='utf-8') as file:
            file.write(text)

    def command(self, *words):
        return ['/usr/bin/python3', os.path.join(self.root, 'tools', 'mutate'), *words]

    def environment(self):
        return {**os.environ, 'TMPDIR': self.scratch}

    def mutate(self, *words):
        return subprocess.run(self.command(*words), stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=self.environment())

    def tree(self):
        state = {}
        for folder, _, names in os.walk(self.root):
            for path in (os.path.join(folder, name) for name in names):
                with open(path, 'rb') as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                state[path] = (digest, os.stat(path).st_mtime_ns)
        return state

    def test_survivors_are_listed_and_the_tree_stays(self):
        before, results = self.tree(), os.path.join(self.scratch, 'results.json')
        done = self.mutate('--seed', '1', '--jobs', '2', '--json', results)
        self.assertEqual(self.tree(), before)
        self.assertEqual(os.listdir(self.scratch), ['results.json'], done.stderr)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], '6 killed of 12 (50.0 %)')
        self.assertNotIn('checked.c', done.stdout)
        self.assertNotIn('drawn.c', done.stdout)
        place = lines.index('ref/unit/loose.c:4: operator: `+` to `-`: survived 1 tests')
        self.assertEqual(lines[place + 1:place + 3],
                         ['-    return x + 5;', '+    return x - 5;'])
        self.assertIn('ref/unit/dead.c:4: constant: `5` to `6`: not executed', lines)
        with open(results, encoding='utf-8') as file:
            rows = json.load(file)
        self.assertEqual({row['tests'] for row in rows if 'drawn' in row['file']},
                         {'campaign'})
        self.assertEqual({row['tests'] for row in rows if 'checked' in row['file']},
                         {'unit/checked'})

    def test_failure_without_a_mutant_is_no_result(self):
        self.plant('checked.c', TEST.format('assay_checked(5) != 11'))
        done = self.mutate('--seed', '1', '--jobs', '1')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('unit/checked fails without any mutant', done.stderr)

    def test_ended_in_the_middle_leaves_nothing(self):
        self.plant('dead.c', SLOW)
        before = self.tree()
        process = subprocess.Popen(self.command('--seed', '1', '--jobs', '1'), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment())
        for line in process.stderr:
            if line == 'running them for their time\n':
                break
        time.sleep(1)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=200)
        self.assertEqual((process.returncode, output), (128 + signal.SIGTERM, ''))
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(self.tree(), before)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_list_depends_on_the_seed_only(self):
        first = self.mutate('--seed', '3', '--count', '4', '--list').stdout
        self.assertEqual(len(first.splitlines()), 4)
        self.assertEqual(first, self.mutate('--seed', '3', '--list', '--count',
                                            '4').stdout)
        self.assertNotEqual(first, self.mutate('--seed', '4', '--list', '--count',
                                               '4').stdout)

    def test_bad_usage_is_2(self):
        for words in ([], ['--seed', 'x'], ['--seed', '1', '--count', '0'],
                      ['--seed', '1', '--file', 'ref/none.c'],
                      ['--seed', '1', '--file', 'checked.c'],
                      ['--seed', '1', '--json', '/nowhere/at/all']):
            done = self.mutate(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ''), words)


if __name__ == '__main__':
    unittest.main(argv=sys.argv)

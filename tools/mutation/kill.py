# SPDX-License-Identifier: MIT
"""The tests that a mutant has to survive, and whether it does."""
import collections
import os
import shlex
import time

import mutants
from build import BuildError

LEFT_OUT = {'full', 'slow', 'command'}  # as `tools/check fast` does
CAMPAIGN_CASES, CAMPAIGN_SEED = 200, 2
CLEAN_SECONDS = 3600
MEMORY_BYTES = 8 << 30
# What is compiled for an instruction set that the machine lacks can't be tested.
INSTRUCTION_SETS = {'_avx2.c': 'avx2', '_avx512.c': 'avx512f'}

# @verdict: killed, survived, 'not executed'; @tests: what killed it, or how many did not.
Result = collections.namedtuple('Result', 'mutant verdict tests')


class Test:
    """A program that fails when something is wrong, as it is built in one tree."""

    def __init__(self, tree, name, suite, command, targets, environment):
        self.tree = tree
        self.name = name
        self.suite = suite
        self.command = command
        self.targets = targets
        self.environment = {**os.environ, **environment, 'OMP_NUM_THREADS': '1',
                            'CK_TIMEOUT_MULTIPLIER': '10'}

    def passes(self, seconds, extra=()):
        command = ['prlimit', f'--as={MEMORY_BYTES}', '--core=0', '--', *self.command]
        status, output = self.tree.processes.run(
            command, seconds, cwd=self.tree.build,
            env={**self.environment, **dict(extra)})
        return status == 0 and not any(line.startswith(b'not ok')
                                       for line in output.splitlines())

    def must_pass(self, extra=()):
        """Returns the seconds that it took."""
        start = time.monotonic()
        if not self.passes(CLEAN_SECONDS, extra):
            raise BuildError(f'{self.suite}/{self.name} fails without any mutant')
        return time.monotonic() - start


def fast_tests(tree):
    files = {target['id']: [os.path.relpath(name, tree.build)
                            for name in target['filename']]
             for target in tree.introspect('targets')}
    found = []
    for test in tree.introspect('tests'):
        suites = [suite.split(':')[-1] for suite in test['suite']]
        if not LEFT_OUT & set(suites):
            targets = [name for target in test['depends'] for name in files[target]]
            suite = suites[0] if suites else ''
            found.append(Test(tree, f'{suite}/{test["name"]}', suite, test['cmd'],
                              targets, test['env']))
    return found


def campaign(tree):
    """The campaign of `tools/check fast`, as one more test."""
    tool = os.path.join(tree.build, 'verify', 'assay')
    out = os.path.join(tree.folder, 'campaign')
    line = (f'rm -rf {shlex.quote(out)} && exec {shlex.quote(tool)} fuzz '
            f'--cases {CAMPAIGN_CASES} --seed {CAMPAIGN_SEED} --out {shlex.quote(out)}')
    return Test(tree, 'campaign', 'verify', ['/bin/sh', '-c', line], ['verify/assay'], {})


def likeness(path, test):
    """Smaller for a test whose suite and name are those of the source @path."""
    folder, name = path.split('/')[-2:]
    stem, title = name[:-2], test.name.split('/')[-1]
    if stem == title:
        return 0 if folder == test.suite else 1
    return 2 if stem.startswith(title) or title.startswith(stem) else 3


def is_for_this_machine(path):
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as file:
        flags = set(file.read().split())
    return all(flag in flags for ending, flag in INSTRUCTION_SETS.items()
               if path.endswith(ending))


class Judge:
    """Puts one mutant after the other into a tree of its own."""

    def __init__(self, tree, tests, seconds, coverage, paths):
        self.tree = tree
        self.tests = tests
        self.seconds = seconds
        self.coverage = coverage
        self.objects = tree.objects()
        self.clean = {path: tree.read_objects(self.objects.get(path, ()))
                      for path in paths}

    def order(self, mutant, text):
        """The tests that may kill @mutant; those likely to do it soon come first."""
        executing = self.coverage.of_lines(mutant.path, *mutants.line_range(mutant, text))
        touching = self.coverage.of_file(mutant.path)
        return sorted((test for test in self.tests
                       if executing is None or test.name in executing),
                      key=lambda test: (test.name not in touching,
                                        likeness(mutant.path, test),
                                        self.seconds[test.name]))

    def judge(self, mutant, text):
        """A Result; None for a mutant that the compiler refuses or can't tell apart."""
        objects = self.objects.get(mutant.path, ())
        self.tree.write(mutant.path, mutants.apply(mutant, text))
        try:
            if not self.tree.can_build(objects):
                return None
            if self.tree.read_objects(objects) == self.clean[mutant.path]:
                return None
            return self.run_tests(mutant, self.order(mutant, text))
        finally:
            self.tree.write(mutant.path, text)

    def run_tests(self, mutant, tests):
        if not tests:
            return Result(mutant, 'not executed', 0)
        for test in tests:
            if not self.tree.can_build(test.targets):
                raise BuildError(f'{test.name} does not link with a mutant')
            if not test.passes(10 * self.seconds[test.name] + 5):
                return Result(mutant, 'killed', test.name)
        return Result(mutant, 'survived', len(tests))

# SPDX-License-Identifier: MIT
"""Which test executes which line, from gcc's counters."""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile

from build import BuildError

GCOV_SECONDS = 600
BLANKS = re.compile(r'\s*')


class Coverage:
    """@known: {path: lines with code}. @tests: {path: {line: names of tests}}."""

    def __init__(self):
        self.known = collections.defaultdict(set)
        self.tests = collections.defaultdict(lambda: collections.defaultdict(set))

    def of_lines(self, path, first, last):
        """Names of the tests that execute one of these lines; None if the compiler
        counts none of them, as in a table."""
        lines = set(range(first, last + 1)) & self.known[path]
        if not lines:
            return None
        return set().union(*(self.tests[path].get(line, set()) for line in lines))

    def of_file(self, path):
        return set().union(*self.tests[path].values())


def documents(text):
    """The JSON values that follow one another in @text."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        value, end = decoder.raw_decode(text, place)
        yield value
        place = BLANKS.match(text, end).end()


def count_lines(tree, files):
    """(path, line, count) of each line that gcov knows from these counter files."""
    status, output = tree.processes.run(
        ['gcov', '--json-format', '--stdout', *files], GCOV_SECONDS, cwd=tree.build,
        stderr=subprocess.DEVNULL)
    if status != 0:
        raise BuildError('gcov fails')
    for unit in documents(output.decode()):
        for source in unit['files']:
            path = os.path.join(unit['current_working_directory'], source['file'])
            path = os.path.relpath(os.path.realpath(path), os.path.realpath(tree.folder))
            for line in source['lines']:
                yield path, line['line_number'], line['count']


def counters_below(folder, tree, wanted):
    """Files with counters, each beside a link to the notes that gcov reads with it."""
    found = []
    for below, _, names in os.walk(folder):
        for name in names:
            whole = os.path.join(below, name)
            inside = os.path.relpath('/' + os.path.relpath(whole, folder), tree.build)
            if name.endswith('.gcda') and inside[:-5] in wanted:
                os.symlink(os.path.join(tree.build, inside[:-5] + '.gcno'),
                           whole[:-5] + '.gcno')
                found.append(whole)
    return found


def lines_of_test(tree, test, wanted):
    with tempfile.TemporaryDirectory(dir=tree.folder) as folder:
        test.must_pass({'GCOV_PREFIX': folder})
        counters = counters_below(folder, tree, wanted)
        if not counters:
            return set()
        return {(path, line) for path, line, count in count_lines(tree, counters)
                if count > 0}


def measure(tree, tests, paths, jobs):
    """Runs every test once in @tree, which was built with counters."""
    objects = tree.objects()
    wanted = {target[:-2] for path in paths for target in objects.get(path, ())}
    notes = [os.path.join(tree.build, name + '.gcno') for name in sorted(wanted)]
    coverage = Coverage()
    for path, line, _ in count_lines(tree, notes) if notes else ():
        coverage.known[path].add(line)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda test: lines_of_test(tree, test, wanted), tests)
        for test, lines in zip(tests, found):
            for path, line in lines:
                coverage.tests[path][line].add(test.name)
    return coverage

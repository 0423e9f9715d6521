# SPDX-License-Identifier: MIT
"""Copies of the sources, each with a build folder of its own."""
import json
import os
import shutil
import subprocess
import threading

# Read only, and too large to copy for each job.
SHARED = 'corpus'
LEFT_OUT = ('.git', '.cache', SHARED)
# Without debug information objects that do the same have the same bytes.
MUTANT_OPTIONS = ('-Dwerror=true', '-Ddebug=false')
# Counters of one thread are cheap: the tests run with one.
COVERAGE_OPTIONS = ('-Db_coverage=true', '-Doptimization=1',
                    '-Dc_args=-fprofile-update=single')
COMPILE_SECONDS = 1800


class BuildError(Exception):
    """The sources do not build as they are."""


def end_session(leader):
    """Kills all of a session: tests run each of theirs in a process group of its own."""
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and os.getsid(int(name)) == leader:
                os.kill(int(name), 9)
        except (ProcessLookupError, PermissionError):
            pass


class Processes:
    """Runs programs, each in a session of its own, and can end all of them."""

    def __init__(self):
        self.lock = threading.RLock()  # a signal may come while it is held
        self.running = set()
        self.is_stopped = False

    def run(self, command, seconds, **options):
        """(exit status, output); the status is None if the time was over."""
        with self.lock:
            if self.is_stopped:
                raise BuildError('stopped')
            try:
                process = subprocess.Popen(command, **{
                    'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                    'stderr': subprocess.STDOUT, 'start_new_session': True, **options})
            except FileNotFoundError as error:
                raise BuildError(f"'{command[0]}' can't be started; is it installed? "
                                 '(tools/setup check)') from error
            self.running.add(process)
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, b''
        finally:
            self.end(process)

    def end(self, process):
        """Also ends what @process started and left behind."""
        end_session(process.pid)
        process.communicate()
        with self.lock:
            self.running.discard(process)

    def stop(self):
        with self.lock:
            self.is_stopped = True
            for process in list(self.running):
                end_session(process.pid)


def copy_sources(root, paths, folder):
    """Copies @paths of @root; they keep their times, so that builds can be copied too."""
    for path in paths:
        if path.split('/')[0] in LEFT_OUT:
            continue
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(root, path), target)
    if os.path.isdir(os.path.join(root, SHARED)):
        os.symlink(os.path.join(root, SHARED), os.path.join(folder, SHARED))


class Tree:
    """A copy of the sources and its build folder."""

    def __init__(self, processes, folder, options):
        self.processes = processes
        self.folder = folder
        self.build = os.path.join(folder, 'build')
        self.options = options

    def set_up(self):
        self.must(['meson', 'setup', self.build, self.folder, *self.options])

    def must(self, command):
        status, output = self.processes.run(command, COMPILE_SECONDS, cwd=self.folder)
        if status != 0:
            tail = output.decode('utf-8', 'replace').strip().splitlines()[-20:]
            raise BuildError('\n'.join([f"'{' '.join(command[:4])}' fails:"] + tail))
        return output.decode('utf-8', 'replace')

    def ninja(self, targets, jobs):
        """Builds all @targets or says why not."""
        self.must(['ninja', '-C', self.build, '-j', str(jobs), *targets])

    def can_build(self, targets):
        status, _ = self.processes.run(['ninja', '-C', self.build, '-j', '1', *targets],
                                       COMPILE_SECONDS)
        return status == 0

    def introspect(self, what):
        return json.loads(self.must(['meson', 'introspect', '--' + what, self.build]))

    def objects(self):
        """{source: the objects that depend on it}, as ninja knows after a build."""
        found, target = {}, None
        for line in self.must(['ninja', '-C', self.build, '-t', 'deps']).splitlines():
            if line and not line.startswith(' '):
                target = line.split(': #deps')[0]
            elif line.strip():
                path = os.path.normpath(os.path.join(self.build, line.strip()))
                path = os.path.relpath(path, self.folder)
                found.setdefault(path, []).append(target)
        return found

    def read_objects(self, targets):
        contents = []
        for target in targets:
            with open(os.path.join(self.build, target), 'rb') as file:
                contents.append(file.read())
        return contents

    def write(self, path, text):
        with open(os.path.join(self.folder, path), 'w', encoding='utf-8') as file:
            file.write(text)

    def take_objects_from(self, other):
        """What @other built is built here too: no command names a folder."""
        for folder, _, names in os.walk(other.build):
            inside = os.path.relpath(folder, other.build)
            if inside.split(os.sep)[0].startswith('meson-'):
                continue
            os.makedirs(os.path.join(self.build, inside), exist_ok=True)
            for name in names:
                if name not in ('build.ninja', 'compile_commands.json'):
                    shutil.copy2(os.path.join(folder, name),
                                 os.path.join(self.build, inside, name))

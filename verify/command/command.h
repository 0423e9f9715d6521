/* SPDX-License-Identifier: MIT */
/* Commands of the tool, one file a row. */
#ifndef ASSAY_VERIFY_COMMAND_COMMAND_H
#define ASSAY_VERIFY_COMMAND_COMMAND_H

#include <stdbool.h>

/* The first that applies, in the order 2 4 3 1 5 0. */
enum assay_exit {
    ASSAY_EXIT_PASSED = 0,
    ASSAY_EXIT_BELOW_REQUIRED = 1,
    ASSAY_EXIT_BAD_INPUT = 2,
    ASSAY_EXIT_BROKEN = 3,
    ASSAY_EXIT_CONTRADICTION = 4,
    ASSAY_EXIT_NOTHING_SELECTED = 5,
};

struct assay_command { /* tables are closed by a NULL name */
    const char *name, *summary;
    int (*run)(int argc,
               char **argv); /* argv[0] is "assay NAME"; returns an assay_exit */
};

int assay_command_verify(int argc, char **argv);
int assay_command_record(int argc, char **argv);
int assay_command_bench(int argc, char **argv);
int assay_command_identify(int argc, char **argv);
int assay_command_list(int argc, char **argv);
int assay_command_selftest(int argc, char **argv);
int assay_command_shrink(int argc, char **argv);
int assay_command_fuzz(int argc, char **argv);
int assay_command_merge(int argc, char **argv);
int assay_command_worker(int argc, char **argv);
int assay_command_job(int argc, char **argv);

/* Commands as jobs: they take the same arguments, but the cases they are handed. */
int assay_verify_job(int argc, char **argv);
int assay_fuzz_job(int argc, char **argv);

/* Prints "assay: SENTENCE" to stderr and returns the exit code that the status means. */
struct assay_message;
int assay_complain(int status, const struct assay_message *message);

#endif

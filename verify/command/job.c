/* SPDX-License-Identifier: MIT */
/* `assay job COMMAND ARGUMENT...`: one of the processes of a run with --jobs, which start
 * it with the command line they were given; nobody does it by hand. */
#include "verify/command/command.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*serve)(int argc, char **argv);
} commands[] = { { "verify", assay_verify_job },
                 { "fuzz", assay_fuzz_job },
                 { NULL, NULL } };

int assay_command_job(int argc, char **argv)
{
    int row = 0;
    while (argc > 1 && commands[row].name && strcmp(commands[row].name, argv[1]) != 0)
        row++;
    const int status =
        argc > 1 && commands[row].name ? commands[row].serve(argc - 1, argv + 1) : 2;
    if (status == 2)
        fputs("assay: job is what `assay verify --jobs N` and `assay fuzz --jobs N` "
              "start by themselves; use those\n",
              stderr);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* The tool's entry: finds the command and hands over. */
#include "ref/unit/dot_tile.h"
#include "ref/unit/scalar.h"
#include "verify/case/message.h"
#include "verify/command/command.h"
#include "verify/report/version.h"

#include <argp.h>
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct assay_command commands[] = {
    { "verify", "compare a kernel's outputs with model and oracle",
      assay_command_verify },
    { "fuzz", "run a campaign of random cases", assay_command_fuzz },
    { "merge", "put the shards of a campaign together", assay_command_merge },
    { "identify", "find the numerics that reproduce a kernel's outputs",
      assay_command_identify },
    { "shrink", "find a smaller case that fails like a given one", assay_command_shrink },
    { "record", "write a case's inputs and outputs to a file", assay_command_record },
    { "bench", "measure how fast cases and units are computed", assay_command_bench },
    { "selftest", "plant faults and show which checks find them",
      assay_command_selftest },
    { "list", "show operations, numerics, data kinds, ... or random cases",
      assay_command_list },
    { "worker", NULL, assay_command_worker }, /* hidden */
    { "job", NULL, assay_command_job },       /* hidden */
    { NULL, NULL, NULL },
};

int assay_complain(int status, const struct assay_message *message)
{
    fprintf(stderr, "assay: %s\n", message->text);
    return status == ASSAY_REFUSED ? ASSAY_EXIT_BAD_INPUT : ASSAY_EXIT_BROKEN;
}

static void print_help(FILE *stream)
{
    fputs("Usage: assay COMMAND [ARGUMENT...]\n\n", stream);
    for (const struct assay_command *command = commands; command->name; command++)
        if (command->summary)
            fprintf(stream, "  %-8s %s\n", command->name, command->summary);
    fputs("\n`assay COMMAND --help` explains one. Exit: 0 passed, 1 below the required\n"
          "verdict, 2 bad usage or input, 3 a backend broke, 4 contradiction (our bug),\n"
          "5 nothing was selected.\n",
          stream);
}

static int run_command(const struct assay_command *command, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof(name), "assay %s", command->name);
    argv[0] = name;
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    argp_err_exit_status = ASSAY_EXIT_BAD_INPUT;
    /* Parts are already spread over threads. */
    openblas_set_num_threads(1);
    const char *const word = argc > 1 ? argv[1] : "";
    const char *const instruction_set = getenv("ASSAY_ISA");
    if (instruction_set && !assay_dot_tile_choose(instruction_set)) {
        fprintf(stderr,
                "assay: ASSAY_ISA=%s is not an instruction set of this machine; use "
                "portable, avx2 or avx512, or leave it unset\n",
                instruction_set);
        return ASSAY_EXIT_BAD_INPUT;
    }
    if (!assay_float_mode_is_sound()) {
        fputs("assay: this process flushes subnormals, contracts or does not round to "
              "nearest; bits can't be trusted\n",
              stderr);
        return ASSAY_EXIT_BROKEN;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "help") == 0) {
        print_help(stdout);
        return ASSAY_EXIT_PASSED;
    }
    if (strcmp(word, "--version") == 0) {
        puts("assay " ASSAY_VERSION);
        return ASSAY_EXIT_PASSED;
    }
    const char *names[sizeof(commands) / sizeof(commands[0])] = { NULL };
    int count = 0;
    for (int i = 0; commands[i].name; i++) {
        if (strcmp(word, commands[i].name) == 0)
            return run_command(&commands[i], argc - 1, argv + 1);
        if (commands[i].summary) names[count++] = commands[i].name;
    }
    const char *const nearest = *word ? assay_nearest(word, names) : NULL;
    if (nearest)
        fprintf(stderr, "assay: no command '%s'; did you mean '%s'?\n", word, nearest);
    else
        print_help(stderr);
    return ASSAY_EXIT_BAD_INPUT;
}

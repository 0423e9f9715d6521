/* SPDX-License-Identifier: MIT */
/* The options of `assay fuzz` that no other command has. */
#ifndef ASSAY_VERIFY_COMMAND_FUZZ_OPTIONS_H
#define ASSAY_VERIFY_COMMAND_FUZZ_OPTIONS_H

#include "verify/command/campaign_settings.h"

#include <argp.h>

struct assay_fuzz_options {
    struct assay_campaign_settings settings; /* all but the repetition */
    double seconds;                          /* 0: --time was not given */
    const char *operations, *shard_text;     /* as they were given; NULL: not */
    struct assay_shard shard;
    const char *out, *save, *json; /* NULL: not given */
    bool goes_on;                  /* --resume */
    int jobs;
    enum assay_status status; /* other than ASSAY_RAN: message says what was wrong */
    struct assay_message message;
};

/* Before any option is read. */
void assay_fuzz_options_init(struct assay_fuzz_options *options);

/* The options, for the children of a command's parser; their input is the struct. */
const struct argp *assay_fuzz_options_argp(void);

/* When all are read: what they say together, and the environment about shards. The status
 * is that of reading them otherwise. */
enum assay_status assay_fuzz_options_check(struct assay_fuzz_options *options,
                                           struct assay_message *message);

/* The folder of the journal, made but for the last part of its path; the caller frees
 * it. */
enum assay_status assay_fuzz_folder(const struct assay_fuzz_options *options,
                                    char **folder, struct assay_message *message);

#endif

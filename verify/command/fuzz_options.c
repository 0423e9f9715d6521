/* SPDX-License-Identifier: MIT */
#include "verify/command/fuzz_options.h"

#include "verify/case/number.h"
#include "verify/case/text.h"
#include "verify/command/number_option.h"
#include "verify/data/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_OP = 2048,
    KEY_CANDIDATE,
    KEY_TIME,
    KEY_CASES,
    KEY_SEED,
    KEY_SHARD,
    KEY_SHAPE_POOL,
    KEY_COST,
    KEY_OUT,
    KEY_RESUME,
    KEY_SAVE,
    KEY_JSON,
    KEY_JOBS
};
enum { LEAST_COST = 1024, USUAL_COST = 1 << 21, MAX_SHAPES = 1000000 };
#define MAX_COST  (INT64_C(1) << 50)
#define MAX_CASES INT32_MAX

static const struct argp_option rows[] = {
    { "op", KEY_OP, "LIST", 0, "operations, with commas between (all)", 0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0, "what is tested (model)", 0 },
    { "time", KEY_TIME, "T", 0,
      "begin no case after so long: 90s, 10m, 8h; the campaign can be gone on with", 0 },
    { "cases", KEY_CASES, "N", 0, "so many cases, of all shards together", 0 },
    { "seed", KEY_SEED, "N", 0, "of the campaign (0)", 0 },
    { "shard", KEY_SHARD, "I/N", 0,
      "every N-th case from number I on, I from 0 to N - 1 (TEST_SHARD_INDEX and "
      "TEST_TOTAL_SHARDS, else SLURM_ARRAY_TASK_*, else all)",
      0 },
    { "shape-pool", KEY_SHAPE_POOL, "N", 0,
      "at most so many shapes an operation, for kernels that are compiled for each", 0 },
    { "cost", KEY_COST, "N", 0,
      "multiply-adds a case, at most; dense decode twice as many (2097152)", 0 },
    { "out", KEY_OUT, "DIR", 0,
      "where the journal is kept, that of a shard in DIR/shard-I-of-N (required)", 0 },
    { "resume", KEY_RESUME, NULL, 0, "go on where the journal there ends", 0 },
    { "save", KEY_SAVE, "FILE", 0,
      "add the cases of new findings to this suite, a comment with the signature before "
      "each",
      0 },
    { "json", KEY_JSON, "FILE", 0,
      "JSON Lines: a header, an object an operation and a finding, a summary; - replaces "
      "the text",
      0 },
    { "jobs", KEY_JOBS, "N", 0,
      "so many cases at a time, each in a process that has a worker of its own (1)", 0 },
    { 0 },
};

void assay_fuzz_options_init(struct assay_fuzz_options *options)
{
    *options = (struct assay_fuzz_options){ .settings.campaign.multiply_adds = USUAL_COST,
                                            .jobs = 1,
                                            .status = ASSAY_RAN };
}

static enum assay_status parse_time(struct assay_fuzz_options *options, const char *text)
{
    static const char units[] = "smhd";
    static const double seconds[] = { 1, 60, 3600, 86400 };
    char digits[32] = "";
    int64_t value = 0;
    const size_t length = strlen(text);
    const char *const unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
    if (unit && length <= sizeof(digits)) memcpy(digits, text, length - 1);
    if (assay_number_fraction(digits, &value) != ASSAY_NUMBER_VALID || value <= 0)
        return assay_fail(&options->message, ASSAY_REFUSED,
                          "--time %s is no time; use a number and s, m, h or d, such as "
                          "90s or 8h",
                          assay_excerpt(text).text);
    options->seconds =
        (double)value / (double)ASSAY_FRACTION_UNIT * seconds[unit - units];
    return ASSAY_RAN;
}

static enum assay_status parse_counts(struct assay_fuzz_options *options, int key,
                                      const char *text)
{
    struct assay_campaign *const campaign = &options->settings.campaign;
    struct assay_message *const message = &options->message;
    uint64_t count = 0;
    enum assay_status status;
    switch (key) {
    case KEY_CASES:
        status = assay_option_count("--cases", text, 1, MAX_CASES, &count, message);
        options->settings.cases = (int64_t)count;
        break;
    case KEY_SEED:
        status = assay_option_count("--seed", text, 0, UINT64_MAX, &count, message);
        campaign->seed = count;
        break;
    case KEY_SHAPE_POOL:
        status = assay_option_count("--shape-pool", text, 1, MAX_SHAPES, &count, message);
        campaign->shape_pool = (int64_t)count;
        break;
    default:
        status =
            assay_option_count("--cost", text, LEAST_COST, MAX_COST, &count, message);
        campaign->multiply_adds = (double)count;
    }
    return status;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct assay_fuzz_options *const options = state->input;
    if (key < KEY_OP || key > KEY_JOBS) return ARGP_ERR_UNKNOWN;
    if (options->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_OP: options->operations = argument; break;
    case KEY_CANDIDATE: options->settings.candidate = argument; break;
    case KEY_TIME: options->status = parse_time(options, argument); break;
    case KEY_SHARD: options->shard_text = argument; break;
    case KEY_OUT: options->out = argument; break;
    case KEY_RESUME: options->goes_on = true; break;
    case KEY_SAVE: options->save = argument; break;
    case KEY_JSON: options->json = argument; break;
    case KEY_JOBS:
        options->status =
            assay_run_jobs_parse(argument, &options->jobs, &options->message);
        break;
    default: options->status = parse_counts(options, key, argument);
    }
    return 0;
}

const struct argp *assay_fuzz_options_argp(void)
{
    static const struct argp argp = { .options = rows, .parser = parse_option };
    return &argp;
}

enum assay_status assay_fuzz_options_check(struct assay_fuzz_options *options,
                                           struct assay_message *message)
{
    *message = options->message;
    if (options->status != ASSAY_RAN) return options->status;
    if (!options->out)
        return assay_fail(
            message, ASSAY_REFUSED,
            "a campaign keeps a journal; name a folder for it by --out DIR");
    if (!options->settings.cases && !(options->seconds > 0))
        return assay_fail(message, ASSAY_REFUSED,
                          "a campaign needs an end; give --time, such as 10m or 8h, or "
                          "--cases");
    const enum assay_status status =
        assay_campaign_select(&options->settings.campaign, options->operations, message);
    if (status != ASSAY_RAN) return status;
    return assay_shard_find(options->shard_text, &options->shard, message);
}

static enum assay_status refuse_second(const struct assay_fuzz_options *options,
                                       const char *folder, struct assay_message *message)
{
    char *path;
    if (options->goes_on) return ASSAY_RAN;
    if (asprintf(&path, "%s/journal.jsonl", folder) < 0)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a path");
    const bool is_there = access(path, F_OK) == 0;
    free(path);
    if (!is_there) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "--out %s: a campaign is there already; add --resume to go on with "
                      "it, or name another folder",
                      assay_shown_path(folder));
}

enum assay_status assay_fuzz_folder(const struct assay_fuzz_options *options,
                                    char **folder, struct assay_message *message)
{
    const struct assay_shard *const shard = &options->shard;
    const bool is_shared = shard->count > 1;
    if ((is_shared ? asprintf(folder, "%s/shard-%" PRId64 "-of-%" PRId64, options->out,
                              shard->index, shard->count)
                   : asprintf(folder, "%s", options->out)) < 0) {
        *folder = NULL;
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a path");
    }
    if (is_shared && mkdir(options->out, 0777) != 0 && errno != EEXIST)
        return assay_fail(message, ASSAY_REFUSED,
                          "--out %s: the folder can't be made: %s; name one in a "
                          "writable folder",
                          assay_shown_path(options->out), strerror(errno));
    return refuse_second(options, *folder, message);
}

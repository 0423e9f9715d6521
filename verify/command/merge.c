/* SPDX-License-Identifier: MIT */
/* `assay merge`: the report of a campaign from the journals of its shards. */
#include "fuzz/campaign/merge.h"

#include "verify/command/campaign_output.h"
#include "verify/command/command.h"

#include <argp.h>
#include <stdlib.h>

struct merge {
    char **folders;
    int count;
    const char *json;
    struct assay_merge shards;
    struct assay_campaign_settings settings;
    struct assay_campaign_tally tally;
    struct assay_campaign_output output;
    struct assay_message message;
};

enum { KEY_JSON = 256 };

static const struct argp_option options[] = {
    { "json", KEY_JSON, "FILE", 0, "as of `assay fuzz`; - replaces the text", 0 },
    { 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct merge *const merge = state->input;
    switch (key) {
    case KEY_JSON: merge->json = argument; break;
    case ARGP_KEY_ARGS:
        merge->folders = state->argv + state->next;
        merge->count = state->argc - state->next;
        break;
    case ARGP_KEY_NO_ARGS: argp_usage(state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static enum assay_status run(struct merge *merge)
{
    struct assay_message *const message = &merge->message;
    enum assay_status status =
        assay_merge_open(merge->folders, merge->count, &merge->shards, message);
    if (status == ASSAY_RAN)
        status = assay_campaign_settings_read(merge->shards.shard[0], &merge->settings,
                                              message);
    if (status == ASSAY_RAN)
        status =
            assay_campaign_tally_open(&merge->tally, &merge->settings.campaign, message);
    if (status == ASSAY_RAN)
        status = assay_campaign_output_open(&merge->output, &merge->settings, merge->json,
                                            message);
    if (status == ASSAY_RAN)
        status = assay_merge_take(&merge->shards, &merge->tally, message);
    if (status != ASSAY_RAN) return status;
    return assay_campaign_output_end(&merge->output, &merge->settings, &merge->tally, 0,
                                     0, message);
}

int assay_command_merge(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "DIR...",
        .doc = "Prints the report of a whole campaign. DIR is the --out of its shards, "
               "or of some of them; all have to be there, and finished.",
    };
    struct merge merge = { .count = 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &merge);
    const enum assay_status status = run(&merge);
    const int code = status == ASSAY_RAN ? merge.tally.summary.exit_code
                                         : assay_complain((int)status, &merge.message);
    assay_campaign_output_close(&merge.output);
    assay_campaign_tally_close(&merge.tally);
    assay_merge_close(&merge.shards);
    return code;
}

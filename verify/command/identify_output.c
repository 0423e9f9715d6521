/* SPDX-License-Identifier: MIT */
#include "verify/command/identify_output.h"

#include "verify/identify/knob_rank.h"
#include "verify/operation/numerics.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum assay_status assay_identify_output_open(struct assay_identify_output *output,
                                             const char *json_path, const char *candidate,
                                             struct assay_message *message)
{
    const struct assay_run_header header = { .command = "identify",
                                             .candidate = candidate };
    output->has_text = !json_path || strcmp(json_path, "-") != 0;
    return json_path ? assay_report_file_open(&output->json, &assay_report_json,
                                              json_path, &header, message)
                     : ASSAY_RAN;
}

static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* Text from outside, made printable. */
static bool put_text(json_t *object, const char *key, const char *text)
{
    char *const printable = strdup(text);
    if (!printable) return false;
    for (char *at = printable; *at;) {
        const size_t length = assay_report_character(at);
        if (!length) *at = '?';
        at += length ? length : 1;
    }
    const bool is_put = put(object, key, json_string(printable));
    free(printable);
    return is_put;
}

static json_t *object_of_setting(const struct assay_knob_space *space, int index)
{
    const struct assay_knob_setting *const setting = &space->item[index];
    const struct assay_knob_tally *const tally = assay_setting_tally(setting);
    char text[ASSAY_MAX_NUMERICS_TEXT];
    assay_numerics_format(space->operation, setting->numerics, text, sizeof(text));
    return json_pack("{ss si sI sI sI}", "numerics", text, "turned", setting->turned,
                     "parts", (json_int_t)setting->whole.parts, "equal",
                     (json_int_t)tally->equal, "elements", (json_int_t)tally->elements);
}

static json_t *array_of_settings(const struct assay_knob_space *space, const int *setting,
                                 int count)
{
    json_t *const array = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(array, object_of_setting(space, setting[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static bool put_sentence(json_t *object, const struct assay_knob_answer *answer)
{
    char *sentence = NULL;
    size_t bytes;
    FILE *const file = open_memstream(&sentence, &bytes);
    if (!file) return false;
    assay_knob_answer_write(answer, file);
    bool is_put = fclose(file) == 0;
    is_put = is_put && put_text(object, "sentence", sentence);
    free(sentence);
    return is_put;
}

static bool put_answer(json_t *object, const struct assay_knob_answer *answer)
{
    const struct assay_knob_search *const search = answer->search;
    const struct assay_knob_space *const space = &search->space;
    const struct assay_separation *const further = answer->separation;
    return put(object, "identified", json_boolean(answer->count > 0)) &&
           put_sentence(object, answer) &&
           put(object, "settings",
               array_of_settings(space, answer->setting, answer->count)) &&
           put(object, "nearest",
               array_of_settings(space, answer->nearest, answer->nearest_count)) &&
           put(object, "parts", json_integer(search->observation->parts)) &&
           put(object, "elements", json_integer(search->observation->judged)) &&
           put(object, "tried", json_integer(search->tried)) &&
           put(object, "cut_short", json_boolean(search->was_cut_short)) &&
           (!further || (put(object, "further_cases", json_integer(further->cases)) &&
                         put(object, "further_run", json_integer(further->runs))));
}

static bool write_json(FILE *stream, const struct assay_identification *found)
{
    json_t *const object = json_object();
    const bool is_complete =
        put_text(object, "type", "case") && put_text(object, "case", found->case_line) &&
        (!*found->source || put_text(object, "source", found->source)) &&
        put_text(object, "status", assay_status_name(found->status)) &&
        (found->answer ? put_answer(object, found->answer)
                       : put_text(object, "message", found->message)) &&
        put(object, "seconds", json_real(found->seconds));
    const bool is_written = is_complete &&
                            json_dumpf(object, stream, JSON_COMPACT) == 0 &&
                            fputc('\n', stream) != EOF && fflush(stream) == 0;
    json_decref(object);
    return is_written;
}

static bool write_text(const struct assay_identification *found)
{
    const struct assay_knob_answer *const answer = found->answer;
    if (*found->source) printf("%s: ", found->source);
    puts(found->case_line);
    if (!answer) {
        printf("  %s: %s\n", assay_status_name(found->status), found->message);
        return fflush(stdout) == 0;
    }
    for (int i = answer->count ? answer->nearest_count : 0; i < answer->nearest_count;
         i++) {
        const struct assay_knob_setting *const setting =
            &answer->search->space.item[answer->nearest[i]];
        printf("  %5.1f %%  ", floor(1000 * assay_setting_share(setting)) / 10);
        assay_knob_setting_write(&answer->search->space, answer->nearest[i], stdout);
        putchar('\n');
    }
    fputs("  ", stdout);
    assay_knob_answer_write(answer, stdout);
    putchar('\n');
    return fflush(stdout) == 0;
}

enum assay_status
assay_identify_output_add(struct assay_identify_output *output,
                          const struct assay_identification *identification,
                          struct assay_message *message)
{
    if (output->has_text && !write_text(identification))
        return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                          strerror(errno));
    if (output->json.stream && !write_json(output->json.stream, identification))
        return assay_fail(message, ASSAY_FAILED, "%s: writing failed: %s",
                          output->json.path, strerror(errno));
    return ASSAY_RAN;
}

enum assay_status assay_identify_output_end(struct assay_identify_output *output,
                                            const struct assay_summary *summary,
                                            struct assay_message *message)
{
    return output->json.stream ? assay_report_file_end(&output->json, summary, message)
                               : ASSAY_RAN;
}

void assay_identify_output_close(struct assay_identify_output *output)
{
    assay_report_file_close(&output->json);
}

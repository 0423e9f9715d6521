/* SPDX-License-Identifier: MIT */
#include "verify/run/job.h"

#include "verify/report/json_result.h"
#include "verify/run/lines.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char *dumped(json_t *object)
{
    char *const line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return line;
}

char *assay_job_request(const struct assay_run_case *the_case)
{
    json_t *const object = json_pack("{s:I}", "number", (json_int_t)the_case->number);
    int error = !object;
    if (the_case->line)
        error |= json_object_set_new(object, "line", json_string(the_case->line));
    else if (the_case->recorded)
        error |=
            json_object_set_new(object, "recorded", json_string(the_case->recorded)) |
            json_object_set_new(object, "index", json_integer(the_case->index));
    if (the_case->in_brief) error |= json_object_set_new(object, "brief", json_true());
    if (!error) return dumped(object);
    json_decref(object);
    return NULL;
}

static bool read_request(const json_t *object, struct assay_run_case *the_case)
{
    *the_case = (struct assay_run_case){
        .number = json_integer_value(json_object_get(object, "number")),
        .line = json_string_value(json_object_get(object, "line")),
        .recorded = json_string_value(json_object_get(object, "recorded")),
        .index = (int)json_integer_value(json_object_get(object, "index")),
        .in_brief = json_is_true(json_object_get(object, "brief")),
    };
    return json_is_integer(json_object_get(object, "number"));
}

char *assay_job_result(const struct assay_result *result)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const stream = open_memstream(&text, &bytes);
    if (!stream) return NULL;
    const enum assay_status status = assay_json_result_write(stream, result);
    if (fclose(stream) != 0 || status != ASSAY_RAN || bytes == 0) {
        free(text);
        return NULL;
    }
    text[bytes - 1] = '\0';
    return text;
}

char *assay_job_brief(const struct assay_result *result)
{
    const struct assay_brief brief = assay_brief_of(result);
    return assay_brief_line(&brief);
}

static char *failure_line(enum assay_status status, const struct assay_message *message)
{
    return dumped(json_pack("{s:s, s:i, s:s}", "type", "failed", "status", (int)status,
                            "message", message->text));
}

enum assay_status assay_job_failure(const char *line, struct assay_message *message)
{
    json_t *const object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *const type = json_string_value(json_object_get(object, "type"));
    const char *const why = json_string_value(json_object_get(object, "message"));
    const json_int_t number = json_integer_value(json_object_get(object, "status"));
    enum assay_status status = ASSAY_RAN;
    if (!type)
        status = assay_fail(message, ASSAY_FAILED, "a job answered with no result");
    else if (strcmp(type, "failed") == 0)
        status = assay_fail(message,
                            number > ASSAY_RAN && number < ASSAY_STATUS_COUNT
                                ? (enum assay_status)number
                                : ASSAY_FAILED,
                            "%s", why && *why ? why : "a job failed");
    json_decref(object);
    return status;
}

static bool serve_one(const char *line, assay_run_function *run, void *context)
{
    struct assay_run_case the_case;
    struct assay_result result = { .output = NULL };
    struct assay_message message = { "" };
    json_t *const object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const bool is_case = read_request(object, &the_case);
    enum assay_status status = ASSAY_FAILED;
    if (is_case) status = run(context, &the_case, &result, &message);
    char *answer = NULL;
    if (status == ASSAY_RAN && the_case.in_brief && assay_brief_is_enough(&result))
        answer = assay_job_brief(&result);
    else if (status == ASSAY_RAN)
        answer = assay_job_result(&result);
    if (status == ASSAY_RAN && !answer)
        status = assay_fail(&message, ASSAY_OUT_OF_MEMORY, "no memory for a result");
    if (!answer) answer = failure_line(status, &message);
    assay_result_close(&result);
    json_decref(object);
    const bool is_sent = answer && assay_lines_send(ASSAY_JOB_FD, answer);
    free(answer);
    return is_sent && is_case;
}

static bool is_conversation(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
           type == SOCK_STREAM && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

int assay_job_serve(assay_run_function *run, void *context)
{
    struct assay_lines lines = { .text = NULL };
    bool goes_on = is_conversation(ASSAY_JOB_FD);
    if (!goes_on) return 2;
    while (goes_on && assay_lines_fill(&lines, ASSAY_JOB_FD))
        for (char *line; goes_on && (line = assay_lines_take(&lines)); free(line))
            goes_on = serve_one(line, run, context);
    assay_lines_close(&lines);
    return goes_on ? 0 : 1;
}

/* SPDX-License-Identifier: MIT */
/* The folder of a case, and what is written into it. */
#include "verify/data/exchange.h"

#include "verify/data/recording.h"
#include "verify/data/safetensors.h"
#include "verify/operation/operation.h"

#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPEN_FOLDERS = 8, MAX_TEXTS = 6 };

static json_t *numbers(const int64_t *value, int count)
{
    json_t *const array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(value[i]));
    return array;
}

static json_t *described(const struct assay_tensors *tensors, bool is_output)
{
    json_t *const object = json_object();
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output != is_output) continue;
        json_object_set_new(object, tensor->name,
                            json_pack("{s:s, s:s, s:o, s:o}", "dtype",
                                      assay_safetensors_dtype(tensor->format), "format",
                                      assay_format_name(tensor->format), "shape",
                                      numbers(tensor->shape, tensor->rank), "stride",
                                      numbers(tensor->stride, tensor->rank)));
    }
    return object;
}

static json_t *value_of(const struct assay_case *the_case,
                        const struct assay_parameter *parameter)
{
    if (parameter->is_list) {
        int count;
        const int64_t *const list = assay_case_list(the_case, parameter->name, &count);
        return numbers(list, count);
    }
    if (parameter->is_fraction)
        return json_real(assay_case_fraction(the_case, parameter->name));
    const int64_t value = assay_case_value(the_case, parameter->name);
    for (const struct assay_choice *choice = parameter->choices; choice && choice->name;
         choice++)
        if (choice->value == value) return json_string(choice->name);
    return json_integer(value);
}

static json_t *parameters_of(const struct assay_case *the_case)
{
    json_t *const object = json_object();
    for (const struct assay_parameter *row = the_case->operation->parameters; row->name;
         row++)
        json_object_set_new(object, row->name, value_of(the_case, row));
    return object;
}

/* The text of @value, which is given up. */
static char *text_of(json_t *value)
{
    char *const text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    return text;
}

static enum assay_status write_inputs(const char *path, const struct assay_case *the_case,
                                      const struct assay_tensors *tensors, int launches,
                                      struct assay_message *message)
{
    struct assay_safetensors_entry entry[ASSAY_MAX_TENSORS];
    char line[ASSAY_MAX_CASE_LINE], count[16];
    int inputs = 0;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output) continue;
        entry[inputs] = (struct assay_safetensors_entry){
            .name = (char *)(uintptr_t)tensor->name,
            .format = tensor->format,
            .rank = tensor->rank,
            .data = tensor->data,
            .bytes = assay_tensor_bytes(tensor),
        };
        assay_recording_stored_shape(tensor, entry[inputs++].shape);
    }
    assay_case_format(the_case, line, sizeof(line));
    snprintf(count, sizeof(count), "%d", launches > 0 ? launches : 1);
    const struct assay_safetensors_metadata metadata[MAX_TEXTS] = {
        { (char *)"case", line },
        { (char *)"operation", (char *)(uintptr_t)the_case->operation->name },
        { (char *)"launches", count },
        { (char *)"parameters", text_of(parameters_of(the_case)) },
        { (char *)"inputs", text_of(described(tensors, false)) },
        { (char *)"outputs", text_of(described(tensors, true)) },
    };
    const enum assay_status status =
        metadata[3].value && metadata[4].value && metadata[5].value
            ? assay_safetensors_write(path, entry, inputs, metadata, MAX_TEXTS, message)
            : assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory to describe a case");
    for (int i = 3; i < MAX_TEXTS; i++)
        free(metadata[i].value);
    return status;
}

static enum assay_status make_folder(struct assay_exchange *exchange,
                                     struct assay_message *message)
{
    const char *const wanted = getenv("TMPDIR");
    const char *const parent = wanted && *wanted ? wanted : "/tmp";
    char *const absolute = realpath(parent, NULL);
    int reason = errno;
    const bool fits = absolute && strlen(absolute) < sizeof(exchange->folder) - 64;
    const bool is_a_line = fits && !strpbrk(absolute, "\r\n");
    if (absolute && !is_a_line) reason = fits ? EINVAL : ENAMETOOLONG;
    if (is_a_line) {
        snprintf(exchange->folder, sizeof(exchange->folder), "%s/assay-case-XXXXXX",
                 absolute);
        if (!mkdtemp(exchange->folder)) {
            reason = errno;
            exchange->folder[0] = '\0';
        }
    }
    free(absolute);
    if (exchange->folder[0]) return ASSAY_RAN;
    return assay_fail(message, ASSAY_FAILED,
                      "no folder for a case can be made in %s: %s; TMPDIR names another "
                      "place",
                      assay_shown_path(parent), strerror(reason));
}

enum assay_status assay_exchange_open(struct assay_exchange *exchange,
                                      const struct assay_case *the_case,
                                      const struct assay_tensors *tensors, int launches,
                                      struct assay_message *message)
{
    exchange->folder[0] = '\0';
    const enum assay_status status = make_folder(exchange, message);
    if (status != ASSAY_RAN) return status;
    char path[sizeof(exchange->folder) + 32];
    snprintf(path, sizeof(path), "%s/inputs.safetensors", exchange->folder);
    return write_inputs(path, the_case, tensors, launches, message);
}

bool assay_exchange_is_answered(const struct assay_exchange *exchange)
{
    char path[sizeof(exchange->folder) + 32];
    snprintf(path, sizeof(path), "%s/outputs.safetensors", exchange->folder);
    return access(path, F_OK) == 0;
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *where)
{
    (void)about, (void)type, (void)where;
    remove(path);
    return 0;
}

/* Twice: somebody may still be writing into it. */
void assay_exchange_close(struct assay_exchange *exchange)
{
    if (!exchange->folder[0]) return;
    for (int i = 0; i < 2 && access(exchange->folder, F_OK) == 0; i++)
        nftw(exchange->folder, remove_one, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    exchange->folder[0] = '\0';
}

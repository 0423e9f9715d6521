/* SPDX-License-Identifier: MIT */
/* What a program left in the folder of a case: nothing of it is believed. */
#include "verify/data/buffers.h"
#include "verify/data/exchange.h"
#include "verify/data/recording.h"
#include "verify/data/safetensors.h"
#include "verify/operation/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "outputs.safetensors";
static const char *const plan_names[] = { "tile_scheduler_metadata", "num_splits" };
enum { PLANS = 2, MAX_HEADER_BYTES = 1 << 20, MAX_SHAPE_TEXT = 128, MAX_SMS = 1024 };

struct reply {
    const struct assay_case *the_case;
    const void *problem;
    const struct assay_tensors *tensors;
    struct assay_safetensors file;
    struct assay_message *message;
};

static enum assay_status system_failure(struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "%s cannot be read: %s", file_name,
                      strerror(errno));
}

static bool read_all(int descriptor, char *memory, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(descriptor, memory + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = ENODATA;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* Memory with the whole content; no more of it than outputs and a plan could take. */
static enum assay_status load(int descriptor, int64_t most, void **memory, size_t *bytes,
                              struct assay_message *message)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) return system_failure(message);
    if (!S_ISREG(about.st_mode))
        return assay_fail(message, ASSAY_FAILED, "%s is not a regular file", file_name);
    if (about.st_size > most)
        return assay_fail(message, ASSAY_FAILED,
                          "%s has %lld bytes, but the outputs of this case take at most "
                          "%" PRId64 " with everything around them",
                          file_name, (long long)about.st_size, most);
    *bytes = (size_t)about.st_size;
    *memory = malloc(*bytes + 1);
    if (!*memory)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                          "no memory for the %zu bytes of %s", *bytes, file_name);
    if (read_all(descriptor, *memory, *bytes)) return ASSAY_RAN;
    const enum assay_status status = system_failure(message);
    free(*memory);
    return status;
}

bool assay_exchange_takes_plan(const struct assay_tensor *tensor)
{
    return !tensor->is_output && (strcmp(tensor->name, plan_names[0]) == 0 ||
                                  strcmp(tensor->name, plan_names[1]) == 0);
}

/* Leaves room for the plan of another machine, so that a sentence can say of which. */
static int64_t most_bytes(const struct assay_tensors *tensors)
{
    int64_t bytes = MAX_HEADER_BYTES;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output || assay_exchange_takes_plan(tensor))
            bytes += assay_tensor_bytes(tensor);
    }
    return bytes;
}

static enum assay_status open_file(const struct assay_exchange *exchange,
                                   struct reply *reply)
{
    char path[sizeof(exchange->folder) + 32];
    snprintf(path, sizeof(path), "%s/%s", exchange->folder, file_name);
    /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (descriptor < 0) return system_failure(reply->message);
    void *memory = NULL;
    size_t bytes = 0;
    enum assay_status status =
        load(descriptor, most_bytes(reply->tensors), &memory, &bytes, reply->message);
    close(descriptor);
    if (status != ASSAY_RAN) return status;
    status =
        assay_safetensors_adopt(memory, bytes, file_name, &reply->file, reply->message);
    return status == ASSAY_REFUSED ? ASSAY_FAILED : status;
}

static void shape_text(char text[MAX_SHAPE_TEXT], int rank, const int64_t *shape)
{
    int used = snprintf(text, MAX_SHAPE_TEXT, "[");
    for (int i = 0; i < rank; i++)
        used += snprintf(text + used, (size_t)(MAX_SHAPE_TEXT - used), "%s%" PRId64,
                         i ? ", " : "", shape[i]);
    snprintf(text + used, (size_t)(MAX_SHAPE_TEXT - used), "]");
}

static bool has_shape(const struct assay_safetensors_entry *entry, int rank,
                      const int64_t *shape)
{
    return entry->rank == rank &&
           memcmp(entry->shape, shape, sizeof(*shape) * (size_t)rank) == 0;
}

/* The value of sms= with which the case has a plan of that shape; 0 if there is none. */
static int64_t fitting_sms(const struct reply *reply, const char *name,
                           const struct assay_safetensors_entry *entry)
{
    const struct assay_operation *const operation = reply->the_case->operation;
    const struct assay_parameter *row = operation->parameters;
    while (row->name && strcmp(row->name, "sms") != 0)
        row++;
    struct assay_case other = *reply->the_case;
    union assay_problem_storage problem;
    for (int64_t sms = 1; row->name && sms <= MAX_SMS && sms <= row->maximum; sms++) {
        struct assay_message ignored;
        struct assay_tensors tensors;
        assay_case_set(&other, "sms", sms);
        if (operation->bind(&other, &problem, &ignored) != ASSAY_RAN) continue;
        operation->shape(&problem, &tensors);
        const struct assay_tensor *const tensor = assay_tensors_find(&tensors, name);
        if (tensor && has_shape(entry, tensor->rank, tensor->shape)) return sms;
    }
    return 0;
}

static enum assay_status refuse_form(const struct reply *reply,
                                     const struct assay_tensor *tensor,
                                     const struct assay_safetensors_entry *entry)
{
    char wanted[MAX_SHAPE_TEXT], found[MAX_SHAPE_TEXT], advice[64] = "";
    shape_text(wanted, tensor->rank, tensor->shape);
    shape_text(found, entry->rank, entry->shape);
    const int64_t sms = tensor->is_output ? 0 : fitting_sms(reply, tensor->name, entry);
    if (sms > 0)
        snprintf(advice, sizeof(advice), "; with sms=%" PRId64 " it would fit", sms);
    return assay_fail(reply->message, ASSAY_FAILED,
                      "%s: tensor '%s' is %s %s, but this case needs %s %s%s", file_name,
                      tensor->name, assay_safetensors_dtype(entry->format), found,
                      assay_safetensors_dtype(tensor->format), wanted, advice);
}

/* The entry for @tensor, which must be as that is stored or without row padding. */
static enum assay_status check_form(const struct reply *reply,
                                    const struct assay_tensor *tensor,
                                    const struct assay_safetensors_entry *entry)
{
    int64_t stored[ASSAY_MAX_RANK];
    assay_recording_stored_shape(tensor, stored);
    const bool has_dtype = strcmp(assay_safetensors_dtype(tensor->format),
                                  assay_safetensors_dtype(entry->format)) == 0;
    if (has_dtype && (has_shape(entry, tensor->rank, stored) ||
                      has_shape(entry, tensor->rank, tensor->shape)))
        return ASSAY_RAN;
    return refuse_form(reply, tensor, entry);
}

static enum assay_status check_all(const struct reply *reply)
{
    for (int i = 0; i < reply->tensors->count; i++) {
        const struct assay_tensor *const tensor = &reply->tensors->item[i];
        if (tensor->is_output && !assay_safetensors_find(&reply->file, tensor->name))
            return assay_fail(reply->message, ASSAY_FAILED,
                              "%s has no tensor '%s', which is an output of this case",
                              file_name, tensor->name);
    }
    for (int i = 0; i < reply->file.count; i++) {
        const struct assay_safetensors_entry *const entry = &reply->file.entry[i];
        const struct assay_tensor *const tensor =
            assay_tensors_find(reply->tensors, entry->name);
        if (!tensor || (!tensor->is_output && !assay_exchange_takes_plan(tensor)))
            return assay_fail(reply->message, ASSAY_FAILED,
                              "%s has a tensor '%.80s', which is no output of this case; "
                              "leave it out",
                              file_name, entry->name);
        const enum assay_status status = check_form(reply, tensor, entry);
        if (status != ASSAY_RAN) return status;
    }
    return ASSAY_RAN;
}

static void copy(const struct assay_tensor *to,
                 const struct assay_safetensors_entry *entry)
{
    if (entry->bytes == assay_tensor_bytes(to)) {
        if (entry->bytes > 0) memcpy(to->data, entry->data, (size_t)entry->bytes);
        return;
    }
    const size_t size = assay_format_bytes(to->format);
    const int64_t elements = assay_tensor_elements(to);
    for (int64_t i = 0; i < elements; i++)
        memcpy((char *)to->data + (size_t)assay_tensor_offset(to, i) * size,
               (const char *)entry->data + (size_t)i * size, size);
}

/* A plan takes effect as a whole, and only if a kernel may be given it or the case is
 * unsafe. */
static enum assay_status take_plan(const struct reply *reply, bool *has_plan)
{
    const struct assay_operation *const operation = reply->the_case->operation;
    struct assay_tensors planned = *reply->tensors;
    struct assay_buffers buffers = { 0 };
    for (int i = 0; i < planned.count; i++) {
        const bool is_given = assay_exchange_takes_plan(&planned.item[i]) &&
                              assay_safetensors_find(&reply->file, planned.item[i].name);
        if (is_given) planned.item[i].data = NULL;
        *has_plan |= is_given;
    }
    if (!*has_plan) return ASSAY_RAN;
    enum assay_status status = assay_buffers_open(&buffers, &planned, reply->message);
    for (int i = 0; i < planned.count && status == ASSAY_RAN; i++)
        if (planned.item[i].data != reply->tensors->item[i].data)
            copy(&planned.item[i],
                 assay_safetensors_find(&reply->file, planned.item[i].name));
    struct assay_message reason;
    if (status == ASSAY_RAN && operation->check_inputs && !reply->the_case->is_unsafe &&
        operation->check_inputs(reply->problem, &planned, &reason) != ASSAY_RAN)
        status = assay_fail(reply->message, ASSAY_FAILED,
                            "%s holds a plan that cannot have been used: %s", file_name,
                            reason.text);
    for (int i = 0; i < planned.count && status == ASSAY_RAN; i++)
        if (planned.item[i].data != reply->tensors->item[i].data)
            memcpy(reply->tensors->item[i].data, planned.item[i].data,
                   (size_t)assay_tensor_bytes(&planned.item[i]));
    assay_buffers_close(&buffers);
    return status;
}

enum assay_status assay_exchange_fetch(const struct assay_exchange *exchange,
                                       const struct assay_case *the_case,
                                       const void *problem,
                                       const struct assay_tensors *tensors,
                                       bool *has_plan, struct assay_message *message)
{
    struct reply reply = {
        .the_case = the_case, .problem = problem, .tensors = tensors, .message = message
    };
    *has_plan = false;
    enum assay_status status = open_file(exchange, &reply);
    if (status == ASSAY_RAN) status = check_all(&reply);
    if (status == ASSAY_RAN) status = take_plan(&reply, has_plan);
    for (int i = 0; i < reply.file.count && status == ASSAY_RAN; i++) {
        const struct assay_tensor *const tensor =
            assay_tensors_find(tensors, reply.file.entry[i].name);
        if (tensor->is_output) copy(tensor, &reply.file.entry[i]);
    }
    assay_safetensors_close(&reply.file);
    return status;
}

/* SPDX-License-Identifier: MIT */
#include "verify/worker/request.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert((int)ASSAY_E4M3 == (int)ASSAY_PLUGIN_E4M3, "one numbering of formats");
static_assert((int)ASSAY_E5M2 == (int)ASSAY_PLUGIN_E5M2, "one numbering of formats");
static_assert((int)ASSAY_E2M1 == (int)ASSAY_PLUGIN_E2M1, "one numbering of formats");
static_assert((int)ASSAY_UE8M0 == (int)ASSAY_PLUGIN_UE8M0, "one numbering of formats");
static_assert((int)ASSAY_BF16 == (int)ASSAY_PLUGIN_BF16, "one numbering of formats");
static_assert((int)ASSAY_F16 == (int)ASSAY_PLUGIN_F16, "one numbering of formats");
static_assert((int)ASSAY_TF32 == (int)ASSAY_PLUGIN_TF32, "one numbering of formats");
static_assert((int)ASSAY_F32 == (int)ASSAY_PLUGIN_F32, "one numbering of formats");
static_assert((int)ASSAY_U8 == (int)ASSAY_PLUGIN_U8, "one numbering of formats");
static_assert((int)ASSAY_I32 == (int)ASSAY_PLUGIN_I32, "one numbering of formats");
static_assert((int)ASSAY_FORMAT_COUNT == (int)ASSAY_PLUGIN_I32 + 1, "all formats");
static_assert((int)ASSAY_MAX_RANK == (int)ASSAY_PLUGIN_MAX_RANK, "one rank");

static json_t *numbers(const int64_t *value, int count)
{
    json_t *const array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(value[i]));
    return array;
}

static json_t *described(const struct assay_tensor *tensor, size_t offset)
{
    return json_pack("{s:s, s:i, s:b, s:o, s:o, s:I}", "name", tensor->name, "format",
                     (int)tensor->format, "is_output", (int)tensor->is_output, "shape",
                     numbers(tensor->shape, tensor->rank), "stride",
                     numbers(tensor->stride, tensor->rank), "offset", (json_int_t)offset);
}

json_t *assay_request_of(const struct assay_run_call *call,
                         const struct assay_arena *arena)
{
    char line[ASSAY_MAX_CASE_LINE];
    struct assay_tensors shaped;
    const struct assay_tensors *tensors = call->tensors;
    if (!arena) {
        call->the_case->operation->shape(call->problem, &shaped);
        tensors = &shaped;
    }
    json_t *const list = json_array();
    for (int i = 0; i < tensors->count; i++)
        if (json_array_append_new(
                list, described(&tensors->item[i],
                                arena ? assay_arena_offset(arena, i) : 0)) != 0) {
            json_decref(list);
            return NULL;
        }
    assay_case_format(call->the_case, line, sizeof(line));
    return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:i}", "do", arena ? "run" : "claim",
                     "operation", call->the_case->operation->name, "case", line,
                     "tensors", list, "bytes", (json_int_t)(arena ? arena->bytes : 0),
                     "input_bytes", (json_int_t)(arena ? arena->input_bytes : 0),
                     "launches", call->launches);
}

static bool read_numbers(const json_t *array, int rank, int64_t value[ASSAY_MAX_RANK])
{
    if (!json_is_array(array) || json_array_size(array) != (size_t)rank) return false;
    for (int i = 0; i < rank; i++) {
        const json_t *const number = json_array_get(array, (size_t)i);
        value[i] = json_integer_value(number);
        if (!json_is_integer(number) || value[i] < 0) return false;
    }
    return true;
}

/* Whether each row, with its padding, has room in what the dimension before strides. */
static bool is_ordered(const struct assay_tensor *tensor)
{
    for (int i = 1; i < tensor->rank; i++) {
        int64_t row;
        if (__builtin_mul_overflow(tensor->shape[i], tensor->stride[i], &row) ||
            tensor->stride[i - 1] < row)
            return false;
    }
    return true;
}

/* Whether all of the tensor, @offset bytes from there, is in the mapping. */
static bool is_mapped(const struct assay_request *request,
                      const struct assay_plugin_tensor *tensor, json_int_t offset)
{
    struct assay_tensor shaped = { .format = (enum assay_format)tensor->format,
                                   .rank = tensor->rank };
    memcpy(shaped.shape, tensor->shape, sizeof(shaped.shape));
    memcpy(shaped.stride, tensor->stride, sizeof(shaped.stride));
    const int64_t bytes = assay_tensor_bytes(&shaped);
    return is_ordered(&shaped) && bytes >= 0 && offset >= 0 &&
           (uint64_t)bytes <= request->bytes &&
           (uint64_t)offset <= request->bytes - (uint64_t)bytes;
}

static bool read_tensor(struct assay_request *request, int place, const json_t *line)
{
    struct assay_plugin_tensor *const tensor = &request->tensor[place];
    const json_t *const shape = json_object_get(line, "shape");
    const json_int_t offset = json_integer_value(json_object_get(line, "offset"));
    const json_int_t format = json_integer_value(json_object_get(line, "format"));
    const size_t rank = json_array_size(shape);
    if (format <= ASSAY_FORMAT_NONE || format >= ASSAY_FORMAT_COUNT ||
        rank > ASSAY_MAX_RANK)
        return false;
    *tensor = (struct assay_plugin_tensor){
        .bytes = sizeof(*tensor),
        .format = (int32_t)format,
        .is_output = json_is_true(json_object_get(line, "is_output")),
        .rank = (int32_t)rank,
        .name = json_string_value(json_object_get(line, "name")),
    };
    request->pointer[place] = tensor;
    if (!tensor->name || !read_numbers(shape, tensor->rank, tensor->shape) ||
        !read_numbers(json_object_get(line, "stride"), tensor->rank, tensor->stride))
        return false;
    if (!request->memory) return true;
    if (!is_mapped(request, tensor, offset)) return false;
    tensor->data = (char *)request->memory + offset;
    return true;
}

static bool map_memory(struct assay_request *request, const json_t *line, int fd)
{
    struct stat about;
    const json_int_t inputs = json_integer_value(json_object_get(line, "input_bytes"));
    const json_int_t bytes = json_integer_value(json_object_get(line, "bytes"));
    if (fd < 0 || fstat(fd, &about) != 0 || bytes <= 0 || bytes > about.st_size ||
        inputs < 0 || inputs > bytes)
        return false;
    request->bytes = (size_t)bytes;
    request->memory = assay_arena_map(fd, request->bytes, (size_t)inputs);
    return request->memory != NULL;
}

bool assay_request_open(struct assay_request *request, const json_t *line, int fd,
                        const char *options)
{
    const char *const what = json_string_value(json_object_get(line, "do"));
    const json_t *const tensors = json_object_get(line, "tensors");
    const size_t count = json_array_size(tensors);
    *request = (struct assay_request){ .is_run = what && strcmp(what, "run") == 0 };
    const bool has_memory = !request->is_run || map_memory(request, line, fd);
    if (fd >= 0) close(fd);
    if (!what || !has_memory || count > ASSAY_MAX_TENSORS) return false;
    const json_int_t launches = json_integer_value(json_object_get(line, "launches"));
    request->launches = launches > 1 && launches <= INT_MAX ? (int)launches : 1;
    request->call = (struct assay_call){
        .bytes = sizeof(request->call),
        .tensor_count = (int32_t)count,
        .operation = json_string_value(json_object_get(line, "operation")),
        .case_line = json_string_value(json_object_get(line, "case")),
        .options = options,
        .tensor = request->pointer,
        .why = request->why,
        .why_bytes = sizeof(request->why),
    };
    for (size_t i = 0; i < count; i++)
        if (!read_tensor(request, (int)i, json_array_get(tensors, i))) return false;
    return request->call.operation && request->call.case_line;
}

void assay_request_close(struct assay_request *request)
{
    if (request->memory) munmap(request->memory, request->bytes);
    request->memory = NULL;
}

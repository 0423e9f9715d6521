/* SPDX-License-Identifier: MIT */
/* Parts of relations between two attention runs. */
#include "verify/operation/mla/mla_properties.h"

#include "ref/format/minifloat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- copies ------------------------------------------------------------------------ */

static bool is_same_shape(const struct assay_tensor *a, const struct assay_tensor *b)
{
    return a->format == b->format && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(a->shape[0])) == 0;
}

/* Elements along the last dimension, which lie side by side. */
static int64_t row_length(const struct assay_tensor *tensor)
{
    assert(tensor->rank > 0 && tensor->stride[tensor->rank - 1] == 1);
    return tensor->shape[tensor->rank - 1];
}

static void *row_at(const struct assay_tensor *tensor, int64_t row)
{
    return (uint8_t *)tensor->data +
           (size_t)assay_tensor_offset(tensor, row * row_length(tensor)) *
               assay_format_bytes(tensor->format);
}

static int64_t rows_of(const struct assay_tensor *tensor)
{
    return assay_tensor_elements(tensor) / row_length(tensor);
}

static void copy_row(const struct assay_tensor *from, int64_t from_row,
                     const struct assay_tensor *to, int64_t to_row)
{
    memcpy(row_at(to, to_row), row_at(from, from_row),
           (size_t)row_length(to) * assay_format_bytes(to->format));
}

bool assay_mla_copy_inputs(const struct assay_property_run *first,
                           const struct assay_property_run *second)
{
    if (first->the_case->is_unsafe) return false;
    for (int i = 0; i < second->tensors->count; i++) {
        const struct assay_tensor *const to = &second->tensors->item[i];
        const struct assay_tensor *const from =
            assay_tensors_find(first->tensors, to->name);
        if (to->is_output || !from || !is_same_shape(from, to)) continue;
        for (int64_t row = 0; row < rows_of(to); row++)
            copy_row(from, row, to, row);
    }
    return true;
}

static const struct assay_tensor *tensor_of(const struct assay_property_run *run,
                                            const char *name)
{
    const struct assay_tensor *const tensor = assay_tensors_find(run->tensors, name);
    assert(tensor);
    return tensor;
}

int32_t assay_mla_integer(const struct assay_property_run *run, const char *name,
                          int64_t element)
{
    return (int32_t)assay_tensor_bits(tensor_of(run, name), element);
}

void assay_mla_set_integer(const struct assay_property_run *run, const char *name,
                           int64_t element, int32_t value)
{
    assay_tensor_set_bits(tensor_of(run, name), element, (uint32_t)value);
}

uint32_t assay_mla_constant_value(int column, enum assay_format format)
{
    static const double values[] = { 1, -2, 3, -4, 6, -1, 2, -3, 4, -6 };
    return assay_minifloat_encode(assay_minifloat(format), values[column % 10],
                                  ASSAY_OVERFLOW_SPECIAL);
}

/* --- neighbours -------------------------------------------------------------------- */

static void negate_row(const struct assay_tensor *from, const struct assay_tensor *to,
                       int64_t row)
{
    const int64_t count = row_length(to);
    const uint32_t sign = 1u << (8 * assay_format_bytes(to->format) - 1);
    for (int64_t i = row * count; i < (row + 1) * count; i++)
        assay_tensor_set_bits(to, i, assay_tensor_bits(from, i) ^ sign);
}

void assay_mla_negate_odd_entries(const struct assay_property_run *first,
                                  const struct assay_property_run *second,
                                  const char *name)
{
    const struct assay_tensor *const from = tensor_of(first, name);
    const struct assay_tensor *const to = tensor_of(second, name);
    const int64_t rows = rows_of(to), rows_an_entry = rows / to->shape[0];
    for (int64_t row = 0; row < rows; row++)
        if (row / rows_an_entry % 2) negate_row(from, to, row);
}

void assay_mla_negate_odd_rows(const struct assay_property_run *first,
                               const struct assay_property_run *second, const char *name)
{
    const struct assay_tensor *const from = tensor_of(first, name);
    const struct assay_tensor *const to = tensor_of(second, name);
    const int64_t heads = to->shape[to->rank - 2], tokens = to->shape[to->rank - 3];
    for (int64_t row = 0; row < rows_of(to); row++)
        if ((row % heads + row / heads % tokens) % 2) negate_row(from, to, row);
}

void assay_mla_rotate_entries(const struct assay_property_run *first,
                              const struct assay_property_run *second, const char *name)
{
    const struct assay_tensor *const from = assay_tensors_find(first->tensors, name);
    const struct assay_tensor *const to = assay_tensors_find(second->tensors, name);
    if (!from || !to) return;
    const int64_t elements = assay_tensor_elements(to), entry = elements / to->shape[0];
    for (int64_t i = 0; i < elements; i++)
        assay_tensor_set_bits(to, i, assay_tensor_bits(from, (i + entry) % elements));
}

bool assay_mla_rotate_list(struct assay_case *the_case, const char *key)
{
    int64_t rotated[ASSAY_MAX_LIST_VALUES];
    int count;
    const int64_t *const values = assay_case_list(the_case, key, &count);
    if (count < 2) return true;
    for (int i = 0; i < count; i++)
        rotated[i] = values[(i + 1) % count];
    return assay_case_set_list(the_case, key, rotated, count);
}

/* --- bits -------------------------------------------------------------------------- */

static bool is_named(const struct assay_property_run *run, int output, const char *name)
{
    return strcmp(run->tensors->item[output].name, name) == 0;
}

bool assay_mla_expect_same(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    (void)second;
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    return true;
}

bool assay_mla_expect_padded(const struct assay_property_run *first,
                             const struct assay_property_run *second, int output,
                             int64_t element, uint32_t *bits)
{
    const enum assay_format format = first->tensors->item[output].format;
    assay_mla_expect_same(first, second, output, element, bits);
    return *bits != 1u << (8 * assay_format_bytes(format) - 1);
}

bool assay_mla_expect_half(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    const enum assay_format format = first->tensors->item[output].format;
    assay_mla_expect_same(first, second, output, element, bits);
    return !is_named(first, output, "out") || assay_mla_scaled_output(format, -1, bits);
}

static int64_t entry_elements(const struct assay_tensor *tensor)
{
    return assay_tensor_elements(tensor) / tensor->shape[0];
}

bool assay_mla_expect_even_entries(const struct assay_property_run *first,
                                   const struct assay_property_run *second, int output,
                                   int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    assay_mla_expect_same(first, second, output, element, bits);
    return element / entry_elements(tensor) % 2 == 0;
}

bool assay_mla_expect_even_rows(const struct assay_property_run *first,
                                const struct assay_property_run *second, int output,
                                int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    const int columns = is_named(first, output, "out");
    const int64_t last = tensor->shape[tensor->rank - 1 - columns];
    const int64_t before = tensor->shape[tensor->rank - 2 - columns];
    const int64_t row = columns ? element / ASSAY_MLA_D_V : element;
    assay_mla_expect_same(first, second, output, element, bits);
    return (row % last + row / last % before) % 2 == 0;
}

bool assay_mla_expect_rotated(const struct assay_property_run *first,
                              const struct assay_property_run *second, int output,
                              int64_t element, uint32_t *bits)
{
    const struct assay_tensor *const tensor = &first->tensors->item[output];
    const int64_t elements = assay_tensor_elements(tensor);
    return assay_mla_expect_same(first, second, output,
                                 (element + entry_elements(tensor)) % elements, bits);
}

/* --- memory that nobody may look at ------------------------------------------------ */

/* A small finite value that is not @bits, in cached bytes too, whatever they are. */
static uint32_t other_value(enum assay_format format, uint32_t bits)
{
    uint32_t one = 1, other = 2;
    if (format == ASSAY_U8) one = 0x38, other = 0x3A;
    if (format == ASSAY_BF16 || format == ASSAY_F16) one = 0x4000, other = 0x4100;
    if (format == ASSAY_F32) one = 0x3F800000, other = 0x40000000;
    return bits == one ? other : one;
}

static bool change_tensor(const struct assay_property_run *first,
                          const struct assay_property_run *second, int input,
                          bool *is_changed)
{
    const struct assay_operation *const operation = first->the_case->operation;
    const struct assay_tensor *const tensor = &second->tensors->item[input];
    const int64_t elements = assay_tensor_elements(tensor);
    uint8_t *const is_used = malloc((size_t)elements);
    if (!is_used) return false;
    operation->used(first->problem, first->tensors, input, is_used);
    for (int64_t i = 0; i < elements; i++) {
        if (is_used[i]) continue;
        assay_tensor_set_bits(tensor, i,
                              other_value(tensor->format, assay_tensor_bits(tensor, i)));
        *is_changed = true;
    }
    free(is_used);
    return true;
}

bool assay_mla_change_unused(const struct assay_property_run *first,
                             const struct assay_property_run *second)
{
    bool is_changed = false;
    if (!assay_mla_copy_inputs(first, second)) return false;
    for (int i = 0; i < second->tensors->count; i++)
        if (!second->tensors->item[i].is_output &&
            !change_tensor(first, second, i, &is_changed))
            return false;
    return is_changed;
}

void assay_mla_used_metadata(const struct assay_tensor *metadata, int64_t b,
                             uint8_t *is_used)
{
    for (int64_t i = 0; i < assay_tensor_elements(metadata); i++) {
        const int64_t field = i % ASSAY_PLAN_FIELDS;
        const int32_t begin = (int32_t)assay_tensor_bits(metadata, i - field);
        const bool is_idle = begin < 0 || begin >= b;
        is_used[i] = field == ASSAY_PLAN_BEGIN_REQ || field == ASSAY_PLAN_END_REQ ||
                     (!is_idle && field != ASSAY_PLAN_PAD);
    }
}

/* SPDX-License-Identifier: MIT */
/* The table of areas, and finding a fault in it. */
#include "fuzz/fault/fault.h"

#include "ref/format/minifloat.h"

#include <assert.h>
#include <string.h>

enum { MAX_NAMES = 1000 };

const char *const assay_fault_kind_names[ASSAY_FAULT_KINDS] = { "rounding", "function",
                                                                "execution", "verifier" };

const struct assay_fault_area assay_fault_areas[] = {
    { "accumulate", "products and sums", assay_faults_accumulate },
    { "scale", "scale factors of operands and caches", assay_faults_scale },
    { "encode", "number formats and quantisers", assay_faults_encode },
    { "softmax", "maxima, weights, row sums and logarithms", assay_faults_softmax },
    { "split", "plans, splits and their combination", assay_faults_split },
    { "index", "keys, pages, lengths and groups", assay_faults_index },
    { "layout", "tails, strides and what outputs keep", assay_faults_layout },
    { "execution", "races and leftovers, by their effect on some runs",
      assay_faults_execution },
    { "verifier", "checks and oracles that are broken themselves",
      assay_faults_verifier },
    { NULL, NULL, NULL },
};

const struct assay_fault *assay_fault_at(int index)
{
    for (const struct assay_fault_area *area = assay_fault_areas; area->name; area++)
        for (const struct assay_fault *fault = area->faults; fault->name; fault++)
            if (index-- == 0) return fault;
    return NULL;
}

const struct assay_fault *assay_fault_find(const char *name)
{
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++)
        if (strcmp(fault->name, name) == 0) return fault;
    return NULL;
}

enum assay_status assay_fault_need(const char *name, const struct assay_fault **fault,
                                   struct assay_message *message)
{
    const char *names[MAX_NAMES + 1] = { NULL };
    *fault = assay_fault_find(name);
    if (*fault) return ASSAY_RAN;
    for (int i = 0; i < MAX_NAMES && assay_fault_at(i); i++)
        names[i] = assay_fault_at(i)->name;
    const char *const nearest = assay_nearest(name, names);
    return assay_fail(message, ASSAY_REFUSED, "no fault is called '%.60s'; %s%s%s", name,
                      nearest ? "did you mean '" : "`assay list faults` shows all",
                      nearest ? nearest : "", nearest ? "'?" : "");
}

const struct assay_fault_area *assay_fault_area_of(const struct assay_fault *wanted)
{
    for (const struct assay_fault_area *area = assay_fault_areas; area->name; area++)
        for (const struct assay_fault *fault = area->faults; fault->name; fault++)
            if (fault == wanted) return area;
    return NULL;
}

bool assay_fault_has(const struct assay_fault_run *run, const char *name)
{
    return assay_tensors_find(run->tensors, name) != NULL;
}

const struct assay_tensor *assay_fault_tensor(const struct assay_fault_run *run,
                                              const char *name)
{
    const struct assay_tensor *const tensor = assay_tensors_find(run->tensors, name);
    assert(tensor);
    return tensor;
}

const struct assay_tensor *assay_fault_output(const struct assay_fault_run *run)
{
    int i = 0;
    while (!run->tensors->item[i].is_output)
        i++;
    return &run->tensors->item[i];
}

int64_t assay_fault_read(const struct assay_tensor *tensor, uint32_t *bits)
{
    const int64_t elements = assay_tensor_elements(tensor);
    if (elements > ASSAY_FAULT_ELEMENTS) return 0;
    for (int64_t i = 0; i < elements; i++)
        bits[i] = assay_tensor_bits(tensor, i);
    return elements;
}

float assay_fault_value(const struct assay_tensor *tensor, int64_t element)
{
    const uint32_t bits = assay_tensor_bits(tensor, element);
    float value;
    if (tensor->format != ASSAY_F32)
        return (float)assay_minifloat_decode(assay_minifloat(tensor->format), bits);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void assay_fault_set_value(const struct assay_tensor *tensor, int64_t element,
                           float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (tensor->format != ASSAY_F32)
        bits = assay_minifloat_encode_f32(assay_minifloat(tensor->format), value,
                                          ASSAY_OVERFLOW_SPECIAL);
    assay_tensor_set_bits(tensor, element, bits);
}

/* SPDX-License-Identifier: MIT */
#include "fuzz/fault/class.h"

#include <assert.h>
#include <string.h>

const struct assay_fault_class assay_fault_classes[] = {
    { "C01", "scales rounded to powers of two" },
    { "C02", "special codes of UE8M0" },
    { "C03", "payload and scale that disagree" },
    { "C04", "encoding of scales" },
    { "C05", "orientation and padding of scales" },
    { "C06", "scales kept too long" },
    { "C07", "two scales in one tile of N" },
    { "C08", "tail of K" },
    { "C09", "tails of M and N, and stores" },
    { "C10", "strides and offsets" },
    { "C11", "zero, tiny and huge maxima" },
    { "C12", "encoding FP8" },
    { "C13", "decoding FP8" },
    { "C14", "accumulator and promotion" },
    { "C15", "rounding in the epilogue" },
    { "C16", "dropped arguments, c and d" },
    { "C17", "range of intermediates" },
    { "C18", "labels of groups" },
    { "C19", "empty groups and sizes of zero" },
    { "C20", "rows of nobody that reach others" },
    { "C21", "unused cache that reaches outputs" },
    { "C22", "descriptors edited in flight" },
    { "C23", "order of asynchronous copies" },
    { "C24", "dependent launches" },
    { "C25", "clusters and multicast" },
    { "C26", "offsets of 32 bits" },
    { "C27", "workspaces" },
    { "C28", "stale and unset plans" },
    { "C29", "unit and layout of lse" },
    { "C30", "empty rows and merges" },
    { "C31", "addresses of partial results" },
    { "C32", "the sink" },
    { "C33", "validity of indices" },
    { "C34", "several query tokens" },
    { "C35", "limits of lengths" },
    { "C36", "running maximum and rescaling" },
    { "C37", "weights in low precision" },
    { "C38", "scales of the cache" },
    { "C39", "shapes that are not supported" },
    { "C40", "dependence on the batch" },
    { "C41", "verifiers themselves" },
    { NULL, NULL },
};

_Static_assert(sizeof(assay_fault_classes) / sizeof(assay_fault_classes[0]) ==
                   ASSAY_FAULT_CLASSES + 1,
               "as many classes as there are");

int assay_fault_class_of(const struct assay_fault *fault)
{
    int place = 0;
    while (assay_fault_classes[place].id &&
           strncmp(fault->class_id, assay_fault_classes[place].id, 3) != 0)
        place++;
    assert(assay_fault_classes[place].id);
    return place;
}

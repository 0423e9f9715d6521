/* SPDX-License-Identifier: MIT */
/* The table of operations: one row each. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"
#include "verify/operation/operation.h"

#include <string.h>

const struct assay_operation *const assay_operations[] = { &assay_fp8_gemm_nt, NULL };

const struct assay_operation *assay_operation_find(const char *name)
{
    for (int i = 0; assay_operations[i]; i++)
        if (strcmp(assay_operations[i]->name, name) == 0) return assay_operations[i];
    return NULL;
}

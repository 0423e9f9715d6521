/* SPDX-License-Identifier: MIT */
/* Relations between two runs that follow from the mathematics, whoever computes them: the
 * same kernel is given a second case made from the first, and its outputs are held to the
 * bound of the second and, where no rounding can tell the two apart, to the bits of the
 * first. Neither needs the model. */
#ifndef ASSAY_VERIFY_OPERATION_PROPERTY_H
#define ASSAY_VERIFY_OPERATION_PROPERTY_H

#include "ref/tensor.h"
#include "verify/case/case.h"

enum assay_property_kind {
    ASSAY_PROPERTY_MATHEMATICS, /* asked by check properties */
    ASSAY_PROPERTY_BATCH,       /* by check batch: the other rows or requests differ */
    ASSAY_PROPERTY_PLAN,        /* by check plan: the same work, split otherwise */
};

/* One of the two runs. Data of outputs may be NULL where inputs alone are asked for. */
struct assay_property_run {
    const struct assay_case *the_case;
    const void *problem;
    const struct assay_tensors *tensors;
};

struct assay_property { /* tables are closed by a NULL name */
    const char *name, *meaning;
    enum assay_property_kind kind;

    /* Turns *@second, a copy of the first case, into the second; its keys have to bind.
     * False: the relation says nothing about this case. NULL: the same case. */
    bool (*derive)(const struct assay_property_run *first, struct assay_case *second);

    /* Writes all inputs of the second run, row padding aside, whatever the source of the
     * first one's (recorded, explicit elements). Data of @second's outputs must be left
     * alone. False: the relation says nothing about these contents. */
    bool (*transform)(const struct assay_property_run *first,
                      const struct assay_property_run *second);

    /* The bits that element @element of output tensor @output of the second run has to
     * have. False: there is only the bound for it. NULL: there is only the bound. */
    bool (*expect)(const struct assay_property_run *first,
                   const struct assay_property_run *second, int output, int64_t element,
                   uint32_t *bits);
};

#endif

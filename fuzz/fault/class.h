/* SPDX-License-Identifier: MIT */
/* Classes of faults: what goes wrong in kernels of this kind again and again, sorted from
 * public reports. The letter behind a fault's class, "C14b", tells variants apart. */
#ifndef ASSAY_FUZZ_FAULT_CLASS_H
#define ASSAY_FUZZ_FAULT_CLASS_H

#include "fuzz/fault/fault.h"

struct assay_fault_class { /* the table is closed by a NULL id */
    const char *id, *name;
};
extern const struct assay_fault_class assay_fault_classes[];
enum { ASSAY_FAULT_CLASSES = 41 };

/* The place of the fault's class in the table; every fault has one (asserted). */
int assay_fault_class_of(const struct assay_fault *fault);

#endif

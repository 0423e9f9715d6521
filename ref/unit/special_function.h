/* SPDX-License-Identifier: MIT */
/* The special-function unit of Hopper: quadratic interpolation in integers. Exactness:
 * modelled; equal to the hardware on all 2^32 inputs of each function (measured on H200;
 * the structure was published for the G80 by the envytools project). Arguments and
 * results are f32 bits. */
#ifndef ASSAY_REF_UNIT_SPECIAL_FUNCTION_H
#define ASSAY_REF_UNIT_SPECIAL_FUNCTION_H

#include <stdint.h>

uint32_t assay_ex2_approx_ftz(uint32_t bits);
uint32_t assay_lg2_approx_ftz(uint32_t bits);
uint32_t assay_rcp_approx_ftz(uint32_t bits);
uint32_t assay_rsqrt_approx_ftz(uint32_t bits);

/* div.approx.ftz.f32: a * rcp(b), the product rounded to nearest even and flushed. */
uint32_t assay_div_approx_ftz(uint32_t a, uint32_t b);

#endif

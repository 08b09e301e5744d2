/* Rounding a double to float16 and bfloat16, once: to odd in float32, which keeps what decides, then to nearest even. */
#ifndef POSENC_HALVES_H
#define POSENC_HALVES_H

#include "direct.h"

static inline float from_bits32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bits of x truncated to float32, with the last one set if anything was cut off. float32 has 13 bits more than float16 and 16
 * more than bfloat16, where two are enough for the second rounding to be that of x. */
static inline uint32_t odd_float32(double x)
{
    float nearest = (float)x;
    double back = (double)nearest;
    uint32_t bits = bits32(nearest), inexact = back != x, away = fabs(back) > fabs(x);
    return (bits - (inexact & away & ~bits)) | inexact;
}

/* Finite x below the overflow threshold of 65520 in size; above it, infinity. */
static inline uint16_t to_float16(double x)
{
    uint32_t odd = odd_float32(x), sign = odd >> 16 & 0x8000, size = odd & 0x7fffffff;
    uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13; /* the exponent's bias is 112 less */
    uint32_t subnormal = bits32(from_bits32(size) + 0.5f) - 0x3f000000;      /* units of 2^-24 are the last place of 0.5f */
    return (uint16_t)(sign | (size < 0x38800000 ? subnormal : normal));
}

static inline uint16_t to_bfloat16(double x)
{
    uint32_t odd = odd_float32(x);
    return (uint16_t)((odd + 0x7fff + (odd >> 16 & 1)) >> 16);
}

#endif

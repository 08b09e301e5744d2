/* Rounding a double to float16 and bfloat16, once: to odd in float32, which keeps what decides, then to nearest even. */
#ifndef POSENC_HALVES_H
#define POSENC_HALVES_H

#include "direct.h"

#if defined(__F16C__) || (defined(_MSC_VER) && defined(__AVX2__))
#include <immintrin.h>
#endif

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

/* The same for an x that is not half-way between two numbers of 16 bits, as all are that are not in doubt: with the last bit set
 * whatever was cut off, it stays on its side. Exact only where float32 has all its bits, |x| >= 2^-126. */
static inline uint32_t marked_float32(double x)
{
    const uint64_t cut = (1 << 29) - 1;
    return bits32((float)from_bits64((bits64(x) & ~cut) | (cut + 1)));
}

/* Finite values below the overflow threshold of 65520 in size; above it, infinity. `even` breaks ties. */
static inline uint16_t float16_of(uint32_t single, uint32_t even)
{
    uint32_t sign = single >> 16 & 0x8000, size = single & 0x7fffffff;
    uint32_t normal = (size - 0x38000000 + 0xfff + even) >> 13;        /* the exponent's bias is 112 less */
    uint32_t subnormal = bits32(from_bits32(size) + 0.5f) - 0x3f000000; /* units of 2^-24 are the last place of 0.5f */
    return (uint16_t)(sign | (size < 0x38800000 ? subnormal : normal));
}

static inline uint16_t to_float16(double x)
{
    uint32_t odd = odd_float32(x);
    return float16_of(odd, odd >> 13 & 1);
}

static inline uint16_t to_bfloat16(double x)
{
    uint32_t odd = odd_float32(x);
    return (uint16_t)((odd + 0x7fff + (odd >> 16 & 1)) >> 16);
}

/* The same for values that are not half-way and, for bfloat16, not below POSENC_SMALLEST_MARKED. */
#define POSENC_SMALLEST_MARKED 0x1p-124

static inline uint16_t marked_float16(double x)
{
    return float16_of(marked_float32(x), 1);
}

/* float16_of for an array of marked_float32. The instruction for it, where there is one, makes tables 14 to 34 % faster. */
static inline void narrow_float16(ptrdiff_t n, const uint32_t *restrict marked, uint16_t *restrict to)
{
    ptrdiff_t i = 0;
#if defined(__F16C__) || (defined(_MSC_VER) && defined(__AVX2__))
    for (; i + 8 <= n; i += 8) {
        __m256 eight = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)(marked + i)));
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < n; i++)
        to[i] = float16_of(marked[i], 1);
}

static inline uint16_t marked_bfloat16(double x)
{
    return (uint16_t)((marked_float32(x) + 0x8000) >> 16);
}

#endif

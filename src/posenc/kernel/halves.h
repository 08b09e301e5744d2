/* Rounding a double to float16 and bfloat16, once: to odd in float32, which keeps what decides, then to nearest even. */
#ifndef POSENC_HALVES_H
#define POSENC_HALVES_H

#include "direct.h"

#if defined(__F16C__) || (defined(_MSC_VER) && defined(__AVX2__))
#include <immintrin.h>
#define POSENC_F16C 1
#else
#define POSENC_F16C 0
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

/* Rounds as many as the instruction for it, where there is one, does at once; returns how many. */
static inline ptrdiff_t narrow_by_eight(ptrdiff_t n, const void *from, uint16_t *restrict to)
{
    ptrdiff_t i = 0;
#if POSENC_F16C
    for (; i + 8 <= n; i += 8) {
        __m256 eight = _mm256_loadu_ps((const float *)from + i);
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
    }
#else
    (void)n, (void)from, (void)to;
#endif
    return i;
}

/* float16_of for an array of marked_float32. The instruction makes tables 14 to 34 % faster. */
static inline void narrow_float16(ptrdiff_t n, const uint32_t *restrict marked, uint16_t *restrict to)
{
    for (ptrdiff_t i = narrow_by_eight(n, marked, to); i < n; i++)
        to[i] = float16_of(marked[i], 1);
}

static inline uint16_t marked_bfloat16(double x)
{
    return (uint16_t)((marked_float32(x) + 0x8000) >> 16);
}

static inline void narrow_bfloat16(ptrdiff_t n, const uint32_t *restrict marked, uint16_t *restrict to)
{
    for (ptrdiff_t i = 0; i < n; i++) /* vector loop */
        to[i] = (uint16_t)((marked[i] + 0x8000) >> 16);
}

/* ---- any float32, and back -------------------------------------------------------------------------------------------- */

/* To nearest even; what overflows is infinity, a NaN keeps its sign and leading bits and is quiet. */
static inline uint16_t nearest_float16_of(uint32_t single)
{
    const uint32_t size = single & 0x7fffffff, sign = single >> 16 & 0x8000;
    const uint32_t infinity = 0x7c00, nan = 0x7e00 | (size >> 13 & 0x3ff);
    const uint32_t other = sign | (size > 0x7f800000 ? nan : infinity);
    return (uint16_t)(size >= 0x47800000 ? other : float16_of(single, single >> 13 & 1));
}

static inline void nearest_float16(ptrdiff_t n, const float *restrict from, uint16_t *restrict to)
{
    for (ptrdiff_t i = narrow_by_eight(n, from, to); i < n; i++) /* vector loop */
        to[i] = nearest_float16_of(bits32(from[i]));
}

static inline uint16_t nearest_bfloat16_of(uint32_t single)
{
    const uint32_t nan = single >> 16 | 0x40, nearest = (single + 0x7fff + (single >> 16 & 1)) >> 16;
    return (uint16_t)((single & 0x7fffffff) > 0x7f800000 ? nan : nearest);
}

static inline void nearest_bfloat16(ptrdiff_t n, const float *restrict from, uint16_t *restrict to)
{
    for (ptrdiff_t i = 0; i < n; i++) /* vector loop */
        to[i] = nearest_bfloat16_of(bits32(from[i]));
}

/* Exactly: a float16's exponent and fraction as those of a float32 are the value times 2^-112. */
static inline float wide_float16(uint16_t x)
{
    const uint32_t half = x, sign = (half & 0x8000) << 16, size = (half & 0x7fff) << 13;
    const uint32_t finite = bits32(from_bits32(size) * 0x1p112f), other = size | 0x7f800000;
    return from_bits32(sign | (size >= 0x0f800000 ? other : finite));
}

static inline void widen_float16(ptrdiff_t n, const uint16_t *restrict from, float *restrict to)
{
    ptrdiff_t i = 0;
#if POSENC_F16C
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
    for (; i < n; i++) /* vector loop */
        to[i] = wide_float16(from[i]);
}

static inline void widen_bfloat16(ptrdiff_t n, const uint16_t *restrict from, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; i++) /* vector loop */
        to[i] = from_bits32((uint32_t)from[i] << 16);
}

#endif

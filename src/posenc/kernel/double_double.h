/* Double-double arithmetic: a value is the unevaluated sum high + low, |low| <= ulp(high) / 2.
 *
 * Exact when the rounding mode is to nearest and nothing under- or overflows; the callers' domain sees to both.
 * The compiler must neither reassociate nor contract. */
#ifndef POSENC_DOUBLE_DOUBLE_H
#define POSENC_DOUBLE_DOUBLE_H

#include <float.h>
#include <math.h>

#if defined(__FAST_MATH__) || (defined(_MSC_VER) && defined(_M_FP_FAST))
#error "double-double arithmetic does not survive fast-math"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "double-double arithmetic needs float and double evaluated in their own precision"
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#pragma fp_contract(off)
#endif

#if defined(__FMA__) || defined(__aarch64__) || defined(_M_ARM64) || (defined(_MSC_VER) && defined(__AVX2__))
#define POSENC_HAS_FMA 1
#else
#define POSENC_HAS_FMA 0
#endif

typedef struct {
    double high, low;
} dd;

/* a * b + c, fused where the hardware does it: for places where either rounding is within the bound. */
static inline double multiply_add(double a, double b, double c)
{
#if POSENC_HAS_FMA
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* a + b exactly. */
static inline dd two_sum(double a, double b)
{
    double sum = a + b;
    double part = sum - a;
    return (dd){sum, (a - (sum - part)) + (b - part)};
}

/* a + b exactly, if |a| >= |b| or a == 0. */
static inline dd fast_two_sum(double a, double b)
{
    double sum = a + b;
    return (dd){sum, b - (sum - a)};
}

/* a * b exactly. Without a fused multiply-add by Dekker's splitting, never by libm's fma, a slow call there. */
static inline dd two_product(double a, double b)
{
    double product = a * b;
#if POSENC_HAS_FMA
    return (dd){product, fma(a, b, -product)};
#else
    const double split = 134217729.0; /* 2^27 + 1 */
    double a_big = split * a, b_big = split * b;
    double a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
    double a_low = a - a_high, b_low = b - b_high;
    return (dd){product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

/* a * b, not normalised; relative error below 2^-102. */
static inline dd dd_product(dd a, dd b)
{
    dd product = two_product(a.high, b.high);
    product.low += multiply_add(a.high, b.low, a.low * b.high);
    return product;
}

/* a + b, not normalised; error below 2^-103 * (|a| + |b|), also when they cancel. */
static inline dd dd_sum(dd a, dd b)
{
    dd sum = two_sum(a.high, b.high);
    sum.low += a.low + b.low;
    return sum;
}

static inline dd dd_negative(dd a)
{
    return (dd){-a.high, -a.low};
}

#endif

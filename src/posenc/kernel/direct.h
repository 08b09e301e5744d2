/* Direct evaluation: amplitude * (sin, cos) of p w for many frequencies w at one position p.
 *
 * A frequency in turns per position makes the reduction exact work: no pi, no table of its digits. */
#ifndef POSENC_DIRECT_H
#define POSENC_DIRECT_H

#include <string.h>

#include "constants.h"
#include "double_double.h"
#include "kernel.h"

#if defined(_MSC_VER) && !defined(__clang__)
#define restrict __restrict
#endif

static inline double round_to_integer(double x)
{
    const double magic = 0x1.8p52;
    return (x + magic) - magic;
}

/* x mod 1 in [-1/2, 1/2], exactly, for |x| < 2^62: above 2^51 the first step leaves an integer, the second nothing. */
static inline double fraction(double x)
{
    x -= round_to_integer(x);
    return x - round_to_integer(x);
}

static inline uint64_t bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* position * (t0 + t1 + t2) mod 1, in [-3/2, 3/2].
 *
 * The products are exact but for position * t2 and the sums of the lowest parts. With T = |position * turns| <= 2^62:
 * absolute error below T * 2^-157 + 2^-105, and while T < 1/2, where nothing is wrapped, relative error below 2^-103. */
static inline dd phase(double position, double t0, double t1, double t2)
{
    dd a = two_product(position, t0), b = two_product(position, t1);
    a.high = fraction(a.high);
    a.low = fraction(a.low);
    b.high = fraction(b.high);
    dd middle = two_sum(a.low, b.high);
    dd sum = two_sum(a.high, middle.high);
    return two_sum(sum.high, sum.low + (middle.low + multiply_add(position, t2, b.low)));
}

/* A quarter turn's worth of phase in [-1/8, 1/8] (double-double radians), and how many quarters were taken off. */
static inline dd reduced(dd turns, uint64_t *quarters)
{
    const double magic = 0x1.8p52;
    double shifted = 4.0 * turns.high + magic;
    *quarters = bits64(shifted);
    dd rest = two_sum(turns.high - 0.25 * (shifted - magic), turns.low);
    dd two_pi = {TWO_PI_HIGH, TWO_PI_LOW};
    dd angle = dd_product(rest, two_pi);
    return fast_two_sum(angle.high, angle.low);
}

/* coefficient + z * sum. The coefficient is at least 1.6 times the product, so that the short sum is exact. */
static inline dd horner(const double coefficient[2], dd z, dd sum)
{
    dd product = dd_product(z, sum);
    dd next = fast_two_sum(coefficient[0], product.high);
    next.low += product.low + coefficient[1];
    return next;
}

/* The same where the sum is below 2^-53 of the series' value and a double will do. */
static inline dd horner_start(const double coefficient[2], dd z, double sum)
{
    dd next = fast_two_sum(coefficient[0], z.high * sum);
    next.low += coefficient[1];
    return next;
}

/* sin and cos of an angle in [-pi/4, pi/4]; relative error below 2^-100. */
static inline void sin_cos_dd(dd x, dd *sin_x, dd *cos_x)
{
    dd z = dd_product(x, x);
    z = fast_two_sum(z.high, z.low);

    double tail = SIN[13][0];
    tail = multiply_add(tail, z.high, SIN[12][0]);
    tail = multiply_add(tail, z.high, SIN[11][0]);
    tail = multiply_add(tail, z.high, SIN[10][0]);
    tail = multiply_add(tail, z.high, SIN[9][0]);
    tail = multiply_add(tail, z.high, SIN[8][0]);
    dd sum = horner_start(SIN[7], z, tail);
    sum = horner(SIN[6], z, sum);
    sum = horner(SIN[5], z, sum);
    sum = horner(SIN[4], z, sum);
    sum = horner(SIN[3], z, sum);
    sum = horner(SIN[2], z, sum);
    sum = horner(SIN[1], z, sum);
    sum = horner(SIN[0], z, sum);
    *sin_x = dd_product(x, sum);

    tail = COS[14][0];
    tail = multiply_add(tail, z.high, COS[13][0]);
    tail = multiply_add(tail, z.high, COS[12][0]);
    tail = multiply_add(tail, z.high, COS[11][0]);
    tail = multiply_add(tail, z.high, COS[10][0]);
    tail = multiply_add(tail, z.high, COS[9][0]);
    sum = horner_start(COS[8], z, tail);
    sum = horner(COS[7], z, sum);
    sum = horner(COS[6], z, sum);
    sum = horner(COS[5], z, sum);
    sum = horner(COS[4], z, sum);
    sum = horner(COS[3], z, sum);
    sum = horner(COS[2], z, sum);
    sum = horner(COS[1], z, sum);
    *cos_x = horner(COS[0], z, sum);
}

/* The same in plain doubles; absolute error below 2^-52. */
static inline void sin_cos_double(double x, double *sin_x, double *cos_x)
{
    double z = x * x;
    double sum = SIN[8][0];
    sum = multiply_add(sum, z, SIN[7][0]);
    sum = multiply_add(sum, z, SIN[6][0]);
    sum = multiply_add(sum, z, SIN[5][0]);
    sum = multiply_add(sum, z, SIN[4][0]);
    sum = multiply_add(sum, z, SIN[3][0]);
    sum = multiply_add(sum, z, SIN[2][0]);
    sum = multiply_add(sum, z, SIN[1][0]);
    *sin_x = multiply_add(sum * z, x, x);
    sum = COS[9][0];
    sum = multiply_add(sum, z, COS[8][0]);
    sum = multiply_add(sum, z, COS[7][0]);
    sum = multiply_add(sum, z, COS[6][0]);
    sum = multiply_add(sum, z, COS[5][0]);
    sum = multiply_add(sum, z, COS[4][0]);
    sum = multiply_add(sum, z, COS[3][0]);
    sum = multiply_add(sum, z, COS[2][0]);
    sum = multiply_add(sum, z, COS[1][0]);
    *cos_x = multiply_add(sum, z, 1.0);
}

/* (sin, cos) of an angle plus that many quarter turns, from (sin, cos) of the angle: swap on odd ones, then the signs. */
static inline void turn_quarters(uint64_t quarters, double *sin_x, double *cos_x)
{
    uint64_t s = bits64(*sin_x), c = bits64(*cos_x);
    uint64_t swap = (s ^ c) & (0 - (quarters & 1));
    *sin_x = from_bits64((s ^ swap) ^ ((quarters & 2) << 62));
    *cos_x = from_bits64((c ^ swap) ^ (((quarters + 1) & 2) << 62));
}

/* A position as the exact sum of two doubles; the second is 0 when the first holds it all. */
typedef struct {
    double high, low;
} position;

/* base + offset, offset one of 0, 1/2, 1, ... 32. */
static position position_of(int64_t base, double offset)
{
    const int64_t limit = (int64_t)1 << 51;
    if (-limit < base && base < limit)
        return (position){(double)base + offset, 0.0};
    return (position){(double)(base & ~(int64_t)0xffffffff), (double)(base & 0xffffffff) + offset};
}

/* amplitude * (sin, cos) of p w for the frequencies k .. k + m - 1, in double-double.
 *
 * Error below 2^-92 * amplitude: 2^-94 from the frequencies' 2^-158 at |p w| = 2^64, the rest at most 2^-96. While
 * |p w| < 1 nothing is wrapped and all errors are relative: a sine's is below 2^-92 * |p w| * amplitude. */
static void direct(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, position p, double amplitude, double *restrict sin_high,
                   double *restrict sin_low, double *restrict cos_high, double *restrict cos_low)
{
    const double *t0 = waves->turns + k, *t1 = t0 + waves->n, *t2 = t1 + waves->n;
    const dd scale = {amplitude, 0.0};
    const double second = p.low;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        uint64_t quarters;
        dd s, c, turns = phase(p.high, t0[i], t1[i], t2[i]);
        if (second != 0.0) {
            dd sum = dd_sum(turns, phase(second, t0[i], t1[i], t2[i]));
            turns = two_sum(sum.high, sum.low);
        }
        sin_cos_dd(reduced(turns, &quarters), &s, &c);
        turn_quarters(quarters, &s.high, &c.high);
        turn_quarters(quarters, &s.low, &c.low);
        s = dd_product(s, scale);
        c = dd_product(c, scale);
        s = fast_two_sum(s.high, s.low);
        c = fast_two_sum(c.high, c.low);
        sin_high[i] = s.high;
        sin_low[i] = s.low;
        cos_high[i] = c.high;
        cos_low[i] = c.low;
    }
}

/* The same in plain doubles but for the phase: error below 2^-51 * amplitude, and for sines relative while |p w| < 1. */
static void direct_double(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, position p, double amplitude,
                          double *restrict sin_high, double *restrict cos_high)
{
    const double *t0 = waves->turns + k, *t1 = t0 + waves->n, *t2 = t1 + waves->n;
    const double second = p.low;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        uint64_t quarters;
        double s, c;
        dd turns = phase(p.high, t0[i], t1[i], t2[i]);
        if (second != 0.0) {
            dd sum = dd_sum(turns, phase(second, t0[i], t1[i], t2[i]));
            turns = two_sum(sum.high, sum.low);
        }
        sin_cos_double(reduced(turns, &quarters).high, &s, &c);
        turn_quarters(quarters, &s, &c);
        sin_high[i] = s * amplitude;
        cos_high[i] = c * amplitude;
    }
}

#endif

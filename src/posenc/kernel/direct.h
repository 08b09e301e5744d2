/* Direct evaluation: amplitude * (sin, cos) of p w for many frequencies w at one position p.
 *
 * A frequency in turns per position makes the reduction exact work: no pi, no table of its digits. */
#ifndef POSENC_DIRECT_H
#define POSENC_DIRECT_H

#include <string.h>

#include "constants.h"
#include "double_double.h"
#include "kernel.h"

/* Arrays begin on a cache line, and not all at the same place of a page, where a load can be taken for a store's alias. */
#define ALIGNED _Alignas(POSENC_LINE)
enum { SPARE = POSENC_LINE / sizeof(double) };

/* x - an integer: in [-1/2, 1/2] for |x| < 2^52, where |x| + 2^52 has units in its last place; an integer above. */
static inline double without_integer(double x)
{
    const double magic = copysign(0x1p52, x);
    return x - ((x + magic) - magic);
}

/* x mod 1 in [-1/2, 1/2], exactly, for |x| < 2^62: above 2^52 the first step leaves a small integer, the second nothing. */
static inline double fraction(double x)
{
    return without_integer(without_integer(x));
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

/* A phase in [-3, 3] turns without its nearest whole number of quarters: an angle in [-pi/4, pi/4], and that number. */
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

/* sin and cos of an angle in [-pi/4, pi/4] in plain doubles; error below 2^-52, for sines relative. The terms left out are below
 * 2^-53.8 of the sine and 2^-58. */
static inline void sin_cos_double(double x, double *sin_x, double *cos_x)
{
    double z = x * x;
    double sum = SIN[7][0];
    sum = multiply_add(sum, z, SIN[6][0]);
    sum = multiply_add(sum, z, SIN[5][0]);
    sum = multiply_add(sum, z, SIN[4][0]);
    sum = multiply_add(sum, z, SIN[3][0]);
    sum = multiply_add(sum, z, SIN[2][0]);
    sum = multiply_add(sum, z, SIN[1][0]);
    *sin_x = multiply_add(sum * z, x, x);
    sum = COS[8][0];
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
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t s = bits64(*sin_x), c = bits64(*cos_x);
    uint64_t swap = (s ^ c) & (0 - (quarters & 1));
    *sin_x = from_bits64((s ^ swap) ^ (quarters << 62 & sign));
    *cos_x = from_bits64((c ^ swap) ^ ((quarters + 1) << 62 & sign));
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

/* coefficient + z * sum. The coefficient is at least 1.6 times the product, so that the short sum is exact. */
static inline dd horner(const double coefficient[2], dd z, dd sum)
{
    dd product = dd_product(z, sum);
    dd next = fast_two_sum(coefficient[0], product.high);
    next.low += product.low + coefficient[1];
    return next;
}

/* Sines and cosines of one row at the frequencies of a tile. */
typedef struct {
    ALIGNED double sin_high[POSENC_TILE + SPARE];
    double sin_low[POSENC_TILE + SPARE], cos_high[POSENC_TILE + SPARE], cos_low[POSENC_TILE + SPARE];
} phasors;

/* sin and cos of angles in [-pi/4, pi/4]; relative error below 2^-100.
 *
 * Horner's scheme goes step by step over the whole tile: one element's chain of dependent operations is longer than what a
 * processor looks ahead. Terms below 2^-53 of the sum are summed in doubles. */
static void sin_cos_dd(ptrdiff_t m, double *restrict angle_high, double *restrict angle_low, phasors *row)
{
    ALIGNED double square_high[POSENC_TILE + SPARE];
    double square_low[POSENC_TILE + SPARE];
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd x = {angle_high[i], angle_low[i]}, z = dd_product(x, x);
        z = fast_two_sum(z.high, z.low);
        square_high[i] = z.high;
        square_low[i] = z.low;
        double s = SIN[13][0], c = COS[14][0];
        c = multiply_add(c, z.high, COS[13][0]);
        for (int k = 12; k >= 9; k--) {
            s = multiply_add(s, z.high, SIN[k][0]);
            c = multiply_add(c, z.high, COS[k][0]);
        }
        row->sin_high[i] = s;
        row->sin_low[i] = 0.0;
        row->cos_high[i] = c;
        row->cos_low[i] = 0.0;
    }
    for (int k = 8; k >= 0; k--) {
        for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
            dd z = {square_high[i], square_low[i]};
            dd s = {row->sin_high[i], row->sin_low[i]}, c = {row->cos_high[i], row->cos_low[i]};
            s = horner(SIN[k], z, s);
            c = horner(COS[k], z, c);
            row->sin_high[i] = s.high;
            row->sin_low[i] = s.low;
            row->cos_high[i] = c.high;
            row->cos_low[i] = c.low;
        }
    }
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd s = dd_product((dd){angle_high[i], angle_low[i]}, (dd){row->sin_high[i], row->sin_low[i]});
        row->sin_high[i] = s.high;
        row->sin_low[i] = s.low;
    }
}

/* The angles p w mod pi / 2 of the frequencies k .. k + m - 1, in [-pi/4, pi/4], and how many quarter turns are missing. */
static void angles(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, position p, double *restrict high, double *restrict low,
                   uint64_t *restrict quarters)
{
    const double *t0 = waves->turns + k, *t1 = t0 + waves->n, *t2 = t1 + waves->n;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd turns = phase(p.high, t0[i], t1[i], t2[i]);
        high[i] = turns.high;
        low[i] = turns.low;
    }
    if (p.low != 0.0) {
        for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
            dd turns = dd_sum((dd){high[i], low[i]}, phase(p.low, t0[i], t1[i], t2[i]));
            high[i] = turns.high;
            low[i] = turns.low;
        }
    }
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd angle = reduced((dd){high[i], low[i]}, &quarters[i]);
        high[i] = angle.high;
        low[i] = angle.low;
    }
}

/* amplitude * (sin, cos) of p w for the frequencies k .. k + m - 1, in double-double.
 *
 * Error below 2^-92 * amplitude: 2^-94 from the frequencies' 2^-158 at |p w| = 2^64, the rest at most 2^-96. While
 * |p w| < 1 nothing is wrapped and all errors are relative: a sine's is below 2^-92 * |p w| * amplitude. */
static void direct(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, position p, double amplitude, phasors *row)
{
    ALIGNED double high[POSENC_TILE + SPARE];
    double low[POSENC_TILE + SPARE];
    uint64_t quarters[POSENC_TILE + SPARE];
    angles(waves, k, m, p, high, low, quarters);
    sin_cos_dd(m, high, low, row);
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd s = {row->sin_high[i], row->sin_low[i]}, c = {row->cos_high[i], row->cos_low[i]};
        turn_quarters(quarters[i], &s.high, &c.high);
        turn_quarters(quarters[i], &s.low, &c.low);
        s = dd_product(s, (dd){amplitude, 0.0});
        c = dd_product(c, (dd){amplitude, 0.0});
        s = fast_two_sum(s.high, s.low);
        c = fast_two_sum(c.high, c.low);
        row->sin_high[i] = s.high + 0.0; /* a zero is +0 */
        row->sin_low[i] = s.low;
        row->cos_high[i] = c.high + 0.0;
        row->cos_low[i] = c.low;
    }
}

#endif

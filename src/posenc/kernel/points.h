/* Rows at positions of their own, evaluated directly and in one go: fast and doubt. In doubt, the accurate path. */
#ifndef POSENC_POINTS_H
#define POSENC_POINTS_H

#include "accurate.h"

/* Up to so many turns a phase needs two parts of its frequency only. */
#define MOST_TURNS 0x1p30

/* Bound of a row of float64, relative as in kernel.h; proven at pair_double_double. */
#define POINT_BOUND 0x1p-68

/* position * (t0 + t1) mod 1, in [-0.6, 0.6], not normalised: for |position * turns| <= MOST_TURNS the low part is below 2^-21
 * and the error below 2^-74; while that is below 1/2, nothing is wrapped and the error is below 2^-103 of the phase. */
static inline dd short_phase(double p, double t0, double t1)
{
    const double magic = 0x1.8p52;
    dd a = two_product(p, t0);
    return (dd){a.high - ((a.high + magic) - magic), multiply_add(p, t1, a.low)};
}

/* A value's limits. */
typedef struct {
    double sin_above, sin_below, cos_above, cos_below;
} limits;

/* What a row needs of its position p: the largest error, how it grows with the frequency, and up to which one cosines are flat. */
typedef struct {
    double p, amplitude, bound, slope, flat;
} point;

/* Bounds of a sine and a cosine, see set_bounds. */
typedef struct {
    double sine, cosine;
} pair_bounds;

static inline pair_bounds bounds_at(const point *at, double t0)
{
    const double size = fabs(t0), growing = size * at->slope;
    return (pair_bounds){growing < at->bound ? growing : at->bound, size > at->flat ? at->bound : 0.0};
}

/* A pair in plain doubles.
 *
 * Bound: the phase's rounding to a double, at most 0.6, is off by 2^-54 turns, 2^-51.3 radians; reducing it is exact, the angle is
 * rounded once, and 2 pi: 2^-52.7. Sine and cosine add 2^-52, the amplitude 2^-53: below 2^-50. While |p w| < 1 each of these
 * is relative to the angle. */
static inline limits pair_double(const point *at, double t0, double t1)
{
    const double magic = 0x1.8p52;
    const pair_bounds bound = bounds_at(at, t0);
    dd phase = short_phase(at->p, t0, t1);
    double turns = phase.high + phase.low, shifted = multiply_add(4.0, turns, magic), s, c;
    sin_cos_double(multiply_add(-0.25, shifted - magic, turns) * TWO_PI_HIGH, &s, &c);
    turn_quarters(bits64(shifted), &s, &c);
    s *= at->amplitude;
    c *= at->amplitude;
    return (limits){s + bound.sine, s - bound.sine, c + bound.cosine, c - bound.cosine};
}

static uint64_t points_float32(ptrdiff_t m, const double *restrict t0, const double *restrict t1, point at, float *restrict sines,
                               float *restrict cosines)
{
    uint64_t doubt = 0;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        limits v = pair_double(&at, t0[i], t1[i]);
        sines[i] = (float)v.sin_above;
        cosines[i] = (float)v.cos_above;
        doubt |= (bits64(v.sin_above) ^ bits64(v.sin_below)) | (bits64(v.cos_above) ^ bits64(v.cos_below));
    }
    return doubt >> 28;
}

/* The same for 16 bits, as marked_float32. */
static uint64_t points_marked(ptrdiff_t m, const double *restrict t0, const double *restrict t1, point at,
                              uint32_t *restrict sines, uint32_t *restrict cosines)
{
    uint64_t doubt = 0;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        limits v = pair_double(&at, t0[i], t1[i]);
        sines[i] = marked_float32(v.sin_above);
        cosines[i] = marked_float32(v.cos_above);
        doubt |= (bits64(v.sin_above) ^ bits64(v.sin_below)) | (bits64(v.cos_above) ^ bits64(v.cos_below));
    }
    return doubt;
}

/* A row of pairs in double-doubles.
 *
 * Bound: the phase is off by 2^-74 turns, the angle by 2^-71.3 radians, its reduction and the product with 2 pi by 2^-103. Sine
 * and cosine sum the terms from x^8 on in doubles: these are below 2^-18 and off by 2^-51 of that; the rest is off by 2^-100.
 * Together below 2^-68; while |p w| < 1 all is relative to the angle. */
static inline limits pair_double_double(const point *at, double t0, double t1)
{
    const pair_bounds bound = bounds_at(at, t0);
    uint64_t quarters;
    dd phase = short_phase(at->p, t0, t1), x = reduced(two_sum(phase.high, phase.low), &quarters), z = dd_product(x, x);
    z = fast_two_sum(z.high, z.low);
    double tail = SIN[10][0];
    tail = multiply_add(tail, z.high, SIN[9][0]);
    tail = multiply_add(tail, z.high, SIN[8][0]);
    tail = multiply_add(tail, z.high, SIN[7][0]);
    tail = multiply_add(tail, z.high, SIN[6][0]);
    tail = multiply_add(tail, z.high, SIN[5][0]);
    dd s = {multiply_add(tail, z.high, SIN[4][0]), 0.0};
    s = horner(SIN[0], z, horner(SIN[1], z, horner(SIN[2], z, horner(SIN[3], z, s))));
    s = dd_product(x, s);
    tail = COS[10][0];
    tail = multiply_add(tail, z.high, COS[9][0]);
    tail = multiply_add(tail, z.high, COS[8][0]);
    tail = multiply_add(tail, z.high, COS[7][0]);
    tail = multiply_add(tail, z.high, COS[6][0]);
    tail = multiply_add(tail, z.high, COS[5][0]);
    dd c = {multiply_add(tail, z.high, COS[4][0]), 0.0};
    c = horner(COS[0], z, horner(COS[1], z, horner(COS[2], z, horner(COS[3], z, c))));
    turn_quarters(quarters, &s.high, &c.high);
    turn_quarters(quarters, &s.low, &c.low);
    s = dd_product(s, (dd){at->amplitude, 0.0});
    c = dd_product(c, (dd){at->amplitude, 0.0});
    return (limits){s.high + (s.low + bound.sine), s.high + (s.low - bound.sine), c.high + (c.low + bound.cosine),
                    c.high + (c.low - bound.cosine)};
}

static uint64_t points_float64(ptrdiff_t m, const double *restrict t0, const double *restrict t1, point at,
                               double *restrict sines, double *restrict cosines)
{
    uint64_t doubt = 0;
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        limits v = pair_double_double(&at, t0[i], t1[i]);
        sines[i] = v.sin_above;
        cosines[i] = v.cos_above;
        doubt |= (bits64(v.sin_above) ^ bits64(v.sin_below)) | (bits64(v.cos_above) ^ bits64(v.cos_below));
    }
    return doubt;
}

/* ---- columns -------------------------------------------------------------------------------------------------------- */

/* Elements of `size` bytes alternately, the last one of an odd width alone. */
static void alternate(ptrdiff_t width, ptrdiff_t size, const void *even, const void *odd, void *to)
{
    const ptrdiff_t pairs = width / 2;
    if (size == 8) {
        const double *a = even, *b = odd;
        double *restrict c = to;
        for (ptrdiff_t i = 0; i < pairs; i++) /* vector loop */
            c[2 * i] = a[i], c[2 * i + 1] = b[i];
    } else if (size == 4) {
        const float *a = even, *b = odd;
        float *restrict c = to;
        for (ptrdiff_t i = 0; i < pairs; i++) /* vector loop */
            c[2 * i] = a[i], c[2 * i + 1] = b[i];
    } else {
        const uint16_t *a = even, *b = odd;
        uint16_t *restrict c = to;
        for (ptrdiff_t i = 0; i < pairs; i++) /* vector loop */
            c[2 * i] = a[i], c[2 * i + 1] = b[i];
    }
    if (width % 2)
        memcpy((char *)to + (width - 1) * size, (const char *)even + pairs * size, (size_t)size);
}

/* Segment s of a row whose sines and cosines are given in the output's dtype. */
static void put_pairs(const tile *t, const segment *s, const void *sines, const void *cosines, void *to)
{
    const posenc_job *job = t->job;
    const void *first = job->cos_first ? cosines : sines, *second = job->cos_first ? sines : cosines;
    const ptrdiff_t size = posenc_size(job->dtype);
    if (job->interleaved)
        alternate(s->width, size, first, second, to);
    else
        memcpy(to, s->place == t->shift ? first : second, (size_t)(s->width * size));
}

/* The tile's sines and cosines at a position, in the output's dtype, each a room for POSENC_TILE doubles. Whether there is doubt. */
static int point_row(tile *t, double p, void *sines, void *cosines)
{
    const posenc_job *job = t->job;
    const double *t0 = job->waves.turns + t->k, *t1 = t0 + job->waves.n, two_pi_up = 6.2832;
    const double relative = job->dtype == POSENC_FLOAT64 && job->fast_bound < POINT_BOUND ? POINT_BOUND : job->fast_bound;
    const double bound = relative * fabs(job->amplitude), radians = two_pi_up * fabs(p);
    const point at = {p, job->amplitude, bound, bound * radians, flat_angle(job) / radians};
    if (job->dtype == POSENC_FLOAT32)
        return points_float32(t->m, t0, t1, at, sines, cosines) != 0;
    if (job->dtype == POSENC_FLOAT64)
        return points_float64(t->m, t0, t1, at, sines, cosines) != 0;
    uint32_t marked[2][POSENC_TILE];
    const uint64_t doubt = points_marked(t->m, t0, t1, at, marked[0], marked[1]);
    if (job->dtype == POSENC_FLOAT16) {
        narrow_float16(t->m, marked[0], sines);
        narrow_float16(t->m, marked[1], cosines);
        return doubt >> 41 != 0;
    }
    narrow_bfloat16(t->m, marked[0], sines);
    narrow_bfloat16(t->m, marked[1], cosines);
    return doubt >> 44 != 0;
}

#endif

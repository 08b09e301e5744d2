/* The accurate path: a row evaluated directly, in double-double, whose entries are proven one by one. */
#ifndef POSENC_ACCURATE_H
#define POSENC_ACCURATE_H

#include "tile.h"

/* high + low rounded to odd: truncated, and the last bit set if anything was cut off. Rounding that once more, to a format
 * at least two bits shorter, is rounding high + low. */
static inline double rounded_to_odd(double high, double low)
{
    dd sum = two_sum(high, low);
    uint64_t bits = bits64(sum.high), inexact = sum.low != 0.0, away = (sum.low > 0.0) != (sum.high > 0.0);
    return from_bits64((bits - (inexact & away & ~bits)) | inexact);
}

/* Stores `width` values high + low, proven to within their bounds, times a power of two. Returns how many were not. */
static ptrdiff_t store_float32(ptrdiff_t width, const double *high, const double *low, const double *bound, double scale,
                               float *restrict to)
{
    ptrdiff_t unresolved = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        float below = (float)(rounded_to_odd(high[i], low[i] - bound[i]) * scale);
        float above = (float)(rounded_to_odd(high[i], low[i] + bound[i]) * scale);
        int doubt = bits32(below) != bits32(above);
        to[i] = doubt ? (float)NAN : above;
        unresolved += doubt;
    }
    return unresolved;
}

/* Under a scale values below 2^-1000 are left unresolved: they may become subnormal, where this would round twice. */
static ptrdiff_t store_float64(ptrdiff_t width, const double *high, const double *low, const double *bound, double scale,
                               double *restrict to)
{
    const double smallest = scale == 1.0 ? 0.0 : 0x1p-1000;
    ptrdiff_t unresolved = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        double below = (high[i] + (low[i] - bound[i])) * scale;
        double above = (high[i] + (low[i] + bound[i])) * scale;
        int doubt = (bits64(below) != bits64(above)) | (fabs(above) < smallest);
        to[i] = doubt ? NAN : above;
        unresolved += doubt;
    }
    return unresolved;
}

static uint16_t half_nan(enum posenc_dtype dtype)
{
    return dtype == POSENC_FLOAT16 ? 0x7e00 : 0x7fc0;
}

static ptrdiff_t store_half(ptrdiff_t width, const double *high, const double *low, const double *bound, double scale,
                            enum posenc_dtype dtype, uint16_t *restrict to)
{
    ptrdiff_t unresolved = 0;
    for (ptrdiff_t i = 0; i < width; i++) {
        double below = rounded_to_odd(high[i], low[i] - bound[i]) * scale, above = rounded_to_odd(high[i], low[i] + bound[i]) * scale;
        uint16_t down = dtype == POSENC_FLOAT16 ? to_float16(below) : to_bfloat16(below);
        uint16_t up = dtype == POSENC_FLOAT16 ? to_float16(above) : to_bfloat16(above);
        to[i] = down == up ? up : half_nan(dtype);
        unresolved += down != up;
    }
    return unresolved;
}

/* Segment s of the row at position 0: sines are +0, cosines the amplitude, rounded. */
static void store_origin(const tile *t, const segment *s, void *to)
{
    const posenc_job *job = t->job;
    const double cosine = job->amplitude * job->scale;
    const int first_is_cosine = job->cos_first != (!job->interleaved && s->place > t->shift);
    const double even = first_is_cosine ? cosine : 0.0, odd = first_is_cosine != job->interleaved ? cosine : 0.0;
    for (ptrdiff_t i = 0; i < s->width; i++) {
        const double value = i % 2 ? odd : even;
        if (job->dtype == POSENC_FLOAT32)
            ((float *)to)[i] = (float)value;
        else if (job->dtype == POSENC_FLOAT64)
            ((double *)to)[i] = value;
        else
            ((uint16_t *)to)[i] = job->dtype == POSENC_FLOAT16 ? to_float16(value) : to_bfloat16(value);
    }
}

/* Puts the caller's answer where a store left NaN, the mark of what it could not prove. */
static void settle(tile *t, const segment *s, ptrdiff_t row, void *to)
{
    const posenc_job *job = t->job;
    for (ptrdiff_t i = 0; i < s->width; i++) {
        float *single = (float *)to + i;
        double *twice = (double *)to + i;
        uint16_t *half = (uint16_t *)to + i;
        const int nan = job->dtype == POSENC_FLOAT32   ? isnan(*single)
                        : job->dtype == POSENC_FLOAT64 ? isnan(*twice)
                                                       : *half == half_nan(job->dtype);
        if (!nan)
            continue;
        const double value = job->settle(job->context, row, s->column + i);
        t->unsettled |= isnan(value);
        if (job->dtype == POSENC_FLOAT32)
            *single = (float)value;
        else if (job->dtype == POSENC_FLOAT64)
            *twice = value;
        else
            *half = job->dtype == POSENC_FLOAT16 ? to_float16(value) : to_bfloat16(value);
    }
}

/* Where a sine or a cosine is 0, at a whole number of quarter turns, both are exact. */
static void clear_exact(const tile *t, const phasors *value, double *restrict bound)
{
    double inexact[POSENC_TILE], columns[COLUMNS + SPARE];
    for (ptrdiff_t i = 0; i < t->m; i++)
        inexact[i] = value->sin_high[i] != 0.0 && value->cos_high[i] != 0.0 ? 1.0 : 0.0;
    spread(t, inexact, inexact, columns);
    for (ptrdiff_t i = t->shift; i < t->shift + 2 * t->m; i++)
        bound[i] *= columns[i];
}

/* Segment s of a row: direct evaluation in double-double. */
static void accurate(tile *t, const segment *s, ptrdiff_t row, void *to)
{
    const posenc_job *job = t->job;
    const position p = position_at(job, row);
    const double size = fabs(p.high + p.low);
    phasors value;
    double high[COLUMNS + SPARE], low[COLUMNS + SPARE], bound[COLUMNS + SPARE];
    if (size == 0.0) {
        store_origin(t, s, to);
        return;
    }
    direct(&job->waves, t->k, t->m, p, job->amplitude, &value);
    spread(t, value.sin_high, value.cos_high, high);
    spread(t, value.sin_low, value.cos_low, low);
    if (size < SMALLEST_POSITION)
        set_bounds(t, INFINITY, 1.0, 0.0, bound);
    else
        set_bounds(t, job->accurate_bound, size, 0.0, bound);
    if (job->waves.exact && size >= SMALLEST_POSITION)
        clear_exact(t, &value, bound);
    const ptrdiff_t at = s->place;
    ptrdiff_t unresolved;
    if (job->dtype == POSENC_FLOAT32)
        unresolved = store_float32(s->width, high + at, low + at, bound + at, job->scale, to);
    else if (job->dtype == POSENC_FLOAT64)
        unresolved = store_float64(s->width, high + at, low + at, bound + at, job->scale, to);
    else
        unresolved = store_half(s->width, high + at, low + at, bound + at, job->scale, job->dtype, to);
    if (unresolved > 0)
        settle(t, s, row, to);
}

#endif

/* A tile of frequencies: its rotations, its columns and their bounds. */
#ifndef POSENC_TILE_H
#define POSENC_TILE_H

#include "halves.h"

enum { COLUMNS = 2 * POSENC_TILE };

/* A run of columns of a tile that are consecutive in a row. */
typedef struct {
    ptrdiff_t column, width; /* in a row */
    ptrdiff_t place;         /* in the tile's column arrays */
    ptrdiff_t made;          /* where rows are made */
} segment;

/* One tile of a job, and what its work item needs at hand. */
typedef struct {
    const posenc_job *job;
    ptrdiff_t k, m;  /* its frequencies: k .. k + m - 1 */
    ptrdiff_t shift; /* where its column arrays begin, so that they are aligned where rows are made */
    double smallest; /* of the sines' slopes that are not 0, or less */
    int segment_count;
    segment segments[2];
    const double *rotations; /* NULL: rows are evaluated directly */
    char *out;               /* where row number out_row is made */
    ptrdiff_t out_row, row_stride;
    ptrdiff_t run_end, block_end; /* of the rows of consecutive positions at hand, and of the last block of them */
    int turned;                   /* whether the rows at hand are made by rotation */
    int unsettled;
    phasors centre;
    ALIGNED double bound[COLUMNS + SPARE];
    double first_high[COLUMNS + SPARE], second_high[COLUMNS + SPARE], first_low[COLUMNS + SPARE], second_low[COLUMNS + SPARE];
    double sines[POSENC_TILE], cosines[POSENC_TILE]; /* of a row at a position of its own, in the output's dtype */
    double buffers[2][COLUMNS + SPARE]; /* rows that are not made in place, in the output's dtype */
} tile;

/* Where segment s of a row is made. */
static char *place_of(const tile *t, const segment *s, ptrdiff_t row)
{
    return t->out + (row - t->out_row) * t->row_stride + s->made * posenc_size(t->job->dtype);
}

static int64_t integer_at(const posenc_job *job, ptrdiff_t row)
{
    if (job->integers != NULL)
        return job->integers[row];
    return (int64_t)((uint64_t)job->start + (uint64_t)row * (uint64_t)job->step); /* the product alone may be no int64 */
}

static position position_at(const posenc_job *job, ptrdiff_t row)
{
    if (job->reals != NULL)
        return (position){job->reals[row], 0.0};
    return position_of(integer_at(job, row), 0.0);
}

/* ---- rotations ------------------------------------------------------------------------------------------------------ */

/* a * b + c * d, normalised; error below 2^-101 * (|a b| + |c d|). */
static inline dd dd_dot(dd a, dd b, dd c, dd d)
{
    dd sum = dd_sum(dd_product(a, b), dd_product(c, d));
    return two_sum(sum.high, sum.low);
}

/* Turns each pair by (sin, cos) = (s, c): the row h positions on. Error grows by 2^-101 * (|sin c| + |cos s|) a turn. */
static void turn(ptrdiff_t m, phasors *row, const double *restrict s_high, const double *restrict s_low,
                 const double *restrict c_high, const double *restrict c_low)
{
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        dd sin_p = {row->sin_high[i], row->sin_low[i]}, cos_p = {row->cos_high[i], row->cos_low[i]};
        dd sin_h = {s_high[i], s_low[i]}, cos_h = {c_high[i], c_low[i]};
        dd s = dd_dot(sin_p, cos_h, cos_p, sin_h);
        dd c = dd_dot(cos_p, cos_h, dd_negative(sin_p), sin_h);
        row->sin_high[i] = s.high;
        row->sin_low[i] = s.low;
        row->cos_high[i] = c.high;
        row->cos_low[i] = c.low;
    }
}

/* Two arrays of m as columns: alternating, else one after the other; without a second one, the first alone. */
static inline void columns_of(ptrdiff_t m, int interleaved, const double *even, const double *odd, double *restrict columns)
{
    if (interleaved) {
        for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
            columns[2 * i] = even[i];
            columns[2 * i + 1] = odd[i];
        }
    } else {
        memcpy(columns, even, (size_t)m * sizeof *even);
        if (odd != NULL)
            memcpy(columns + m, odd, (size_t)m * sizeof *odd);
    }
}

/* Columns of one rotation of a tile: interleaved columns alternate, concatenated ones share it. */
static ptrdiff_t rotation_stride(ptrdiff_t m, int interleaved)
{
    return interleaved ? 2 * m : m;
}

/* The rotations of a tile: for h = 1/2, 3/2, ... the columns' cos high, sin high and, of four parts, cos low, sin low; then
 * the step of POSENC_BLOCK positions, the frequencies' sin high, sin low, cos high, cos low. By the chain h + 1 = h turned
 * by 1. */
static void build_rotations(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, int interleaved, int parts, double *rotations)
{
    const ptrdiff_t stride = rotation_stride(m, interleaved);
    phasors one, h, step;
    direct(waves, k, m, position_of(1, 0.0), 1.0, &one);
    direct(waves, k, m, position_of(0, 0.5), 1.0, &h);
    for (int j = 0; j < POSENC_HALF; j++) {
        const double *sources[4] = {h.cos_high, h.sin_high, h.cos_low, h.sin_low};
        for (int part = 0; part < parts; part++, rotations += stride)
            columns_of(m, interleaved, sources[part], interleaved ? sources[part] : NULL, rotations);
        turn(m, &h, one.sin_high, one.sin_low, one.cos_high, one.cos_low);
    }
    direct(waves, k, m, position_of(POSENC_BLOCK, 0.0), 1.0, &step);
    const double *sources[4] = {step.sin_high, step.sin_low, step.cos_high, step.cos_low};
    for (int part = 0; part < 4; part++)
        memcpy(rotations + part * m, sources[part], (size_t)m * sizeof(double));
}

/* ---- layout --------------------------------------------------------------------------------------------------------- */

static void find_segments(tile *t)
{
    const posenc_job *job = t->job;
    const ptrdiff_t n = job->waves.n, k = t->k, m = t->m;
    ptrdiff_t rest = job->interleaved ? job->columns - 2 * k : job->columns - n - k;
    if (job->interleaved) {
        t->segments[0] = (segment){2 * k, rest < 2 * m ? rest : 2 * m, t->shift, 2 * k};
        t->segment_count = 1;
    } else {
        t->segments[0] = (segment){k, m, t->shift, k};
        t->segments[1] = (segment){n + k, rest < m ? rest : m, t->shift + m, job->second + k};
        t->segment_count = 2;
    }
}

/* Puts a sine's and a cosine's arrays in their columns of a tile. */
static void spread(const tile *t, const double *sines, const double *cosines, double *restrict columns)
{
    const int cos_first = t->job->cos_first;
    columns_of(t->m, t->job->interleaved, cos_first ? cosines : sines, cos_first ? sines : cosines, columns + t->shift);
}

/* The column arrays of a block: first is what stands in the column at the centre, second its derivative. */
static void spread_centre(tile *t)
{
    phasors *c = &t->centre;
    double negative[POSENC_TILE];
    spread(t, c->sin_high, c->cos_high, t->first_high);
    for (ptrdiff_t i = 0; i < t->m; i++)
        negative[i] = -c->sin_high[i];
    spread(t, c->cos_high, negative, t->second_high);
    if (t->job->dtype != POSENC_FLOAT64)
        return;
    spread(t, c->sin_low, c->cos_low, t->first_low);
    for (ptrdiff_t i = 0; i < t->m; i++)
        negative[i] = -c->sin_low[i];
    spread(t, c->cos_low, negative, t->second_low);
}

/* The bounds of a tile's columns at positions up to `largest` in size: `relative` times the amplitude, for sines also times
 * min(1, |w| largest). 0 where the values are exact, |w| largest = 0, and for cosines below `flat`. */
static void set_bounds(const tile *t, double relative, double largest, double flat, double *bound)
{
    double sines[POSENC_TILE], cosines[POSENC_TILE];
    const double *turns = t->job->waves.turns + t->k;
    const double all = relative * fabs(t->job->amplitude), two_pi_up = 6.2832;
    for (ptrdiff_t i = 0; i < t->m; i++) { /* vector loop */
        double angle = fabs(turns[i]) * two_pi_up * largest;
        sines[i] = angle < 1.0 ? (angle > 0.0 ? all * angle : 0.0) : all;
        cosines[i] = angle > flat ? all : 0.0;
    }
    spread(t, sines, cosines, bound);
}

/* Positions below it in size, but 0, are left to the caller: parts of their double-doubles might be subnormal. */
#define SMALLEST_POSITION 0x1p-100

/* For is_tiny: the smallest derivative of a sine at 0 that is not 0, or less. */
static double smallest_slope(const tile *t)
{
    const double *turns = t->job->waves.turns + t->k, two_pi_down = 6.28;
    double smallest = INFINITY;
    for (ptrdiff_t i = 0; i < t->m && t->job->dtype == POSENC_BFLOAT16; i++) {
        const double slope = fabs(turns[i]) * two_pi_down * fabs(t->job->amplitude);
        smallest = slope > 0.0 && slope < smallest ? slope : smallest;
    }
    return smallest;
}

/* Whether values at positions of that size and beyond may be too small for marked_bfloat16. */
static int is_tiny(const tile *t, double size)
{
    return t->job->dtype == POSENC_BFLOAT16 && t->smallest * size < POSENC_SMALLEST_MARKED;
}

/* Angles up to which a cosine times the amplitude certainly rounds to the amplitude, which the dtype holds: 1 - 2^-27 and its
 * error are nearer to 1 than to the middle between 1 and the float32 below. */
static double flat_angle(const posenc_job *job)
{
    const double amplitude = fabs(job->amplitude);
    int exponent, held = 0;
    if (job->dtype == POSENC_FLOAT32)
        held = (double)(float)amplitude == amplitude;
    else if (job->dtype != POSENC_FLOAT64)
        held = frexp(amplitude, &exponent) == 0.5 && 0x1p-14 <= amplitude && amplitude <= 0x1p15;
    return held && isfinite(job->fast_bound) ? 0x1p-13 : 0.0;
}

#endif

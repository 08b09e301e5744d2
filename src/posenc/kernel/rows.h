/* The algorithm, once. Each kernel_<isa>.c includes it and is compiled for its instruction set; the loops marked "vector
 * loop" have neither call nor branch left in them after inlining.
 *
 * Design:
 * a) A row is the pairs (sin p w_k, cos p w_k), k = 0, 1, ...; the row h positions on is each pair turned by h w_k.
 * b) A work item is up to POSENC_CHUNK rows of one tile of frequencies. The centre of its first block is evaluated directly, in
 *    double-double, and steps from block to block by a rotation of POSENC_BLOCK positions. The rows centre +- h of a block
 *    are the centre turned by +- h: first * cos(h w) +- second * sin(h w), column by column, where (first, second) is
 *    (sin, cos) in a sine's column and (cos, -sin) in a cosine's. Both rows share the products.
 * c) Fast: double-doubles for float64, plain doubles otherwise, with a proven bound on their error.
 *    Doubt: value - bound and value + bound round to different numbers.
 *    Accurate: a row with a doubt in it is evaluated again, directly, in double-double, and proves each of its entries; the
 *    ones it cannot prove are settled one by one by the caller, in integer arithmetic.
 * d) Rows too few for a block, and those at positions that are not consecutive, are evaluated directly: points.h.
 */
#ifndef POSENC_ROWS_H
#define POSENC_ROWS_H

#include <stdlib.h>

#include "points.h"
#include "stream.h"

enum {
    WORTH_TURNING = 8,   /* rows that repay a block of their own */
    WORTH_ROTATIONS = 48 /* rows that repay building a tile's rotations for them alone */
};

/* ---- fast and doubt ------------------------------------------------------------------------------------------------- */

/* offset + first * cos_h + second * sin_h: a column of the row h positions from the centre, in plain doubles.
 *
 * Bound: with u = 2^-53, first and second are off by u, the rotation by u; a product rounds once (u), the offset's addition
 * once and the sum once: below u * (4 |first cos| + 3 |second sin| + |value|), and each of the three is at most the
 * amplitude, together with the first two's sum: below 5 u * amplitude < POSENC_DOUBLE_BOUND * amplitude. In a sine's column
 * |first| <= |c w|, |sin| <= |h w|: below 5 u * amplitude * min(1, |w| (|c| + h)). */
static inline double turned(double first, double second, double cos_h, double sin_h, double offset)
{
    return multiply_add(second, sin_h, multiply_add(first, cos_h, offset));
}

/* The same in double-doubles, not normalised.
 *
 * Bound: the centre is off by 2^-92 from its direct evaluation and 2^-101 a step, the rotation by 2^-93 and 2^-101 a turn of
 * its chain, this by 2^-101: below POSENC_DOUBLE_DOUBLE_BOUND * amplitude, for sines * min(1, |w| (|c| + h)). */
static inline dd turned_dd(dd first, dd second, dd cos_h, dd sin_h)
{
    return dd_sum(dd_product(first, cos_h), dd_product(second, sin_h));
}

/* The rows up and down from a block's centre. doubt[0] and doubt[1]: nonzero if an entry of that row may be in doubt.
 *
 * Numbers half-way between two float32 are multiples of 2^28 units of a double's last place: if value - bound and value + bound
 * agree in the bits from there up, none lies between them. That is cheap, and also says no where a float32 lies between them:
 * those rows have their doubts looked at once more. */
static void pair_float32(ptrdiff_t width, const double *restrict first, const double *restrict second,
                         const double *restrict cos_h, const double *restrict sin_h, const double *restrict bound,
                         float *restrict up, float *restrict down, uint64_t doubt[2])
{
    uint64_t up_doubt = 0, down_doubt = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        double up_above = turned(first[i], second[i], cos_h[i], sin_h[i], bound[i]);
        double up_below = turned(first[i], second[i], cos_h[i], sin_h[i], -bound[i]);
        double down_above = turned(first[i], -second[i], cos_h[i], sin_h[i], bound[i]);
        double down_below = turned(first[i], -second[i], cos_h[i], sin_h[i], -bound[i]);
        up[i] = (float)up_above;
        down[i] = (float)down_above;
        up_doubt |= bits64(up_above) ^ bits64(up_below);
        down_doubt |= bits64(down_above) ^ bits64(down_below);
    }
    doubt[0] |= up_doubt >> 28;
    doubt[1] |= down_doubt >> 28;
}

/* Looks once more: an entry is in doubt if value - bound and value + bound round to different float32. */
static void doubts_float32(ptrdiff_t width, const double *restrict first, const double *restrict second,
                           const double *restrict cos_h, const double *restrict sin_h, const double *restrict bound,
                           uint64_t doubt[2])
{
    uint32_t up_doubt = 0, down_doubt = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        float up_above = (float)turned(first[i], second[i], cos_h[i], sin_h[i], bound[i]);
        float up_below = (float)turned(first[i], second[i], cos_h[i], sin_h[i], -bound[i]);
        float down_above = (float)turned(first[i], -second[i], cos_h[i], sin_h[i], bound[i]);
        float down_below = (float)turned(first[i], -second[i], cos_h[i], sin_h[i], -bound[i]);
        up_doubt |= bits32(up_above) ^ bits32(up_below);
        down_doubt |= bits32(down_above) ^ bits32(down_below);
    }
    doubt[0] = up_doubt;
    doubt[1] = down_doubt;
}

/* The same for the dtypes of 16 bits, whose midpoints are multiples of 2^41 and 2^44 units. So few rows are in doubt that they
 * are not looked at once more. */
static void pair_bfloat16(ptrdiff_t width, const double *restrict first, const double *restrict second,
                          const double *restrict cos_h, const double *restrict sin_h, const double *restrict bound,
                          uint16_t *restrict up, uint16_t *restrict down, uint64_t doubt[2])
{
    uint64_t up_doubt = 0, down_doubt = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        double up_above = turned(first[i], second[i], cos_h[i], sin_h[i], bound[i]);
        double up_below = turned(first[i], second[i], cos_h[i], sin_h[i], -bound[i]);
        double down_above = turned(first[i], -second[i], cos_h[i], sin_h[i], bound[i]);
        double down_below = turned(first[i], -second[i], cos_h[i], sin_h[i], -bound[i]);
        up[i] = marked_bfloat16(up_above);
        down[i] = marked_bfloat16(down_above);
        up_doubt |= bits64(up_above) ^ bits64(up_below);
        down_doubt |= bits64(down_above) ^ bits64(down_below);
    }
    doubt[0] |= up_doubt >> 44;
    doubt[1] |= down_doubt >> 44;
}

static void pair_float16(ptrdiff_t width, const double *restrict first, const double *restrict second,
                         const double *restrict cos_h, const double *restrict sin_h, const double *restrict bound,
                         uint16_t *restrict up, uint16_t *restrict down, uint64_t doubt[2])
{
    ALIGNED uint32_t up_marked[COLUMNS], down_marked[COLUMNS];
    uint64_t up_doubt = 0, down_doubt = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        double up_above = turned(first[i], second[i], cos_h[i], sin_h[i], bound[i]);
        double up_below = turned(first[i], second[i], cos_h[i], sin_h[i], -bound[i]);
        double down_above = turned(first[i], -second[i], cos_h[i], sin_h[i], bound[i]);
        double down_below = turned(first[i], -second[i], cos_h[i], sin_h[i], -bound[i]);
        up_marked[i] = marked_float32(up_above);
        down_marked[i] = marked_float32(down_above);
        up_doubt |= bits64(up_above) ^ bits64(up_below);
        down_doubt |= bits64(down_above) ^ bits64(down_below);
    }
    narrow_float16(width, up_marked, up);
    narrow_float16(width, down_marked, down);
    doubt[0] |= up_doubt >> 41;
    doubt[1] |= down_doubt >> 41;
}

typedef struct {
    double value;
    uint64_t doubt;
} proven_float64;

static inline proven_float64 column_float64(dd first, dd second, dd cos_h, dd sin_h, double bound)
{
    dd value = turned_dd(first, second, cos_h, sin_h);
    double above = value.high + (value.low + bound), below = value.high + (value.low - bound);
    return (proven_float64){above, bits64(above) ^ bits64(below)};
}

static void pair_float64(ptrdiff_t width, const double *restrict first_high, const double *restrict first_low,
                         const double *restrict second_high, const double *restrict second_low,
                         const double *restrict cos_high, const double *restrict sin_high, const double *restrict cos_low,
                         const double *restrict sin_low, const double *restrict bound, double *restrict up,
                         double *restrict down, uint64_t doubt[2])
{
    uint64_t up_doubt = 0, down_doubt = 0;
    for (ptrdiff_t i = 0; i < width; i++) { /* vector loop */
        dd first = {first_high[i], first_low[i]}, second = {second_high[i], second_low[i]};
        dd cos_h = {cos_high[i], cos_low[i]}, sin_h = {sin_high[i], sin_low[i]};
        proven_float64 u = column_float64(first, second, cos_h, sin_h, bound[i]);
        proven_float64 d = column_float64(first, dd_negative(second), cos_h, sin_h, bound[i]);
        up[i] = u.value;
        down[i] = d.value;
        up_doubt |= u.doubt;
        down_doubt |= d.doubt;
    }
    doubt[0] |= up_doubt;
    doubt[1] |= down_doubt;
}

/* ---- work items ----------------------------------------------------------------------------------------------------- */

/* Where a segment of a row is made: in the output or, if it is to be streamed or is no row of the table, in a buffer. */
static void *made_at(tile *t, const segment *s, ptrdiff_t row, ptrdiff_t end, int buffer)
{
    return t->job->stream || row >= end ? (void *)t->buffers[buffer] : (void *)place_of(t, s, row);
}

/* Sees to the doubts of a segment just made, and that it is in the output. */
static void finish(tile *t, const segment *s, ptrdiff_t row, ptrdiff_t end, void *made, uint64_t doubt)
{
    if (row >= end)
        return;
    if (doubt)
        accurate(t, s, row, made);
    if (t->job->stream)
        stream_copy(place_of(t, s, row), made, (size_t)(s->width * posenc_size(t->job->dtype)));
}

/* The columns at .. at + width - 1 of the rows up and down by rotation r. */
static void make_pair(const tile *t, const double *r, ptrdiff_t at, ptrdiff_t width, void *up, void *down, uint64_t doubt[2])
{
    const ptrdiff_t stride = rotation_stride(t->m, t->job->interleaved), column = at - t->shift;
    const double *first = t->first_high + at, *second = t->second_high + at, *bound = t->bound + at;
    r += column < stride ? column : column - stride;
    if (t->job->dtype == POSENC_FLOAT32)
        pair_float32(width, first, second, r, r + stride, bound, up, down, doubt);
    else if (t->job->dtype == POSENC_FLOAT16)
        pair_float16(width, first, second, r, r + stride, bound, up, down, doubt);
    else if (t->job->dtype == POSENC_BFLOAT16)
        pair_bfloat16(width, first, second, r, r + stride, bound, up, down, doubt);
    else
        pair_float64(width, first, t->first_low + at, second, t->second_low + at, r, r + stride, r + 2 * stride, r + 3 * stride,
                     bound, up, down, doubt);
}

/* Rows row .. end - 1, at most a block, from the centre between them; an odd one's partner is left in its buffer. */
static void fill_block(tile *t, ptrdiff_t row, ptrdiff_t end)
{
    const posenc_job *job = t->job;
    const ptrdiff_t half = (end - row + 1) / 2, stride = rotation_stride(t->m, job->interleaved), size = posenc_size(job->dtype);
    for (ptrdiff_t j = 0; j < half; j++) {
        const ptrdiff_t up_row = row + half + j, down_row = row + half - 1 - j;
        for (int i = 0; i < t->segment_count; i++) {
            const segment *s = &t->segments[i];
            const ptrdiff_t at = s->place;
            const double *r = t->rotations + posenc_parts(job->dtype) * stride * j;
            void *up = made_at(t, s, up_row, end, 0), *down = made_at(t, s, down_row, end, 1);
            uint64_t doubt[2] = {0, 0};
            /* apart from the columns before a line of the output begins: a store across two lines costs more than its entries */
            const ptrdiff_t to_line = posenc_line_begins(up, size), head = to_line < s->width ? to_line : 0;
            if (head > 0)
                make_pair(t, r, at, head, up, down, doubt);
            make_pair(t, r, at + head, s->width - head, (char *)up + head * size, (char *)down + head * size, doubt);
            if (job->dtype == POSENC_FLOAT32 && (doubt[0] | doubt[1]))
                doubts_float32(s->width, t->first_high + at, t->second_high + at, r, r + stride, t->bound + at, doubt);
            finish(t, s, up_row, end, up, doubt[0]);
            finish(t, s, down_row, end, down, doubt[1]);
        }
    }
}

static int is_one_run(const posenc_job *job)
{
    return job->integers == NULL && job->reals == NULL && job->step == 1;
}

/* The run of rows of consecutive positions that begins with `row`, and its bounds. They cover the partner of an odd last row. */
static void begin_run(tile *t, ptrdiff_t row, ptrdiff_t end)
{
    const posenc_job *job = t->job;
    const int64_t *p = job->integers;
    ptrdiff_t next = row + 1;
    if (p != NULL)
        while (next < end && p[next - 1] < p[next] && (uint64_t)p[next] - (uint64_t)p[next - 1] == 1)
            next++;
    else if (is_one_run(job))
        next = end;
    t->run_end = next;
    t->block_end = -1;
    t->turned = t->rotations != NULL && (p == NULL || next - row >= WORTH_TURNING);
    if (t->turned) {
        const position first = position_at(job, row), last = position_at(job, next - 1);
        const double from = fabs(first.high + first.low), to = fabs(last.high + last.low);
        set_bounds(t, job->fast_bound, (from > to ? from : to) + POSENC_BLOCK, flat_angle(job), t->bound);
    }
}

/* How many rows `make` is to make next. */
static ptrdiff_t block_at(tile *t, ptrdiff_t row, ptrdiff_t end)
{
    if (row >= t->run_end)
        begin_run(t, row, end);
    const ptrdiff_t rest = t->run_end - row;
    return !t->turned ? 1 : rest < POSENC_BLOCK ? rest : POSENC_BLOCK;
}

/* Rows row .. end - 1 by rotation of the centre between them. */
static void turn_block(tile *t, ptrdiff_t row, ptrdiff_t end)
{
    const posenc_job *job = t->job;
    const int64_t first = integer_at(job, row);
    const ptrdiff_t size = end - row;
    if (row == t->block_end && size == POSENC_BLOCK) {
        const double *step = t->rotations + posenc_parts(job->dtype) * POSENC_HALF * rotation_stride(t->m, job->interleaved);
        turn(t->m, &t->centre, step, step + t->m, step + 2 * t->m, step + 3 * t->m);
    } else {
        direct(&job->waves, t->k, t->m, position_of(first, (double)((size + 1) / 2) - 0.5), job->amplitude, &t->centre);
    }
    t->block_end = end;
    spread_centre(t);
    fill_block(t, row, end);
}

static void fill_directly(tile *t, ptrdiff_t row)
{
    const posenc_job *job = t->job;
    const position p = position_at(job, row);
    const double size = fabs(p.high + p.low);
    const int fast = p.low == 0.0 && size >= SMALLEST_POSITION && size * job->waves.largest <= MOST_TURNS && !is_tiny(t, size);
    const int doubt = !fast || point_row(t, p.high, t->sines, t->cosines);
    for (int i = 0; i < t->segment_count; i++) {
        const segment *s = &t->segments[i];
        void *to = made_at(t, s, row, row + 1, 0);
        if (!doubt)
            put_pairs(t, s, t->sines, t->cosines, to);
        finish(t, s, row, row + 1, to, (uint64_t)doubt);
    }
}

/* Makes the rows row .. end - 1, as many as block_at says. */
static void make(tile *t, ptrdiff_t row, ptrdiff_t end)
{
    if (t->turned)
        turn_block(t, row, end);
    else
        fill_directly(t, row);
}

/* The tile of work item `item`, whose rows are made at `out` from row number `out_row` on. */
static void start_tile(tile *t, const posenc_job *job, ptrdiff_t item, char *out, ptrdiff_t out_row, ptrdiff_t row_stride)
{
    const ptrdiff_t n = job->waves.n, k = item % posenc_tiles(n) * POSENC_TILE;
    t->job = job;
    t->k = k;
    t->m = n - k < POSENC_TILE ? n - k : POSENC_TILE;
    t->shift = posenc_shift(out, posenc_size(job->dtype));
    t->smallest = smallest_slope(t);
    t->rotations = NULL;
    t->out = out;
    t->out_row = out_row;
    t->row_stride = row_stride;
    t->run_end = 0;
    t->unsettled = 0;
    find_segments(t);
}

/* Bytes of the rotations that a work item of that many rows builds for itself, 0 if the job has some or they are not worth it. */
static size_t own_rotations_size(const posenc_job *job, ptrdiff_t rows)
{
    if (job->rotations != NULL || !is_one_run(job) || rows < WORTH_ROTATIONS)
        return 0;
    const ptrdiff_t m = job->waves.n < POSENC_TILE ? job->waves.n : POSENC_TILE;
    return (size_t)posenc_rotations_size(m, job->interleaved, posenc_parts(job->dtype)) * sizeof(double) + POSENC_LINE;
}

/* The tile's rotations are the job's or, where there is room for them, built. */
static void find_rotations(tile *t, double *room)
{
    const posenc_job *job = t->job;
    const int parts = posenc_parts(job->dtype);
    if ((job->integers == NULL && !is_one_run(job)) || is_tiny(t, 1.0))
        return;
    if (job->rotations != NULL) {
        t->rotations = job->rotations + posenc_rotations_size(t->k, job->interleaved, parts);
    } else if (room != NULL) {
        build_rotations(&job->waves, t->k, t->m, job->interleaved, parts, room + t->shift);
        t->rotations = room + t->shift;
    }
}

/* Aligned room for a tile and, behind it, `size` bytes: too much for the stack of a thread. */
static void *allocate_tile(tile **t, size_t size, void **behind)
{
    char *memory = malloc(sizeof(tile) + size + POSENC_LINE);
    if (memory != NULL) {
        char *aligned = memory + posenc_line_begins(memory, 1);
        *t = (tile *)(void *)aligned;
        *behind = aligned + sizeof(tile);
    }
    return memory;
}

static void fill_zero_rows(const tile *t, ptrdiff_t row, ptrdiff_t end)
{
    for (; row < end; row++)
        for (int i = 0; i < t->segment_count && !t->job->where[row]; i++)
            memset(place_of(t, &t->segments[i], row), 0, (size_t)(t->segments[i].width * posenc_size(t->job->dtype)));
}

static void fill_zero_column(const posenc_job *job, ptrdiff_t row, ptrdiff_t end)
{
    const size_t size = (size_t)posenc_size(job->dtype);
    for (; row < end; row++)
        memset(job->out + row * job->row_stride + job->columns * (ptrdiff_t)size, 0, size);
}

static int fill(const posenc_job *job, ptrdiff_t item)
{
    const ptrdiff_t first = item / posenc_tiles(job->waves.n) * POSENC_CHUNK, rest = job->length - first;
    const ptrdiff_t end = first + (rest < POSENC_CHUNK ? rest : POSENC_CHUNK);
    const size_t own = own_rotations_size(job, end - first);
    tile *t;
    void *behind;
    void *memory = allocate_tile(&t, own, &behind);
    if (memory == NULL)
        return POSENC_NO_MEMORY;
    start_tile(t, job, item, job->out, 0, job->row_stride);
    find_rotations(t, own > 0 ? behind : NULL);
    for (ptrdiff_t row = first, size; row < end; row += size) {
        size = block_at(t, row, end);
        make(t, row, row + size);
    }
    if (job->stream)
        stream_fence();
    if (job->where != NULL)
        fill_zero_rows(t, first, end);
    if (job->columns < job->dim && t->k + t->m == job->waves.n)
        fill_zero_column(job, first, end);
    const int unsettled = t->unsettled;
    free(memory);
    return unsettled ? POSENC_UNSETTLED : POSENC_DONE;
}

#endif

/* Sums and rotations, fused: a block of rows is made in the cache and applied to all that shares its positions. */
#ifndef POSENC_ADD_H
#define POSENC_ADD_H

#include "rows.h"

enum { WIDEST = COLUMNS + 1 }; /* columns of a tile's part of a row: with the zero column */

/* An element of a sum's axes, as bytes from their beginnings. */
typedef struct {
    ptrdiff_t x, out, where;
} offset;

/* One work item of a sum, and its buffers: a row of x and what becomes of it. */
typedef struct {
    const posenc_sum *sum;
    int part_count;
    segment parts[2]; /* those of the tile, with the zero column */
    const char *rows, *nothing; /* the block's rows; one that leaves what it is added to as it is: -0.0 */
    ptrdiff_t row_stride;
    ALIGNED char gathered[WIDEST * sizeof(double)], result[WIDEST * sizeof(double)];
    ALIGNED float wide[WIDEST];
} addition;

/* ---- elements ------------------------------------------------------------------------------------------------------- */

static inline void sum_float32(ptrdiff_t n, float scale, const float *x, const float *restrict row, float *to)
{
    for (ptrdiff_t i = 0; i < n; i++) /* vector loop */
        to[i] = scale * x[i] + row[i];
}

static inline void sum_float64(ptrdiff_t n, double scale, const double *x, const double *restrict row, double *to)
{
    for (ptrdiff_t i = 0; i < n; i++) /* vector loop */
        to[i] = scale * x[i] + row[i];
}

/* x and the result are the same or apart, which are two loops to a compiler. */
static void sum_wide(ptrdiff_t n, enum posenc_dtype dtype, double scale, const void *x, const void *row, void *to)
{
    if (dtype == POSENC_FLOAT32) {
        float *restrict apart = to;
        if (x == to)
            sum_float32(n, (float)scale, to, row, to);
        else
            sum_float32(n, (float)scale, x, row, apart);
    } else {
        double *restrict apart = to;
        if (x == to)
            sum_float64(n, scale, to, row, to);
        else
            sum_float64(n, scale, x, row, apart);
    }
}

/* Elements `step` bytes apart, into a row or out of it. */
static void gather(ptrdiff_t n, size_t size, const char *from, ptrdiff_t step, char *restrict to)
{
    if (size == 8)
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + 8 * i, from + step * i, 8);
    else if (size == 4)
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + step * i, 4);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + 2 * i, from + step * i, 2);
}

static void scatter(ptrdiff_t n, size_t size, const char *restrict from, char *to, ptrdiff_t step)
{
    if (size == 8)
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + step * i, from + 8 * i, 8);
    else if (size == 4)
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + step * i, from + 4 * i, 4);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            memcpy(to + step * i, from + 2 * i, 2);
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

/* The sum of a part of a row, in the dtype of x. */
static void sum_part(addition *a, ptrdiff_t width, const void *x, const char *row, void *to)
{
    const enum posenc_dtype dtype = a->sum->dtype;
    const double scale = a->sum->scale;
    const ptrdiff_t size = posenc_size(dtype);
    if (size > 2) {
        const ptrdiff_t head = posenc_least(posenc_line_begins(to, size), width);
        if (head > 0)
            sum_wide(head, dtype, scale, x, row, to);
        sum_wide(width - head, dtype, scale, (const char *)x + head * size, row + head * size, (char *)to + head * size);
        return;
    }
    if (dtype == POSENC_FLOAT16)
        widen_float16(width, x, a->wide);
    else
        widen_bfloat16(width, x, a->wide);
    sum_wide(width, POSENC_FLOAT32, scale, a->wide, row, a->wide);
    if (dtype == POSENC_FLOAT16)
        nearest_float16(width, a->wide, to);
    else
        nearest_bfloat16(width, a->wide, to);
}

static void add_row(addition *a, const posenc_job *job, const char *x, const char *row, char *out)
{
    const posenc_sum *sum = a->sum;
    const ptrdiff_t size = posenc_size(sum->dtype);
    for (int i = 0; i < a->part_count; i++) {
        const segment *s = &a->parts[i];
        const char *from = x + s->column * sum->x_step;
        char *to = out + s->column * sum->out_step;
        if (sum->x_step != size) {
            gather(s->width, (size_t)size, from, sum->x_step, a->gathered);
            from = a->gathered;
        }
        const int direct = sum->out_step == size && !sum->stream;
        sum_part(a, s->width, from, row + s->made * posenc_size(job->dtype), direct ? to : a->result);
        if (sum->out_step != size)
            scatter(s->width, (size_t)size, a->result, to, sum->out_step);
        else if (!direct)
            stream_copy(to, a->result, (size_t)(s->width * size));
    }
}

/* ---- rotated rows --------------------------------------------------------------------------------------------------- */

/* Elements of x, `step` bytes apart, as doubles. */
static void load_doubles(ptrdiff_t n, enum posenc_dtype dtype, const char *from, ptrdiff_t step, double *restrict to)
{
    float single;
    uint16_t half;
    if (dtype == POSENC_FLOAT64) {
        gather(n, 8, from, step, (char *)to);
    } else if (dtype == POSENC_FLOAT32) {
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(&single, from + step * i, 4);
            to[i] = single;
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(&half, from + step * i, 2);
            to[i] = dtype == POSENC_FLOAT16 ? wide_float16(half) : from_bits32((uint32_t)half << 16);
        }
    }
}

/* Doubles rounded to the dtype of x. */
static void store_doubles(ptrdiff_t n, enum posenc_dtype dtype, const double *restrict from, char *to, ptrdiff_t step)
{
    if (dtype == POSENC_FLOAT64) {
        scatter(n, 8, (const char *)from, to, step);
    } else if (dtype == POSENC_FLOAT32) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const float single = (float)from[i];
            memcpy(to + step * i, &single, 4);
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            const uint32_t odd = odd_float32(from[i]);
            const uint16_t half = dtype == POSENC_FLOAT16 ? nearest_float16_of(odd) : nearest_bfloat16_of(odd);
            memcpy(to + step * i, &half, 2);
        }
    }
}

/* The tile's pairs of a row of x; `row` holds sines, then cosines. */
static void rotate_row(addition *a, const posenc_job *job, const char *x, const char *row, char *out)
{
    const posenc_sum *sum = a->sum;
    const ptrdiff_t n = job->waves.n, k = a->parts[0].column, m = a->parts[0].width, spread = sum->interleaved ? 2 : 1;
    const ptrdiff_t first = spread * k, second = sum->interleaved ? first + 1 : n + k;
    const ptrdiff_t sine_at = sum->cos_first ? second : first, cosine_at = sum->cos_first ? first : second;
    const double *sines = (const double *)(const void *)row, *cosines = sines + a->parts[1].made;
    double *s = (double *)(void *)a->gathered, *c = (double *)(void *)a->result;
    load_doubles(m, sum->dtype, x + sine_at * sum->x_step, spread * sum->x_step, s);
    load_doubles(m, sum->dtype, x + cosine_at * sum->x_step, spread * sum->x_step, c);
    for (ptrdiff_t i = 0; i < m; i++) { /* vector loop */
        const double sine = s[i] * cosines[i] + c[i] * sines[i], cosine = c[i] * cosines[i] - s[i] * sines[i];
        s[i] = sine;
        c[i] = cosine;
    }
    store_doubles(m, sum->dtype, s, out + sine_at * sum->out_step, spread * sum->out_step);
    store_doubles(m, sum->dtype, c, out + cosine_at * sum->out_step, spread * sum->out_step);
    if (k + m == n && out != x)
        for (ptrdiff_t i = 2 * n; i < sum->width; i++)
            memcpy(out + i * sum->out_step, x + i * sum->x_step, (size_t)posenc_size(sum->dtype));
}

/* ---- blocks --------------------------------------------------------------------------------------------------------- */

static offset offset_at(const posenc_axes *axes, ptrdiff_t index)
{
    offset at = {0, 0, 0};
    for (int i = axes->count - 1; i >= 0; i--) {
        const ptrdiff_t digit = index % axes->size[i];
        index /= axes->size[i];
        at.x += digit * axes->x[i];
        at.out += digit * axes->out[i];
        at.where += digit * axes->where[i];
    }
    return at;
}

/* The distance in memory of neighbours along axes. */
static ptrdiff_t innermost_step(const posenc_axes *axes)
{
    const ptrdiff_t step = axes->count > 0 ? axes->out[axes->count - 1] : PTRDIFF_MAX;
    return step < 0 ? -step : step;
}

/* Applies the block's rows row .. end - 1 to the elements first .. last - 1 of the batch, both in the order of memory. */
static void add_block(addition *a, const posenc_job *job, ptrdiff_t row, ptrdiff_t end, ptrdiff_t first, ptrdiff_t last)
{
    const posenc_sum *sum = a->sum;
    const int rows_inside = innermost_step(&sum->rows) <= innermost_step(&sum->batch);
    offset rows[POSENC_BLOCK], batch[POSENC_BLOCK];
    const ptrdiff_t row_count = end - row;
    for (ptrdiff_t i = 0; i < row_count; i++)
        rows[i] = offset_at(&sum->rows, row + i);
    for (ptrdiff_t begin = first, count; begin < last; begin += count) {
        count = last - begin < POSENC_BLOCK ? last - begin : POSENC_BLOCK;
        for (ptrdiff_t i = 0; i < count; i++)
            batch[i] = offset_at(&sum->batch, begin + i);
        for (ptrdiff_t i = 0; i < row_count * count; i++) {
            const ptrdiff_t r = rows_inside ? i % row_count : i / count, b = rows_inside ? i / row_count : i % count;
            const int here = sum->where == NULL || sum->where[rows[r].where + batch[b].where];
            const char *x = sum->x + rows[r].x + batch[b].x, *made = here ? a->rows + r * a->row_stride : a->nothing;
            char *out = sum->out + rows[r].out + batch[b].out;
            if (sum->use == POSENC_ADD)
                add_row(a, job, x, made, out);
            else
                rotate_row(a, job, x, made, out);
        }
    }
}

/* The tile's rows are made side by side, its segments one after the other, and the zero column behind them. */
static void find_parts(addition *a, tile *t)
{
    const posenc_job *job = t->job;
    ptrdiff_t made = 0;
    a->part_count = t->segment_count;
    for (int i = 0; i < t->segment_count; i++) {
        t->segments[i].made = made;
        made += t->segments[i].width;
        a->parts[i] = t->segments[i];
    }
    if (job->columns < job->dim && t->k + t->m == job->waves.n)
        a->parts[a->part_count - 1].width++;
}

/* Makes every element of `count` rows the value's: +0.0, for the zero column, or -0.0. */
static void set_zeros(char *rows, ptrdiff_t count, enum posenc_dtype dtype, int negative)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        if (dtype == POSENC_FLOAT64)
            ((double *)(void *)rows)[i] = negative ? -0.0 : 0.0;
        else
            ((float *)(void *)rows)[i] = negative ? -0.0f : 0.0f;
    }
}

static int add(const posenc_job *job, const posenc_sum *sum, ptrdiff_t item)
{
    const ptrdiff_t size = posenc_size(job->dtype), tiles = posenc_tiles(job->waves.n);
    const ptrdiff_t chunks = posenc_pieces(job->length, sum->rows_per_item), chunk = item / tiles % chunks;
    const ptrdiff_t first = item / tiles / chunks * sum->batch_per_item, begin = chunk * sum->rows_per_item;
    const ptrdiff_t last = posenc_least(first + sum->batch_per_item, sum->batch_size);
    const ptrdiff_t end = posenc_least(begin + sum->rows_per_item, job->length);
    const ptrdiff_t row_stride = (posenc_pieces(WIDEST * size, POSENC_LINE) + 1) * POSENC_LINE;
    const ptrdiff_t block = posenc_least(end - begin, POSENC_BLOCK);
    const size_t own = own_rotations_size(job, end - begin);
    tile *t;
    void *behind;
    void *memory = allocate_tile(&t, own + sizeof(addition) + POSENC_LINE + (size_t)((block + 1) * row_stride), &behind);
    if (memory == NULL)
        return POSENC_NO_MEMORY;
    addition *a = behind;
    char *rows = (char *)behind + posenc_pieces(sizeof(addition), POSENC_LINE) * POSENC_LINE;
    const ptrdiff_t into_line = sum->dtype == job->dtype ? (ptrdiff_t)((uintptr_t)sum->out % POSENC_LINE) : 0;
    start_tile(t, job, item, rows + into_line, begin, row_stride);
    find_rotations(t, own > 0 ? (double *)(void *)(rows + (block + 1) * row_stride) : NULL);
    a->sum = sum;
    a->rows = t->out;
    a->nothing = rows + block * row_stride;
    a->row_stride = row_stride;
    find_parts(a, t);
    set_zeros(rows, block * row_stride / size, job->dtype, 0);
    set_zeros(rows + block * row_stride, row_stride / size, job->dtype, 1);
    ptrdiff_t row = begin; /* the rows t->out_row .. row - 1 are made, and not applied yet */
    while (t->out_row < end && !t->unsettled) {
        const ptrdiff_t more = row < end ? block_at(t, row, end) : 0;
        if (row < end && row + more - t->out_row <= block) {
            make(t, row, row + more);
            row += more;
        } else {
            add_block(a, job, t->out_row, row, first, last);
            t->out_row = row;
        }
    }
    if (sum->stream)
        stream_fence();
    const int unsettled = t->unsettled;
    free(memory);
    return unsettled ? POSENC_UNSETTLED : POSENC_DONE;
}

#endif

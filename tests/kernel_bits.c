/* The bits that the kernels write: prints a line for each case, its name and a hash of its result.
 *
 * kernel_bits [--threads N]
 *
 * Plain C over kernel.h, without Python and OpenMP, for compilers, sanitizers and processors that the Python tests do not see.
 * Each case is computed by every kernel that runs here, in each of WAYS, by N threads (1; with more, once or where there is
 * something to share). All must agree: if not, a line says which did not, and the exit status is 1. tests/kernel_bits.txt
 * holds the lines, and test_kernel_bits.py computes them with the package. Frequencies come from integers (kernel_bits.h),
 * since libm differs from machine to machine. */
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "kernel_bits.h"

enum { MOST_ROWS = 600, MOST_ACCURATE = 100, MOST_WAVES = 600, MOST_THREADS = 64, BATCH = 3, WIDER = 3, UNTOUCHED = 0xa5 };

#define COUNT(array) ((ptrdiff_t)(sizeof(array) / sizeof *(array)))

/* ---- what is computed ----------------------------------------------------------------------------------------------- */

enum { ALL = 0, NO_ROTATE = 1, WIDE = 2 /* more than one tile: only at some points */ };

typedef struct {
    const char *name;
    const number *first, *ratio;
    ptrdiff_t n, dim, columns;
    int interleaved, cos_first, exact, not_for;
    double amplitude, scale;
} encoding;

static const encoding ENCODINGS[] = {
    {"one", &RADIAN, &PAPER_1_1E4, 1, 1, 1, 1, 0, 0, NO_ROTATE, 1.0, 1.0},
    {"two", &RADIAN, &PAPER_2_1E4, 1, 2, 2, 0, 0, 0, ALL, 1.0, 1.0},
    {"odd", &RADIAN, &PAPER_7_1E4, 4, 7, 7, 1, 0, 0, NO_ROTATE, 1.0, 1.0},
    {"odd-halves", &RADIAN, &PAPER_7_1E4, 4, 7, 7, 0, 1, 0, NO_ROTATE, 1.0, 1.0},
    {"zero", &RADIAN, &PAPER_7_1E4, 3, 7, 6, 1, 0, 0, ALL, 1.0, 1.0},
    {"zero-halves", &RADIAN, &PAPER_67_1E4, 33, 67, 66, 0, 1, 0, ALL, 1.0, 1.0},
    {"cos-first", &RADIAN, &PAPER_128_1E4, 64, 128, 128, 1, 1, 0, ALL, 1.0, 1.0},
    {"halves", &RADIAN, &PAPER_130_1E4, 65, 130, 130, 0, 0, 0, ALL, 1.0, 1.0},
    {"wide", &RADIAN, &PAPER_1030_1E4, 515, 1030, 1030, 1, 0, 0, WIDE, 1.0, 1.0},
    {"wide-zero", &RADIAN, &PAPER_1101_1E4, 550, 1101, 1100, 0, 1, 0, WIDE, 1.0, 1.0},
    {"slow", &RADIAN, &PAPER_16_1E30, 8, 16, 16, 1, 0, 0, ALL, 1.0, 1.0},
    {"turns", &SMALLEST_TURN, &OCTAVE, 9, 18, 18, 1, 0, 1, ALL, 1.0, 1.0},
    {"amplitude", &RADIAN, &PAPER_10_1E4, 5, 10, 10, 0, 0, 0, NO_ROTATE, -0.3, 1.0},
    {"small", &RADIAN, &PAPER_16_1E8, 8, 16, 16, 1, 0, 0, NO_ROTATE, 0x1p-17, 1.0},       /* subnormal float16 */
    {"tiny", &RADIAN, &PAPER_16_1E8, 8, 16, 16, 1, 1, 0, NO_ROTATE, 0x1.8p-127, 1.0},     /* float32, bfloat16 */
    {"faint", &RADIAN, &PAPER_10_1E4, 5, 10, 10, 1, 0, 0, NO_ROTATE, 0x1.8p0, 0x1p-700}, /* a product of the two */
};

enum kind { RUN, INTEGERS, REALS };

typedef struct {
    const char *name;
    enum kind kind;
    int64_t start, step;
    ptrdiff_t length;
    int masked, for_wide; /* 1: to be filled; 2: and summed */
} points;

static const points POINTS[] = {
    {"begin", RUN, 0, 1, 70, 0, 2},
    {"before", RUN, -300, 1, 530, 0, 1},
    {"few", RUN, 1000003, 1, 5, 0, 0},
    {"far", RUN, ((int64_t)1 << 53) - 20, 1, 67, 0, 0},
    {"last", RUN, INT64_MAX - 40, 1, 41, 0, 0},
    {"lowest", RUN, INT64_MIN, 1, 40, 0, 0},
    {"steps", RUN, 50, -7, 33, 0, 0},
    {"leaps", RUN, INT64_MIN, ((int64_t)1 << 59) + 12345, 31, 0, 0},
    {"integers", INTEGERS, 0, 0, 90, 0, 1},
    {"reals", REALS, 0, 0, 40, 0, 1},
    {"masked", RUN, -17, 1, 50, 1, 2},
    {"masked-reals", REALS, 0, 0, 25, 1, 0},
};

static const char *const DTYPES[] = {"float32", "float64", "float16", "bfloat16"};

enum operation { FILL, ADD, ROTATE };
static const char *const OPERATIONS[] = {"fill", "add", "rotate"};

/* How it is computed, which changes no bit. */
typedef struct {
    const char *name;
    int rotations, stream, accurate, in_place, small_items, spread_columns, downward;
    ptrdiff_t offset, padding; /* elements */
} way;

static const way WAYS[] = {
    {"plain", 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"rotations, in place, small items", 1, 0, 0, 1, 1, 0, 0, 0, 0},
    {"rotations, streamed, off line", 1, 1, 0, 0, 0, 0, 0, 1, 3},
    {"accurate, spread columns, rounding mode downward", 0, 0, 1, 0, 1, 1, 1, 3, 1},
};

/* ---- numbers that only look random ---------------------------------------------------------------------------------- */

#define ODD UINT64_C(6364136223846793005)

static uint64_t mixed(ptrdiff_t i)
{
    uint64_t z = (uint64_t)(i + 1) * ODD;
    z ^= z >> 32;
    return z * ODD;
}

static int64_t integer(ptrdiff_t i)
{
    const int64_t size = (int64_t)(mixed(i) >> (1 + i * 7 % 60));
    return i < 40 ? 1000 + i : i % 2 ? -size : size;
}

static double real(ptrdiff_t i)
{
    const double size = ldexp((double)(mixed(i) >> 11), -(int)(i * 5 % 80));
    return i < 2 ? (i == 0 ? 0.0 : -0.0) : i % 2 ? -size : size;
}

static char is_here(ptrdiff_t i)
{
    return i % 3 != 1;
}

/* Element i of x, of a size in [2^-15, 2), or below in float16. */
static void put_x(enum posenc_dtype dtype, ptrdiff_t i, char *to)
{
    const uint64_t bits = mixed(i);
    const uint64_t wide = (bits & UINT64_C(0xbfffffffffffffff)) | UINT64_C(0x3f00000000000000);
    const uint32_t single = ((uint32_t)(bits >> 32) & UINT32_C(0xbfffffff)) | UINT32_C(0x38000000);
    const uint16_t half = (uint16_t)((bits >> 48 & 0xbfff) | (dtype == POSENC_BFLOAT16 ? 0x3800 : 0));
    if (dtype == POSENC_FLOAT64)
        memcpy(to, &wide, 8);
    else if (dtype == POSENC_FLOAT32)
        memcpy(to, &single, 4);
    else
        memcpy(to, &half, 2);
}

/* Changed by every change of one byte. */
static uint64_t hash(const char *bytes, ptrdiff_t count)
{
    uint64_t h = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        h = h * ODD + (unsigned char)bytes[i];
    return h;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static void *allocate(ptrdiff_t bytes)
{
    void *memory = malloc((size_t)bytes);
    if (memory == NULL) {
        fputs("kernel_bits: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* Rows in the midst of memory that nothing but their elements may change. */
typedef struct {
    char *memory, *at;
    ptrdiff_t bytes, rows, width, size, step, stride;
} area;

static area new_area(ptrdiff_t rows, ptrdiff_t width, ptrdiff_t size, const way *how)
{
    area a = {.rows = rows, .width = width, .size = size, .step = how->spread_columns ? 2 * size : size};
    a.stride = width * a.step + how->padding * size;
    a.bytes = rows * a.stride + how->offset * size + 2 * POSENC_LINE;
    a.memory = allocate(a.bytes);
    memset(a.memory, UNTOUCHED, (size_t)a.bytes);
    a.at = a.memory + posenc_line_begins(a.memory, 1) + how->offset * size;
    return a;
}

static char *element(const area *a, ptrdiff_t i)
{
    return a->at + i / a->width * a->stride + i % a->width * a->step;
}

/* Takes the elements out, side by side, and ends the area. False if anything between them has changed. */
static int take(area *a, char *to)
{
    for (ptrdiff_t row = 0; row < a->rows; row++)
        for (ptrdiff_t i = 0; i < a->width; i += a->step == a->size ? a->width : 1) {
            const size_t bytes = (size_t)(a->step == a->size ? a->width * a->size : a->size);
            char *from = a->at + row * a->stride + i * a->step;
            memcpy(to + (row * a->width + i) * a->size, from, bytes);
            memset(from, UNTOUCHED, bytes);
        }
    const int alike = memcmp(a->memory, a->memory + 1, (size_t)a->bytes - 1) == 0; /* each byte is the one before it */
    const int untouched = alike && (unsigned char)a->memory[0] == UNTOUCHED;
    free(a->memory);
    return untouched;
}

/* ---- work ----------------------------------------------------------------------------------------------------------- */

static atomic_int asked;

/* The cases are such that it is never asked. */
static double settle(void *context, ptrdiff_t row, ptrdiff_t column)
{
    (void)context, (void)row, (void)column;
    atomic_fetch_add(&asked, 1);
    return 0.0;
}

typedef struct {
    const posenc_kernel *kernel;
    const posenc_job *job;
    const posenc_sum *sum; /* NULL: the job is to be filled */
    ptrdiff_t first, every, items;
    int mode, end;
} share;

/* Every so many'th work item, under that rounding mode, which must outlive it. */
static void *work(void *argument)
{
    share *s = argument;
    const int before = fegetround();
    fesetround(s->mode);
    for (ptrdiff_t i = s->first; i < s->items; i += s->every)
        s->end |= s->sum != NULL ? posenc_add(s->kernel, s->job, s->sum, i) : posenc_fill(s->kernel, s->job, i);
    s->end |= fegetround() != s->mode;
    fesetround(before);
    return NULL;
}

static int run(const posenc_kernel *kernel, const posenc_job *job, const posenc_sum *sum, int mode, int threads)
{
    share shares[MOST_THREADS];
    pthread_t others[MOST_THREADS];
    const ptrdiff_t items = sum != NULL ? posenc_sum_items(job, sum) : posenc_items(job);
    int end = 0;
    threads = (int)posenc_least(threads, items);
    for (int i = 0; i < threads; i++) {
        shares[i] = (share){kernel, job, sum, i, threads, items, mode, 0};
        if (i > 0 && pthread_create(&others[i], NULL, work, &shares[i]) != 0) {
            fputs("kernel_bits: no threads\n", stderr);
            exit(2);
        }
    }
    work(&shares[0]);
    for (int i = 0; i < threads; i++) {
        if (i > 0)
            pthread_join(others[i], NULL);
        end |= shares[i].end;
    }
    return end;
}

/* ---- cases ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    enum operation operation;
    const encoding *encoding;
    const points *points;
    enum posenc_dtype dtype;
} test_case;

static int is_case(int operation, const encoding *e, const points *p)
{
    if (operation == ROTATE && (e->not_for & NO_ROTATE || p->masked))
        return 0;
    return !(e->not_for & WIDE) || p->for_wide >= (operation == FILL ? 1 : 2);
}

/* Whether there is more than one work item. */
static int is_shared(const test_case *c, const way *how)
{
    return c->encoding->n > POSENC_TILE || c->points->length > POSENC_CHUNK || (c->operation != FILL && how->small_items);
}

static ptrdiff_t width_of(const test_case *c)
{
    return c->encoding->dim + (c->operation == ROTATE ? WIDER : 0);
}

static ptrdiff_t rows_of(const test_case *c)
{
    return c->points->length * (c->operation == FILL ? 1 : BATCH);
}

/* All of a job but where it writes. The arrays are the caller's. */
static posenc_job job_of(const test_case *c, const way *how, double *series, int64_t *integers, double *reals, char *where)
{
    const encoding *e = c->encoding;
    const points *p = c->points;
    posenc_job job = {.dim = e->dim, .columns = e->columns, .interleaved = e->interleaved, .second = e->n,
                      .cos_first = e->cos_first, .amplitude = e->amplitude, .scale = e->scale, .start = p->start,
                      .step = p->step, .length = p->length, .dtype = c->dtype, .stream = how->stream,
                      .accurate_bound = POSENC_DOUBLE_DOUBLE_BOUND, .settle = settle};
    posenc_geometric(e->first->limbs, e->first->exponent, e->ratio->limbs, e->ratio->exponent, e->n, series);
    job.waves = (posenc_waves){e->n, series, 0.0, e->exact};
    for (ptrdiff_t k = 0; k < e->n; k++)
        job.waves.largest = fmax(job.waves.largest, series[k]);
    if (c->operation == ROTATE) {
        job.dim = job.columns = 2 * e->n;
        job.interleaved = job.cos_first = 0;
        job.dtype = POSENC_FLOAT64;
    } else if (c->operation == ADD && c->dtype != POSENC_FLOAT64) {
        job.dtype = POSENC_FLOAT32;
    }
    job.fast_bound = job.dtype == POSENC_FLOAT64 ? POSENC_DOUBLE_DOUBLE_BOUND : POSENC_DOUBLE_BOUND;
    if (how->accurate || e->scale != 1.0)
        job.fast_bound = INFINITY;
    for (ptrdiff_t i = 0; i < p->length; i++) {
        integers[i] = integer(i);
        reals[i] = real(i);
        where[i] = is_here(i);
    }
    job.integers = p->kind == INTEGERS ? integers : NULL;
    job.reals = p->kind == REALS ? reals : NULL;
    job.where = p->masked && c->operation == FILL ? where : NULL;
    return job;
}

/* Rotations for the job's rows, made so that they are at a line where `out` is; to be freed at *memory. */
static const double *rotations_of(const posenc_kernel *kernel, const posenc_job *job, const void *out, void **memory)
{
    const int parts = posenc_parts(job->dtype);
    const ptrdiff_t size = posenc_rotations_size(job->waves.n, job->interleaved, parts) * (ptrdiff_t)sizeof(double);
    *memory = allocate(size + 2 * POSENC_LINE);
    double *rotations = (double *)*memory + posenc_line_begins(*memory, 8) + posenc_shift(out, posenc_size(job->dtype));
    posenc_rotations(kernel, &job->waves, job->interleaved, parts, rotations);
    return rotations;
}

/* x (BATCH, length, width) and the sum with it; positions go along the second axis. */
static posenc_sum sum_of(const test_case *c, const posenc_job *job, const way *how, const area *x, const area *out,
                         const char *where)
{
    const ptrdiff_t length = c->points->length;
    posenc_sum sum = {.use = c->operation == ADD ? POSENC_ADD : POSENC_ROTATE, .dtype = c->dtype, .scale = 0.7,
                      .interleaved = c->encoding->interleaved, .cos_first = c->encoding->cos_first, .width = x->width,
                      .x = x->at, .out = out->at, .where = c->points->masked && c->operation == ADD ? where : NULL,
                      .x_step = x->step, .out_step = out->step,
                      .rows = {1, {length}, {x->stride}, {out->stride}, {1}},
                      .batch = {1, {BATCH}, {length * x->stride}, {length * out->stride}, {length}},
                      .batch_size = BATCH, .stream = how->stream};
    posenc_cut(job, &sum);
    if (how->small_items) {
        sum.rows_per_item = POSENC_BLOCK;
        sum.batch_per_item = 1;
    }
    return sum;
}

/* Computes a case; its elements go into `result`. Returns what went wrong, or NULL. */
static const char *compute(const test_case *c, const posenc_kernel *kernel, const way *how, int threads, char *result)
{
    static double series[3 * MOST_WAVES], reals[MOST_ROWS];
    static int64_t integers[MOST_ROWS];
    static char where[MOST_ROWS], where_all[BATCH * MOST_ROWS];
    const way tight = {.name = "x"};
    const ptrdiff_t rows = rows_of(c), width = width_of(c), size = posenc_size(c->dtype);
    const int mode = how->downward ? FE_DOWNWARD : FE_TONEAREST;
    const int summed = c->operation != FILL, in_place = summed && how->in_place;
    way placed = *how;
    placed.spread_columns = summed && how->spread_columns;
    area out = new_area(rows, width, size, &placed), x = summed && !in_place ? new_area(rows, width, size, &tight) : out;
    posenc_job job = job_of(c, how, series, integers, reals, where);
    posenc_sum sum;
    void *memory = NULL;
    job.out = out.at;
    job.row_stride = out.stride;
    if (how->rotations && c->points->kind != REALS && c->points->step < 2 && c->points->step >= 0)
        job.rotations = rotations_of(kernel, &job, out.at, &memory);
    if (summed) {
        for (ptrdiff_t i = 0; i < rows; i++)
            where_all[i] = is_here(i);
        for (ptrdiff_t i = 0; i < rows * width; i++)
            put_x(c->dtype, i, element(&x, i));
        sum = sum_of(c, &job, how, &x, &out, where_all);
    }
    const int end = run(kernel, &job, summed ? &sum : NULL, mode, threads), untouched = take(&out, result);
    free(memory);
    if (summed && !in_place)
        free(x.memory);
    return end != POSENC_DONE         ? "it failed, or changed the rounding mode"
           : !untouched               ? "it wrote beside its elements"
           : atomic_load(&asked) != 0 ? "it asked for an entry to be settled"
                                      : NULL;
}

/* Computes a case in all ways and prints its line. Returns how many of them went wrong. */
static int check(const test_case *c, int threads)
{
    const ptrdiff_t size = posenc_size(c->dtype), bytes = rows_of(c) * width_of(c) * size;
    char *want = allocate(bytes), *got = allocate(bytes), name[100];
    const posenc_kernel *first = NULL;
    int wrong = 0;
    snprintf(name, sizeof name, "%s %s %s %s", OPERATIONS[c->operation], c->encoding->name, c->points->name, DTYPES[c->dtype]);
    for (int i = 0; i < posenc_kernel_count; i++) {
        for (ptrdiff_t j = 0; j < COUNT(WAYS) && posenc_kernel_runs(i); j++) {
            if (WAYS[j].accurate && c->points->length > MOST_ACCURATE)
                continue;
            if (threads > 1 && first != NULL && !is_shared(c, &WAYS[j]))
                continue;
            const posenc_kernel *kernel = posenc_kernels[i];
            const char *error = compute(c, kernel, &WAYS[j], threads, first == NULL ? want : got);
            ptrdiff_t at = 0;
            if (first == NULL || memcmp(got, want, (size_t)bytes) == 0)
                at = bytes;
            while (at < bytes && got[at] == want[at])
                at++;
            if (error != NULL) {
                printf("%s: kernel %s, %s: %s\n", name, kernel->name, WAYS[j].name, error);
                wrong++;
            } else if (at < bytes) {
                printf("%s: kernel %s, %s: row %td column %td is not that of kernel %s, %s\n", name, kernel->name, WAYS[j].name,
                       at / size / width_of(c), at / size % width_of(c), first->name, WAYS[0].name);
                wrong++;
            }
            first = first == NULL ? kernel : first;
        }
    }
    printf("%s %016" PRIx64 "\n", name, hash(want, bytes));
    free(want);
    free(got);
    return wrong;
}

int main(int count, char **arguments)
{
    int wrong = 0;
    const long threads = count == 3 && strcmp(arguments[1], "--threads") == 0 ? strtol(arguments[2], NULL, 10) : count == 1;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: %s [--threads N], N at most %d\n", arguments[0], MOST_THREADS);
        return 2;
    }
    for (int i = 0; i < posenc_kernel_count; i++)
        fprintf(stderr, "kernel %s: %s\n", posenc_kernels[i]->name, posenc_kernel_runs(i) ? "runs" : "skipped, not for here");
    for (int operation = FILL; operation <= ROTATE; operation++)
        for (ptrdiff_t e = 0; e < COUNT(ENCODINGS); e++)
            for (ptrdiff_t p = 0; p < COUNT(POINTS); p++)
                for (int dtype = POSENC_FLOAT32; dtype <= POSENC_BFLOAT16; dtype++) {
                    const test_case c = {(enum operation)operation, &ENCODINGS[e], &POINTS[p], (enum posenc_dtype)dtype};
                    if (is_case(operation, c.encoding, c.points))
                        wrong += check(&c, (int)threads);
                }
    return wrong > 0;
}

/* The contract between the gate (_core.pyx) and the kernels: plain C, no Python.
 *
 * A kernel is this algorithm compiled for one instruction set (kernel_<isa>.c), a constant of type posenc_kernel. All
 * kernels write the same bits: each entry is the correctly rounded value, so that nothing is left for them to differ in.
 */
#ifndef POSENC_KERNEL_H
#define POSENC_KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    POSENC_TILE = 512,   /* frequencies of one work item: its arrays stay in the L1 cache, its rotations in L2 */
    POSENC_HALF = 16,    /* rotations of a block: rows centre - h and centre + h, h = 1/2, 3/2, ... */
    POSENC_BLOCK = 2 * POSENC_HALF,
    POSENC_CHUNK = 512   /* rows of one work item */
};

enum posenc_dtype { POSENC_FLOAT32, POSENC_FLOAT64, POSENC_FLOAT16, POSENC_BFLOAT16 };

/* n frequencies in turns per position (w / 2 pi), each the unevaluated sum of turns[k] + turns[n + k] + turns[2 n + k]. */
typedef struct {
    ptrdiff_t n;
    const double *turns;
    double largest; /* size of the turns */
    int exact;      /* each is turns[k], without an error: sines and cosines may be 0 */
} posenc_waves;

/* Rows to be made. All sizes are checked by the caller: start + length - 1 is an int64, |position * w| <= 2^64,
 * every w is 0 or at least 2^-200, out has length rows of dim elements, row_stride bytes apart. */
typedef struct {
    posenc_waves waves;
    ptrdiff_t dim;             /* columns of a row */
    ptrdiff_t columns;         /* of these, the ones that carry a sine or cosine: dim, or dim - 1 and a zero column */
    int interleaved;           /* s0 c0 s1 c1 ..., else s0 s1 ... c0 c1 ... */
    ptrdiff_t second;          /* then the column of c0: as many as frequencies, or where another array begins */
    int cos_first;             /* the cosine stands where the sine would */
    double amplitude;          /* times scale, a power of two that is 1 unless the amplitude is extreme */
    double scale;
    int64_t start, step;       /* rows are at positions start, start + step, ... */
    const int64_t *integers;   /* or at these, if not NULL */
    const double *reals;       /* or at these; at most one of the two is not NULL */
    ptrdiff_t length;
    const char *where;         /* booleans: rows that are not zeros, NULL for all */
    enum posenc_dtype dtype;
    char *out;
    ptrdiff_t row_stride;
    int stream;                /* write past the caches */
    const double *rotations;   /* of all tiles, or NULL */
    double fast_bound;         /* see below; a wider one sends more rows to the accurate path, or all: infinity */
    double accurate_bound;     /* a wider one sends more entries to `settle` */
    /* The last word on an entry that the accurate path could not prove; NaN if that fails. Called from any thread. */
    double (*settle)(void *context, ptrdiff_t row, ptrdiff_t column);
    void *context;
} posenc_job;

enum { POSENC_MOST_AXES = 64 };

/* Axes, the outermost first; steps in bytes. */
typedef struct {
    int count;
    ptrdiff_t size[POSENC_MOST_AXES], x[POSENC_MOST_AXES], out[POSENC_MOST_AXES], where[POSENC_MOST_AXES];
} posenc_axes;

enum posenc_use { POSENC_ADD, POSENC_ROTATE };

/* What is done to x with the rows of a job.
 *
 * POSENC_ADD: out = scale * x + rows, each operation rounded to the job's dtype, float64 or float32, and the sum of 16 bits
 * once more.
 * POSENC_ROTATE: each pair (s, c) of x becomes (s cos + c sin, c cos - s sin), operations in float64 and the results rounded to
 * their dtype; rows are concatenated and of float64. Columns past the pairs are copied.
 *
 * Axes have no element twice in out; x and out are the same memory or apart. */
typedef struct {
    enum posenc_use use;
    enum posenc_dtype dtype; /* of x and out */
    double scale;            /* POSENC_ADD */
    int interleaved, cos_first; /* POSENC_ROTATE: where pairs stand in x */
    ptrdiff_t width;         /* columns of x */
    const char *x;
    char *out;
    const char *where;       /* booleans: the rows that are added, NULL for all */
    ptrdiff_t x_step, out_step; /* from column to column */
    posenc_axes rows, batch; /* along which positions go, in the job's order, and which share them */
    ptrdiff_t batch_size;
    ptrdiff_t rows_per_item, batch_per_item;
    int stream;
} posenc_sum;

/* A part of each row of a grid, in bytes: its entries depend on the index along one axis alone. Axis -1: zeros. */
typedef struct {
    int axis;
    ptrdiff_t begin, size;
} posenc_piece;

enum { POSENC_MOST_PIECES = 2 * POSENC_MOST_AXES };

/* Rows at all points of a grid, `size[a]` of them along axis a, `step[a]` bytes apart. A piece's entries are there already
 * where the indices along all other axes are 0. */
typedef struct {
    char *out;
    int axes;
    ptrdiff_t size[POSENC_MOST_AXES], step[POSENC_MOST_AXES];
    int pieces;
    posenc_piece piece[POSENC_MOST_PIECES];
    int stream;
} posenc_grid;

enum { POSENC_DONE, POSENC_NO_MEMORY, POSENC_UNSETTLED }; /* how a work item ends */

/* Largest errors, relative to amplitude * min(1, |w| * largest |position|) for sines and to amplitude for cosines. The proofs
 * stand above the functions that claim them, in rows.h and points.h. */
#define POSENC_DOUBLE_BOUND 0x1p-50        /* of rows in doubles, the fast path of all but float64 */
#define POSENC_DOUBLE_DOUBLE_BOUND 0x1p-90 /* of rows in double-doubles: the fast path of float64 and the accurate path */

typedef struct {
    const char *name;
    /* Writes the rotations of one tile, frequencies k .. k + m - 1: posenc_rotations_size(m, interleaved, parts) doubles. */
    void (*rotations)(const posenc_waves *waves, ptrdiff_t k, ptrdiff_t m, int interleaved, int parts, double *rotations);
    /* Writes work item `item` of posenc_items(job). */
    int (*fill)(const posenc_job *job, ptrdiff_t item);
    /* Writes work item `item` of posenc_sum_items(job, sum). What is not settled is not added, the rest of the item neither. */
    int (*add)(const posenc_job *job, const posenc_sum *sum, ptrdiff_t item);
} posenc_kernel;

static inline ptrdiff_t posenc_least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/* Pieces of that size that n consists of, the last one perhaps smaller. */
static inline ptrdiff_t posenc_pieces(ptrdiff_t n, ptrdiff_t size)
{
    return n / size + (n % size != 0);
}

/* Bytes of an element. */
static inline ptrdiff_t posenc_size(enum posenc_dtype dtype)
{
    return dtype == POSENC_FLOAT64 ? 8 : dtype == POSENC_FLOAT32 ? 4 : 2;
}

/* At least one: a row without frequencies still has its zero column. */
static inline ptrdiff_t posenc_tiles(ptrdiff_t n)
{
    return n > 0 ? posenc_pieces(n, POSENC_TILE) : 1;
}

static inline ptrdiff_t posenc_items(const posenc_job *job)
{
    return posenc_tiles(job->waves.n) * posenc_pieces(job->length, POSENC_CHUNK);
}

static inline ptrdiff_t posenc_sum_items(const posenc_job *job, const posenc_sum *sum)
{
    return posenc_tiles(job->waves.n) * posenc_pieces(job->length, sum->rows_per_item) *
           posenc_pieces(sum->batch_size, sum->batch_per_item);
}

/* Cuts a sum into work items, by its shape alone: as many rows as give an item 2 MiB of output and, if a block gives it much
 * more, a part of the batch, for which the block is then made again. */
static inline void posenc_cut(const posenc_job *job, posenc_sum *sum)
{
    const ptrdiff_t item = 2 << 20, largest = 8 * item;
    const ptrdiff_t width = posenc_least(job->dim, 2 * POSENC_TILE) * posenc_size(sum->dtype);
    const ptrdiff_t rows = item / width / sum->batch_size / POSENC_BLOCK * POSENC_BLOCK;
    sum->rows_per_item = rows < POSENC_BLOCK ? POSENC_BLOCK : posenc_least(rows, POSENC_CHUNK);
    const ptrdiff_t block = width * posenc_least(job->length, sum->rows_per_item);
    sum->batch_per_item = sum->batch_size <= largest / block ? sum->batch_size : item / block > 1 ? item / block : 1;
}

/* What is kept of a rotation: cos and sin as double-doubles for float64, as doubles otherwise. */
static inline int posenc_parts(enum posenc_dtype dtype)
{
    return dtype == POSENC_FLOAT64 ? 4 : 2;
}

enum { POSENC_LINE = 64 }; /* bytes of a cache line */

/* Elements before the first that begins a line. */
static inline ptrdiff_t posenc_line_begins(const void *to, ptrdiff_t size)
{
    return (ptrdiff_t)((POSENC_LINE - (uintptr_t)to % POSENC_LINE) % POSENC_LINE) / size;
}

/* How many doubles past a line an array of doubles begins if it is to be at a line where `out` is, element for element. */
static inline ptrdiff_t posenc_shift(const void *out, ptrdiff_t size)
{
    const ptrdiff_t line = POSENC_LINE / (ptrdiff_t)sizeof(double);
    return (line - posenc_line_begins(out, size) % line) % line;
}

/* Doubles in the rotations of m frequencies. */
static inline ptrdiff_t posenc_rotations_size(ptrdiff_t m, int interleaved, int parts)
{
    return m * (parts * POSENC_HALF * (interleaved ? 2 : 1) + 4);
}

/* The compiled kernels, slowest first, and whether this machine runs number i. */
extern const posenc_kernel *const posenc_kernels[];
extern const int posenc_kernel_count;
int posenc_kernel_runs(int i);

/* The default floating-point environment (round to nearest, subnormals kept) for this thread, until the caller's, which is
 * returned, is given back. Between the two, results are the same whatever the caller's is. */
#if defined(__x86_64__) || defined(_M_X64)
typedef unsigned posenc_environment;
#elif defined(__aarch64__) && !defined(_MSC_VER)
typedef uint64_t posenc_environment; /* the control register; the status register's flags are sticky and stay */
#else
#include <fenv.h>
typedef fenv_t posenc_environment;
#endif
posenc_environment posenc_enter_default(void);
void posenc_leave_default(posenc_environment callers);

/* The functions of a kernel in the default floating-point environment. */
int posenc_fill(const posenc_kernel *kernel, const posenc_job *job, ptrdiff_t item);
int posenc_add(const posenc_kernel *kernel, const posenc_job *job, const posenc_sum *sum, ptrdiff_t item);
void posenc_rotations(const posenc_kernel *kernel, const posenc_waves *waves, int interleaved, int parts, double *rotations);

/* first * ratio^k for k < n, each as three doubles (series[k], series[n + k], series[2 n + k]) that hold the leading 159
 * bits. A number is a mantissa in [2^255, 2^256), eight 32-bit limbs with the least significant first, times
 * 2^(exponent - 256). Relative error (k + 2) * 2^-254 + 2^-158. */
void posenc_geometric(const uint32_t first[8], int first_exponent, const uint32_t ratio[8], int ratio_exponent, ptrdiff_t n,
                      double *series);

/* Copies the pieces of the rows begin .. end - 1 of a grid, counted with the last axis fastest, from where they are already. */
void posenc_spread(const posenc_grid *grid, ptrdiff_t begin, ptrdiff_t end);

/* How many threads, this one and up to wanted - 1 others, can be there at once, as far as this thread has found out: a limit on
 * memory or processes may forbid them, and an OpenMP runtime that cannot make its threads ends the process. */
int posenc_threads_possible(int wanted);

/* Whether this process is a forked child. OpenMP's threads do not survive a fork. */
void posenc_watch_forks(void);
int posenc_is_forked(void);

#endif

/* What the kernel computes before it rounds, and the caller's floating-point environment: for tests, through ctypes. */
#include "rows.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

/* The fast path's values for `blocks` full blocks from position `start`, one row of 2 n columns after the other, interleaved.
 * float32: [below, above] in doubles. float64: high, low and bound of the double-doubles. */
EXPORT int driver_blocks(ptrdiff_t n, const double *turns, double amplitude, int64_t start, ptrdiff_t blocks, double *below,
                         double *above, double *high, double *low, double *bound)
{
    static tile t;
    const posenc_waves waves = {n, turns, 0.0, 0};
    posenc_job job = {.waves = waves, .dim = 2 * n, .columns = 2 * n, .interleaved = 1, .second = n, .amplitude = amplitude, .scale = 1.0,
                      .start = start, .step = 1, .length = blocks * POSENC_BLOCK, .dtype = POSENC_FLOAT64};
    const ptrdiff_t width = 2 * n;
    double *rotations = malloc((size_t)posenc_rotations_size(n, 1, 4) * sizeof(double)), bound_double[COLUMNS + SPARE];
    if (rotations == NULL || n > POSENC_TILE)
        return -1;
    build_rotations(&waves, 0, n, 1, 4, rotations);
    start_tile(&t, &job, 0, NULL, 0, 0);
    t.rotations = rotations;
    const double *step = rotations + 4 * POSENC_HALF * width;
    const double from = fabs((double)start), to = fabs((double)(start + job.length - 1));
    const double largest = (from > to ? from : to) + POSENC_BLOCK;
    set_bounds(&t, POSENC_DOUBLE_DOUBLE_BOUND, largest, 0.0, t.bound);
    set_bounds(&t, POSENC_DOUBLE_BOUND, largest, 0.0, bound_double);
    for (ptrdiff_t block = 0; block < blocks; block++) {
        if (block == 0)
            direct(&waves, 0, n, position_of(start, POSENC_HALF - 0.5), amplitude, &t.centre);
        else
            turn(n, &t.centre, step, step + n, step + 2 * n, step + 3 * n);
        spread_centre(&t);
        for (ptrdiff_t row = 0; row < POSENC_BLOCK; row++) {
            const int up = row >= POSENC_HALF;
            const double *r = rotations + 4 * width * (up ? row - POSENC_HALF : POSENC_HALF - 1 - row), sign = up ? 1.0 : -1.0;
            for (ptrdiff_t i = 0; i < width; i++) {
                const ptrdiff_t at = (block * POSENC_BLOCK + row) * width + i;
                const double first = t.first_high[i], second = sign * t.second_high[i];
                above[at] = turned(first, second, r[i], r[width + i], bound_double[i]);
                below[at] = turned(first, second, r[i], r[width + i], -bound_double[i]);
                dd value = turned_dd((dd){first, t.first_low[i]}, (dd){second, sign * t.second_low[i]},
                                     (dd){r[i], r[2 * width + i]}, (dd){r[width + i], r[3 * width + i]});
                value = two_sum(value.high, value.low);
                high[at] = value.high;
                low[at] = value.low;
                bound[at] = t.bound[i];
            }
        }
    }
    free(rotations);
    return 0;
}

/* The accurate path's sines and cosines at one position; each array holds n <= POSENC_TILE. */
EXPORT void driver_direct(ptrdiff_t n, const double *turns, int64_t p, double *sin_high, double *sin_low, double *cos_high,
                          double *cos_low)
{
    const posenc_waves waves = {n, turns, 0.0, 0};
    phasors row;
    direct(&waves, 0, n, position_of(p, 0.0), 1.0, &row);
    memcpy(sin_high, row.sin_high, (size_t)n * sizeof(double));
    memcpy(sin_low, row.sin_low, (size_t)n * sizeof(double));
    memcpy(cos_high, row.cos_high, (size_t)n * sizeof(double));
    memcpy(cos_low, row.cos_low, (size_t)n * sizeof(double));
}

/* Sets this thread's floating-point control word and returns what it was. rounding: 0 nearest, 1 down, 2 up, 3 to zero. */
EXPORT uint64_t driver_control(uint64_t control)
{
#if defined(__x86_64__) || defined(_M_X64)
    uint64_t before = _mm_getcsr();
    _mm_setcsr((unsigned)control);
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    uint64_t before = control;
#endif
    return before;
}

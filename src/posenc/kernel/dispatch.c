/* What the kernels have in common, compiled for the baseline: which of them runs here, sizes, the floating-point environment. */
#include "kernel.h"

#if defined(__x86_64__) || defined(_M_X64)
#define POSENC_X86 1
#include <immintrin.h>
#ifdef _MSC_VER
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

#ifndef _WIN32
#include <pthread.h>
#endif

extern const posenc_kernel posenc_kernel_baseline;
#ifdef POSENC_X86
extern const posenc_kernel posenc_kernel_avx2;
#ifndef __APPLE__
extern const posenc_kernel posenc_kernel_avx512;
#endif
#endif

const posenc_kernel *const posenc_kernels[] = {
    &posenc_kernel_baseline,
#ifdef POSENC_X86
    &posenc_kernel_avx2,
#ifndef __APPLE__ /* setup.py says why */
    &posenc_kernel_avx512,
#endif
#endif
};
const int posenc_kernel_count = (int)(sizeof posenc_kernels / sizeof *posenc_kernels);

#ifdef POSENC_X86
static void cpuid(int leaf, unsigned registers[4])
{
#ifdef _MSC_VER
    __cpuidex((int *)registers, leaf, 0);
#else
    __cpuid_count(leaf, 0, registers[0], registers[1], registers[2], registers[3]);
#endif
}

/* The register states that the operating system saves (XCR0); 0 where it does not say. */
static unsigned saved_states(unsigned ecx)
{
    if (!(ecx >> 27 & 1)) /* OSXSAVE */
        return 0;
#ifdef _MSC_VER
    return (unsigned)_xgetbv(0);
#else
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}
#endif

int posenc_kernel_runs(int i)
{
#ifdef POSENC_X86
    unsigned one[4], seven[4] = {0, 0, 0, 0}, zero[4];
    cpuid(0, zero);
    cpuid(1, one);
    if (zero[0] >= 7)
        cpuid(7, seven);
    const unsigned saved = saved_states(one[2]), avx_states = 0x6, avx512_states = 0xe6;
    const int fma = one[2] >> 12 & 1, f16c = one[2] >> 29 & 1, avx2 = seven[1] >> 5 & 1;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    const int has_avx2 = fma && f16c && avx2 && (saved & avx_states) == avx_states;
    if (i == 1)
        return has_avx2;
    if (i == 2)
        return has_avx2 && (seven[1] & avx512) == avx512 && (saved & avx512_states) == avx512_states;
#endif
    return i == 0;
}

/* ---- floating-point environment ------------------------------------------------------------------------------------- */

posenc_environment posenc_enter_default(void)
{
    posenc_environment callers;
#ifdef POSENC_X86
    callers = _mm_getcsr();
    _mm_setcsr(0x1f80); /* all exceptions masked, to nearest, no flushing */
#elif defined(__aarch64__) && !defined(_MSC_VER)
    const uint64_t plain = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(callers));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
#else
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
#endif
    return callers;
}

void posenc_leave_default(posenc_environment callers)
{
#ifdef POSENC_X86
    _mm_setcsr(callers);
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ volatile("msr fpcr, %0" : : "r"(callers));
#else
    fesetenv(&callers);
#endif
}

int posenc_fill(const posenc_kernel *kernel, const posenc_job *job, ptrdiff_t item)
{
    const posenc_environment callers = posenc_enter_default();
    const int end = kernel->fill(job, item);
    posenc_leave_default(callers);
    return end;
}

int posenc_add(const posenc_kernel *kernel, const posenc_job *job, const posenc_sum *sum, ptrdiff_t item)
{
    const posenc_environment callers = posenc_enter_default();
    const int end = kernel->add(job, sum, item);
    posenc_leave_default(callers);
    return end;
}

void posenc_rotations(const posenc_kernel *kernel, const posenc_waves *waves, int interleaved, int parts, double *rotations)
{
    const posenc_environment callers = posenc_enter_default();
    for (ptrdiff_t k = 0; k < waves->n; k += POSENC_TILE) {
        const ptrdiff_t m = waves->n - k < POSENC_TILE ? waves->n - k : POSENC_TILE;
        kernel->rotations(waves, k, m, interleaved, parts, rotations + posenc_rotations_size(k, interleaved, parts));
    }
    posenc_leave_default(callers);
}

/* ---- threads -------------------------------------------------------------------------------------------------------- */

#ifdef _WIN32
int posenc_threads_possible(int wanted)
{
    return wanted;
}
#else
static void *wait_at(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int posenc_threads_possible(int wanted)
{
    enum { MOST = 256 };
    static _Thread_local int found = 1;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t others[MOST];
    int count = 0;
    wanted = wanted < MOST ? wanted : MOST;
    if (wanted <= found)
        return wanted;
    pthread_mutex_lock(&gate);
    while (count < wanted - 1 && pthread_create(&others[count], NULL, wait_at, &gate) == 0)
        count++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++)
        pthread_join(others[i], NULL);
    if (count == wanted - 1)
        found = wanted;
    return count + 1;
}
#endif

/* ---- fork ----------------------------------------------------------------------------------------------------------- */

static volatile int forked = 0;

int posenc_is_forked(void)
{
    return forked;
}

#ifdef _WIN32
void posenc_watch_forks(void)
{
}
#else
static void note_fork(void)
{
    forked = 1;
}

void posenc_watch_forks(void)
{
    static int watching = 0;
    if (!watching)
        watching = pthread_atfork(NULL, NULL, note_fork) == 0;
}
#endif

/* Writing past the caches what they are too small to keep. */
#ifndef POSENC_STREAM_H
#define POSENC_STREAM_H

#include <string.h>

#include "kernel.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define POSENC_STREAMS 1
#else
#define POSENC_STREAMS 0
#endif

/* Copies past the caches, but for the parts of a line at either end. */
static inline void stream_copy(char *to, const char *from, size_t size)
{
#if POSENC_STREAMS
    size_t head = (size_t)posenc_line_begins(to, 1);
    if (head > size)
        head = size;
    memcpy(to, from, head);
    to += head, from += head, size -= head;
    for (; size >= POSENC_LINE; size -= POSENC_LINE, to += POSENC_LINE, from += POSENC_LINE)
        for (int i = 0; i < POSENC_LINE; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
#endif
    memcpy(to, from, size);
}

/* What was streamed is seen by other threads from here on. */
static inline void stream_fence(void)
{
#if POSENC_STREAMS
    _mm_sfence();
#endif
}

#endif

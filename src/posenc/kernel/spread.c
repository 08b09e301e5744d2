/* Grids: what depends on one axis alone is made once and copied along the others. */
#include "stream.h"

void posenc_spread(const posenc_grid *grid, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t index[POSENC_MOST_AXES], rest = begin;
    for (int a = grid->axes - 1; a >= 0; a--) {
        index[a] = rest % grid->size[a];
        rest /= grid->size[a];
    }
    for (ptrdiff_t row = begin; row < end; row++) {
        char *to = grid->out;
        for (int a = 0; a < grid->axes; a++)
            to += index[a] * grid->step[a];
        for (int i = 0; i < grid->pieces; i++) {
            const posenc_piece *piece = &grid->piece[i];
            const char *from = piece->axis < 0 ? NULL : grid->out + index[piece->axis] * grid->step[piece->axis];
            if (from == NULL)
                memset(to + piece->begin, 0, (size_t)piece->size);
            else if (from != to && grid->stream)
                stream_copy(to + piece->begin, from + piece->begin, (size_t)piece->size);
            else if (from != to)
                memcpy(to + piece->begin, from + piece->begin, (size_t)piece->size);
        }
        for (int a = grid->axes - 1; a >= 0 && ++index[a] == grid->size[a]; a--)
            index[a] = 0;
    }
    if (grid->stream)
        stream_fence();
}

#include "add.h"

extern const posenc_kernel posenc_kernel_avx2;
const posenc_kernel posenc_kernel_avx2 = {"avx2", build_rotations, fill, add};

#include "add.h"

extern const posenc_kernel posenc_kernel_avx512;
const posenc_kernel posenc_kernel_avx512 = {"avx512", build_rotations, fill, add};

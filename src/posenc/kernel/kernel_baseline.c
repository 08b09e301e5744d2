#include "add.h"

extern const posenc_kernel posenc_kernel_baseline;
#if defined(__aarch64__) || defined(_M_ARM64)
const posenc_kernel posenc_kernel_baseline = {"neon", build_rotations, fill, add};
#else
const posenc_kernel posenc_kernel_baseline = {"baseline", build_rotations, fill, add};
#endif

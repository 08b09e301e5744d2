/* Geometric series in 256-bit floating point: the frequencies of every closed-form rule. */
#include <math.h>

#include "kernel.h"

enum { LIMBS = 8 };

/* value * factor for mantissas in [2^255, 2^256): the leading 256 bits, truncated. Returns 1 if the product had to be moved up
 * a bit, which lowers its exponent by one. */
static int multiply(const uint32_t value[LIMBS], const uint32_t factor[LIMBS], uint32_t product[LIMBS])
{
    uint32_t full[2 * LIMBS] = {0};
    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < LIMBS; j++) {
            carry += (uint64_t)value[i] * factor[j] + full[i + j];
            full[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        full[i + LIMBS] = (uint32_t)carry;
    }
    const int shift = !(full[2 * LIMBS - 1] >> 31);
    for (int i = 0; i < LIMBS; i++)
        product[i] = shift ? full[LIMBS + i] << 1 | full[LIMBS + i - 1] >> 31 : full[LIMBS + i];
    return shift;
}

/* Bits from .. from + 52 of a mantissa, counted from its leading one, as an integer. */
static uint64_t take_bits(const uint32_t mantissa[LIMBS], int from)
{
    const uint32_t *limb = mantissa + LIMBS - 1 - from / 32;
    const uint64_t two = (uint64_t)limb[0] << 32 | limb[-1], next = limb[-2];
    const int shift = from % 32;
    return (two << shift | next >> (32 - shift)) >> 11;
}

void posenc_geometric(const uint32_t first[8], int first_exponent, const uint32_t ratio[8], int ratio_exponent, ptrdiff_t n,
                      double *series)
{
    uint32_t value[LIMBS], next[LIMBS];
    long exponent = first_exponent;
    for (int i = 0; i < LIMBS; i++)
        value[i] = first[i];
    for (ptrdiff_t k = 0; k < n; k++) {
        for (int part = 0; part < 3; part++)
            series[part * n + k] = ldexp((double)take_bits(value, 53 * part), (int)exponent - 53 * (part + 1));
        exponent += ratio_exponent - multiply(value, ratio, next);
        for (int i = 0; i < LIMBS; i++)
            value[i] = next[i];
        if (exponent < -2000 || exponent > 2000) /* beyond every double: the caller sees 0 or inf */
            exponent = exponent < 0 ? -2000 : 2000;
    }
}

// The addition of a bias to the rows of a product, for products whose algorithm does not add it.
//
//	add_bias_T   c [rows width] in rows of `stride` elements of T, bias [width]: c[i][j] += bias[j], rounded to T
//
// with T f32 or bf16. Launch: grid (rows, 1, 1), block (256, 1, 1), no dynamic shared memory.
#include "device.h"

namespace bias {

template <class A>
__device__ void add(A* c, const float* bias, int width, int stride) {
    c += (long long)blockIdx.x * stride;
    int step = (int)blockDim.x;
    if (width % 4 == 0 && stride % 4 == 0 && (unsigned long long)c % (4 * sizeof(A)) == 0 &&
        (unsigned long long)bias % (4 * sizeof(float)) == 0) {
        for (int j = 4 * (int)threadIdx.x; j < width; j += 4 * step) {
            f4 x = load4(c + j), b = load4(bias + j);
            store4(c + j, f4{x.x + b.x, x.y + b.y, x.z + b.z, x.w + b.w});
        }
        return;
    }
    for (int j = (int)threadIdx.x; j < width; j += step)
        c[j] = from_float<A>(to_float(c[j]) + bias[j]);
}

} // namespace bias

#define ADD_BIAS(suffix, A)                                                                                          \
    KERNEL(add_bias_##suffix, A* c, const float* bias, int width, int stride) {                                      \
        bias::add<A>(c, bias, width, stride);                                                                        \
    }

ADD_BIAS(f32, float)
ADD_BIAS(bf16, bf16)

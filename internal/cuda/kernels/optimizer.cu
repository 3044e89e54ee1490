#include "device.h"

// The optimizer's step and the sums of squares for the gradient's norm. internal/cuda/rows.go has their launches, of
// blocks of 256 threads.

namespace optimizer {

// The constants of a step, in the order of internal/kernel's adamWStep.
struct step {
  float scale, gain1, beta2, gain2, decay, rate, root, epsilon;
};

__device__ inline void update(float& w, float& m, float& v, float g, const step& c) {
  float d = g * c.scale;
  if (d == 0 && m == 0 && v == 0) { // without dividing 0
    w *= c.decay;
    return;
  }
  m += c.gain1 * (d - m);
  v = c.beta2 * v + c.gain2 * d * d;
  w = w * c.decay - c.rate * m / (sqrtf(v) * c.root + c.epsilon);
}

// block_total returns in thread 0 the sum of v over the block's 256 threads.
__device__ inline double block_total(double v) {
  __shared__ double sums[256];
  int i = (int)threadIdx.x;
  sums[i] = v;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (i < half)
      sums[i] += sums[i + half];
    __syncthreads();
  }
  return sums[0];
}

} // namespace optimizer

KERNEL(adamw, float* w, float* m, float* v, const float* g, bf16* low, long long n, float c0, float c1, float c2,
       float c3, float c4, float c5, float c6, float c7) {
  optimizer::step c = {c0, c1, c2, c3, c4, c5, c6, c7};
  long long i = ((long long)blockIdx.x * 256 + threadIdx.x) * 4;
  if (i + 4 <= n) {
    f4 weight = load4(w + i), mean = load4(m + i), square = load4(v + i), gradient = load4(g + i);
    optimizer::update(weight.x, mean.x, square.x, gradient.x, c);
    optimizer::update(weight.y, mean.y, square.y, gradient.y, c);
    optimizer::update(weight.z, mean.z, square.z, gradient.z, c);
    optimizer::update(weight.w, mean.w, square.w, gradient.w, c);
    store4(w + i, weight);
    store4(m + i, mean);
    store4(v + i, square);
    if (low)
      store4(low + i, weight);
    return;
  }
  for (; i < n; i++) {
    optimizer::update(w[i], m[i], v[i], g[i], c);
    if (low)
      low[i] = from_float<bf16>(w[i]);
  }
}

KERNEL(squares, double* partial, const float* g, long long n) {
  const int size = 65536; // elements of a block
  long long first = (long long)blockIdx.x * size;
  double sum = 0;
#pragma unroll 4
  for (int k = 4 * (int)threadIdx.x; k < size; k += 1024) {
    long long i = first + k;
    if (i + 4 <= n) {
      f4 v = load4(g + i);
      sum += ((double)v.x * v.x + (double)v.y * v.y) + ((double)v.z * v.z + (double)v.w * v.w);
    } else {
      for (; i < n; i++)
        sum += (double)g[i] * g[i];
    }
  }
  sum = optimizer::block_total(sum);
  if (threadIdx.x == 0)
    partial[blockIdx.x] = sum;
}

KERNEL(sum_doubles, double* out, const double* partial, int n) {
  double sum = 0;
  for (int i = (int)threadIdx.x; i < n; i += 256)
    sum += partial[i];
  sum = optimizer::block_total(sum);
  if (threadIdx.x == 0)
    *out = sum;
}

#include "device.h"

// Kernels on the rows of packed matrices: LayerNorm, dropout, GELU and gates with their backward passes, embeddings,
// rotary positions, and sums over rows. internal/cuda/rows.go has their launches.
//
// A thread reads 4 adjacent elements at once, a vector. Where the rows of a matrix do not begin at multiples of 4
// elements, WHOLE is false: their elements are read one by one, and fewer rows at a time, so that the code stays small.

namespace rows {

__device__ inline int smaller(int a, int b) { return a < b ? a : b; }

__device__ inline f4 fill(float v) { return f4{v, v, v, v}; }
__device__ inline f4 plus(f4 a, f4 b) { return f4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ inline f4 times(f4 a, f4 b) { return f4{a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ inline float total(f4 v) { return (v.x + v.y) + (v.z + v.w); }

// first returns the first n elements of v, and zeros.
__device__ inline f4 first(f4 v, int n) {
  return f4{n > 0 ? v.x : 0, n > 1 ? v.y : 0, n > 2 ? v.z : 0, n > 3 ? v.w : 0};
}

// take returns the first 4 of the n > 0 elements at p, with zeros behind the last.
template <bool WHOLE, class A> __device__ inline f4 take(const A* p, int n) {
  if (WHOLE)
    return load4(p);
  return f4{to_float(p[0]), n > 1 ? to_float(p[1]) : 0, n > 2 ? to_float(p[2]) : 0, n > 3 ? to_float(p[3]) : 0};
}

// give writes v to the first 4 of the n > 0 elements at p.
template <bool WHOLE, class A> __device__ inline void give(A* p, f4 v, int n) {
  if (WHOLE) {
    store4(p, v);
    return;
  }
  p[0] = from_float<A>(v.x);
  if (n > 1)
    p[1] = from_float<A>(v.y);
  if (n > 2)
    p[2] = from_float<A>(v.z);
  if (n > 3)
    p[3] = from_float<A>(v.w);
}

// kept returns which of the elements i to i+3 a dropout keeps, as bits. If WHOLE, i is a multiple of 4.
template <bool WHOLE> __device__ inline unsigned kept(drop mask, long long i) {
  int shift = WHOLE ? 0 : (int)(i & 3);
  unsigned bits = 0;
#pragma unroll 1
  for (int k = 0; k < (shift ? 2 : 1); k++) {
    words4 random = philox(mask.key, 0, (unsigned long long)i / 4 + k);
#pragma unroll
    for (int j = 0; j < 4; j++)
      bits |= (random.w[j] >= mask.bound ? 1u : 0u) << (4 * k + j);
  }
  return bits >> shift;
}

// masked returns the dropout of v by the lowest bits of kept.
__device__ inline f4 masked(f4 v, drop mask, unsigned kept) {
  if (mask.bound == 0)
    return v;
  v = times(v, fill(mask.scale));
  return f4{kept & 1 ? v.x : 0, kept & 2 ? v.y : 0, kept & 4 ? v.z : 0, kept & 8 ? v.w : 0};
}

// LayerNorm. A block has a thread for each vector of a row, in whole warps, and R rows in registers at a time. What it
// computes for a row does not depend on the rows beside it.

// tile has R rows from row on, and the columns of a thread.
template <int R> struct tile {
  int row, last, width; // the first row, the end of the block's rows, and their length
  int c;                // the thread's first column
  __device__ tile(int row, int end, int rows, int width)
      : row(row), last(smaller(end, rows)), width(width), c(4 * (int)threadIdx.x) {}
  __device__ bool has(int r) const { return row + r < last && c < width; }
  __device__ int left() const { return width - c; } // columns from c on
  __device__ long long at(int r) const { return (long long)(row + r) * width + c; }
  template <bool WHOLE, class A> __device__ f4 load(const A* x, int r) const {
    return x && has(r) ? take<WHOLE>(x + at(r), left()) : fill(0);
  }
  // columns returns the thread's columns of a vector, or others if it is null.
  template <bool WHOLE> __device__ f4 columns(const float* x, float others) const {
    return x && c < width ? take<WHOLE>(x + c, left()) : fill(others);
  }
  // kept returns what the dropout keeps of row r, in bits 4*r to 4*r+3.
  template <bool WHOLE> __device__ unsigned kept(drop mask) const {
    unsigned bits = 0;
    if (mask.bound != 0 && c < width)
#pragma unroll 1
      for (int r = 0; r < R; r++)
        bits |= (rows::kept<WHOLE>(mask, at(r)) & 15) << (4 * r);
    return bits;
  }
};

// block_sums replaces each of the M numbers of v by its sum over the block's warps, in ascending order.
template <int M> __device__ inline void block_sums(float* v, float* parts /*[32 M]*/) {
#pragma unroll
  for (int m = 0; m < M; m++) {
    v[m] = warp_sum(v[m]);
    if (lane_number() == 0)
      parts[warp_number() * M + m] = v[m];
  }
  __syncthreads();
#pragma unroll
  for (int m = 0; m < M; m++)
    v[m] = parts[m];
#pragma unroll 1
  for (int w = 1; w < (int)blockDim.x / 32; w++)
#pragma unroll
    for (int m = 0; m < M; m++)
      v[m] += parts[w * M + m];
}

template <class A> struct norm_args {
  float* out32;
  A* out;
  float* stats;
  float* sum; // written, of x and y, if y is added
  A* low;     // the same
  const A* y;
  const float* yBias;
  const float* x;
  const float* gain;
  const float* bias;
  drop mask; // of y, if it is added, else of the result
  float epsilon;
  int rows, width;
};

// norm_rows computes R of the block's 4 rows at a time.
template <class A, bool ADD, bool WHOLE, int R> __device__ void norm_rows(const norm_args<A>& a) {
  __shared__ float parts[2][32 * R];
  tile<R> t(4 * (int)blockIdx.x, 4 * ((int)blockIdx.x + 1), a.rows, a.width);
#pragma unroll 1
  for (; t.row < t.last; t.row += R) {
    unsigned kept = t.template kept<WHOLE>(a.mask);
    f4 v[R], y[R];
    float mean[R], scale[R]; // the sums first
#pragma unroll
    for (int r = 0; r < R; r++) {
      v[r] = t.template load<WHOLE>(a.x, r);
      if (ADD)
        y[r] = t.template load<WHOLE>(a.y, r);
    }
    if (ADD) {
      f4 bias = t.template columns<WHOLE>(a.yBias, 0);
#pragma unroll
      for (int r = 0; r < R; r++)
        if (t.has(r)) {
          v[r] = first(plus(v[r], masked(plus(y[r], bias), a.mask, kept >> (4 * r))), WHOLE ? 4 : t.left());
          if (a.sum)
            give<WHOLE>(a.sum + t.at(r), v[r], t.left());
          if (a.low)
            give<WHOLE>(a.low + t.at(r), v[r], t.left());
        }
    }

    if (a.gain) {
#pragma unroll
      for (int r = 0; r < R; r++)
        mean[r] = total(v[r]);
      block_sums<R>(mean, parts[0]);
#pragma unroll
      for (int r = 0; r < R; r++) {
        mean[r] /= (float)a.width;
        f4 d = first(plus(v[r], fill(-mean[r])), t.left());
        scale[r] = total(times(d, d));
      }
      block_sums<R>(scale, parts[1]);
#pragma unroll
      for (int r = 0; r < R; r++) {
        scale[r] = 1.0f / sqrtf(scale[r] / (float)a.width + a.epsilon);
        if (a.stats && threadIdx.x == 0 && t.has(r)) {
          a.stats[2 * (long long)(t.row + r)] = mean[r];
          a.stats[2 * (long long)(t.row + r) + 1] = scale[r];
        }
      }
    }

    f4 gain = t.template columns<WHOLE>(a.gain, 1), bias = t.template columns<WHOLE>(a.bias, 0);
#pragma unroll
    for (int r = 0; r < R; r++)
      if (t.has(r)) {
        f4 n = v[r];
        if (a.gain)
          n = plus(times(times(plus(n, fill(-mean[r])), fill(scale[r])), gain), bias);
        if (!ADD)
          n = masked(n, a.mask, kept >> (4 * r));
        if (a.out32)
          give<WHOLE>(a.out32 + t.at(r), n, t.left());
        if (a.out)
          give<WHOLE>(a.out + t.at(r), n, t.left());
      }
  }
}

template <class A, bool ADD> __device__ void norm(const norm_args<A>& a) {
  if (a.width % 4 == 0)
    norm_rows<A, ADD, true, 4>(a);
  else
    norm_rows<A, ADD, false, 1>(a);
}

template <class A> struct norm_gradients {
  float* dx;
  A* out;         // dropout(v)
  float* partial; // [chunks 3*width]
  const float* dOut;
  const A* x;
  const float* stats;
  const float* gain;
  const float* beside;
  drop mask;
  int rows, width, chunk;
};

// norm_chunk computes the rows of a chunk, R at a time, and their sums in registers.
template <class A, bool WHOLE, int R> __device__ void norm_chunk(const norm_gradients<A>& a) {
  __shared__ float parts[2][64 * R]; // two, so that one barrier is enough for R rows
  tile<R> t((int)blockIdx.x * a.chunk, ((int)blockIdx.x + 1) * a.chunk, a.rows, a.width);
  f4 gain = t.template columns<WHOLE>(a.gain, 0), sumGain = fill(0), sumBias = fill(0), sumOut = fill(0);

#pragma unroll 1
  for (int step = 0; t.row < t.last; t.row += R, step ^= 1) {
    unsigned kept = t.template kept<WHOLE>(a.mask);
    f4 g[R], n[R], beside[R];             // gradient, normalised row
    float mean[R], scale[R], sums[2 * R]; // sums of g, and of g*n
#pragma unroll
    for (int r = 0; r < R; r++) {
      g[r] = t.template load<WHOLE>(a.dOut, r);
      n[r] = t.template load<WHOLE>(a.x, r);
      beside[r] = t.template load<WHOLE>(a.beside, r);
      mean[r] = a.gain && t.has(r) ? a.stats[2 * (long long)(t.row + r)] : 0;
      scale[r] = a.gain && t.has(r) ? a.stats[2 * (long long)(t.row + r) + 1] : 0;
    }

    if (a.gain) {
#pragma unroll
      for (int r = 0; r < R; r++) {
        n[r] = times(plus(n[r], fill(-mean[r])), fill(scale[r]));
        sumGain = plus(sumGain, times(g[r], n[r]));
        sumBias = plus(sumBias, g[r]);
        g[r] = times(g[r], gain);
        sums[2 * r] = total(g[r]);
        sums[2 * r + 1] = total(times(g[r], n[r]));
      }
      block_sums<2 * R>(sums, parts[step]);
#pragma unroll
      for (int r = 0; r < R; r++) {
        float meanG = sums[2 * r] / (float)a.width, meanGN = sums[2 * r + 1] / (float)a.width;
        g[r] = times(fill(scale[r]), plus(plus(g[r], fill(-meanG)), times(n[r], fill(-meanGN))));
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
      if (t.has(r)) {
        f4 v = plus(g[r], beside[r]);
        if (a.dx)
          give<WHOLE>(a.dx + t.at(r), v, t.left());
        v = masked(v, a.mask, kept >> (4 * r));
        if (a.out)
          give<WHOLE>(a.out + t.at(r), v, t.left());
        sumOut = plus(sumOut, v);
      }
  }
  if (!a.partial || t.left() <= 0)
    return;
  float* to = a.partial + (long long)blockIdx.x * 3 * a.width + t.c;
  give<WHOLE>(to, sumGain, t.left());
  give<WHOLE>(to + a.width, sumBias, t.left());
  give<WHOLE>(to + 2 * a.width, sumOut, t.left());
}

template <class A> __device__ void norm_backward(const norm_gradients<A>& a) {
  if (a.width % 4 == 0)
    norm_chunk<A, true, 2>(a);
  else
    norm_chunk<A, false, 1>(a);
}

// Elements: 256 threads, which compute 2048 elements. f is a function of a vector and of its first element's number.

template <class A, class B, class F> __device__ inline void elements(A* out, const B* x, long long n, F f) {
  long long start = (long long)blockIdx.x * 2048 + 4 * (int)threadIdx.x;
  if (start + 1024 + 4 <= n) {
    f4 a = load4(x + start), b = load4(x + start + 1024);
    store4(out + start, f(a, start));
    store4(out + start + 1024, f(b, start + 1024));
    return;
  }
#pragma unroll 1
  for (long long i = start; i < n && i <= start + 1024; i += 1024) {
    int left = n - i < 4 ? (int)(n - i) : 4;
    give<false>(out + i, f(take<false>(x + i, left), i), left);
  }
}

// drop_elements has its own loop, for one Philox.
template <class A> __device__ void drop_elements(A* out, const A* x, drop mask, long long n) {
  long long start = (long long)blockIdx.x * 2048 + 4 * (int)threadIdx.x;
#pragma unroll 1
  for (long long i = start; i < n && i <= start + 1024; i += 1024) {
    unsigned bits = mask.bound ? kept<true>(mask, i) : 0;
    if (i + 4 <= n)
      store4(out + i, masked(load4(x + i), mask, bits));
    else
      give<false>(out + i, masked(take<false>(x + i, (int)(n - i)), mask, bits), (int)(n - i));
  }
}

// GELU of Hendrycks & Gimpel 2016, x*cumulative(x), and its derivative.

__device__ inline float cumulative(float x) { return 0.5f + 0.5f * erff(x * 0.70710678118654752f); }

__device__ inline float slope(float x) { return cumulative(x) + x * (expf(-0.5f * x * x) * 0.39894228040143268f); }

__device__ inline f4 gelu(f4 v) {
  return f4{v.x * cumulative(v.x), v.y * cumulative(v.y), v.z * cumulative(v.z), v.w * cumulative(v.w)};
}

__device__ inline f4 slopes(f4 v) { return f4{slope(v.x), slope(v.y), slope(v.z), slope(v.w)}; }

// Operations on rows, and sums over the rows of a chunk: 128 threads, which compute 512 columns of a range of rows.

// part is what a thread computes: n columns from column c on, of rows row:last.
struct part {
  int c, n, row, last;
  __device__ long long at(int stride) const { return (long long)row * stride + c; }
};

__device__ inline part part_of(int columns, int range, int rows, int width, int chunk) {
  int c = 4 * (columns * 128 + (int)threadIdx.x);
  return part{c, width - c, range * chunk, smaller(rows, (range + 1) * chunk)};
}

template <bool WHOLE, class A>
__device__ inline void gelu_forward(A* active, const A* raised, part p, int width, int stride) {
  for (; p.row < p.last; p.row++)
    give<WHOLE>(active + p.at(width), gelu(take<WHOLE>(raised + p.at(stride), p.n)), p.n);
}

template <bool WHOLE, class A>
__device__ inline void geglu_forward(A* active, const A* both, drop mask, part p, int width) {
#pragma unroll 1
  for (; p.row < p.last; p.row++) {
    f4 raised = take<WHOLE>(both + p.at(2 * width), p.n), gate = take<WHOLE>(both + p.at(2 * width) + width, p.n);
    unsigned bits = mask.bound ? kept<WHOLE>(mask, p.at(width)) : 0;
    give<WHOLE>(active + p.at(width), masked(times(gelu(raised), gate), mask, bits), p.n);
  }
}

template <bool WHOLE, class A>
__device__ inline void geglu_backward(A* dBoth, const A* dActive, const A* both, drop mask, part p, int width) {
#pragma unroll 1
  for (; p.row < p.last; p.row++) {
    f4 raised = take<WHOLE>(both + p.at(2 * width), p.n), gate = take<WHOLE>(both + p.at(2 * width) + width, p.n);
    f4 d = take<WHOLE>(dActive + p.at(width), p.n);
    d = masked(d, mask, mask.bound ? kept<WHOLE>(mask, p.at(width)) : 0);
    give<WHOLE>(dBoth + p.at(2 * width), times(times(d, gate), slopes(raised)), p.n);
    give<WHOLE>(dBoth + p.at(2 * width) + width, times(d, gelu(raised)), p.n);
  }
}

template <bool WHOLE, class A>
__device__ inline void gelu_backward(A* d, float* partial, const A* raised, part p, int width) {
  f4 sum = fill(0);
  const int R = WHOLE ? 2 : 1; // rows at a time
#pragma unroll 1
  for (; p.row < p.last; p.row += R) {
    f4 g[R], x[R];
#pragma unroll
    for (int r = 0; r < R; r++)
      if (p.row + r < p.last) {
        g[r] = take<WHOLE>(d + p.at(width) + r * width, p.n);
        x[r] = take<WHOLE>(raised + p.at(width) + r * width, p.n);
      }
#pragma unroll
    for (int r = 0; r < R; r++)
      if (p.row + r < p.last) {
        g[r] = times(g[r], slopes(x[r]));
        sum = plus(sum, g[r]);
        give<WHOLE>(d + p.at(width) + r * width, g[r], p.n);
      }
  }
  if (partial)
    give<WHOLE>(partial, sum, p.n);
}

template <bool WHOLE, class A> __device__ inline void column_sums(float* partial, const A* x, part p, int stride) {
  f4 sum = fill(0);
#pragma unroll(WHOLE ? 8 : 1)
  for (; p.row < p.last; p.row++)
    sum = plus(sum, take<WHOLE>(x + p.at(stride), p.n));
  give<WHOLE>(partial, sum, p.n);
}

// rotate rotates the heads of a row's queries and keys with one warp.
template <bool WHOLE, class A>
__device__ inline void rotate(A* qkv, const float* angles, int heads, int width, float direction) {
  int half = width / 2, groups = (half + 3) / 4;
#pragma unroll(WHOLE ? 2 : 1)
  for (int i = (int)(threadIdx.x % 32); i < 2 * heads * groups; i += 32) {
    int c = 4 * (i % groups), n = half - c;
    A* p = qkv + i / groups * width + c;
    f4 x = take<WHOLE>(p, n), y = take<WHOLE>(p + half, n);
    f4 cos = take<WHOLE>(angles + c, n), sin = times(take<WHOLE>(angles + half + c, n), fill(direction));
    give<WHOLE>(p, plus(times(x, cos), times(times(y, sin), fill(-1))), n);
    give<WHOLE>(p + half, plus(times(y, cos), times(x, sin)), n);
  }
}

template <bool WHOLE>
__device__ inline void embed(float* sum, const float* word, const float* position, const float* type, int width) {
#pragma unroll(WHOLE ? 4 : 1)
  for (int c = 4 * (int)(threadIdx.x % 32); c < width; c += 128) {
    f4 v = take<WHOLE>(word + c, width - c);
    if (position)
      v = plus(v, take<WHOLE>(position + c, width - c));
    if (type)
      v = plus(v, take<WHOLE>(type + c, width - c));
    give<WHOLE>(sum + c, v, width - c);
  }
}

// scatter adds the rows of dx that order has to a row of the table. If there are at least 8, each of the block's 8
// warps sums an 8th of them; then the warps' sums are added up.
template <bool WHOLE>
__device__ inline void scatter(float* row, const float* dx, const int* order, int count, int c, int width) {
  __shared__ float sums[8][128];
  int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32), n = width - c;
  bool split = count >= 8;
  if (warp > 0 && !split)
    return;
  int each = split ? (count + 7) / 8 : count, last = smaller(count, (warp + 1) * each);
  f4 sum = fill(0);
  if (n > 0) {
#pragma unroll(WHOLE ? 8 : 1)
    for (int k = warp * each; k < last; k++)
      sum = plus(sum, take<WHOLE>(dx + (long long)order[k] * width + c, n));
  }
  if (split) {
    store4(&sums[warp][4 * lane], sum);
    __syncthreads();
    if (warp > 0)
      return;
#pragma unroll 1
    for (int k = 1; k < 8; k++)
      sum = plus(sum, load4(&sums[k][4 * lane]));
  }
  if (n > 0)
    give<WHOLE>(row + c, plus(take<WHOLE>(row + c, n), sum), n);
}

} // namespace rows

// EITHER calls a function for vectors that are whole or not.
#define EITHER(whole, function, ...)   \
  if (whole)                           \
    rows::function<true>(__VA_ARGS__); \
  else                                 \
    rows::function<false>(__VA_ARGS__);

// embed: 128 threads have 4 rows, a warp each.
KERNEL(embed, float* sum, const float* words, const int* ids, const float* positions, const int* pos,
       const float* types, const int* type, int rows, int width) {
  int row = (int)(blockIdx.x * 4 + threadIdx.x / 32);
  if (row >= rows)
    return;
  const float* word = words + (long long)ids[row] * width;
  const float* position = positions ? positions + (long long)pos[row] * width : nullptr;
  const float* kind = types && type ? types + (long long)type[row] * width : types;
  EITHER(width % 4 == 0, embed, sum + (long long)row * width, word, position, kind, width)
}

// sum_partials: 16 warps have 32 columns. Each warp sums a 16th of the chunks; then the warps' sums are added up.
KERNEL(sum_partials, float* gradient, const float* partial, int chunks, int stride, int width) {
  __shared__ float sums[16][32];
  int lane = (int)(threadIdx.x % 32), group = (int)(threadIdx.x / 32), column = (int)blockIdx.x * 32 + lane;
  int each = (chunks + 15) / 16, last = rows::smaller(chunks, (group + 1) * each);
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (int c = group * each; c < last; c++)
      sum += partial[(long long)c * stride + column];
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group == 0 && column < width) {
#pragma unroll 1
    for (int k = 1; k < 16; k++)
      sum += sums[k][lane];
    gradient[column] += sum;
  }
}

// scatter_rows: 8 warps have 128 columns of one row of the table.
KERNEL(scatter_rows, float* table, const float* dx, const int* ids, const int* starts, const int* order, int unique,
       int width) {
  int u = (int)blockIdx.x, first = starts[u], c = 4 * ((int)blockIdx.y * 32 + (int)(threadIdx.x % 32));
  float* row = table + (long long)ids[u] * width;
  EITHER(width % 4 == 0, scatter, row, dx, order + first, starts[u + 1] - first, c, width)
}

KERNEL(drop_gradient, float* d, unsigned long long key, unsigned bound, float scale, int rows, int width) {
  rows::drop_elements(d, d, {key, bound, scale}, (long long)rows * width);
}

KERNEL(convert, bf16* out, const float* x, long long n) {
  rows::elements(out, x, n, [](f4 v, long long) { return v; });
}

KERNEL(add, float* x, const float* y, long long n) {
  rows::elements(x, y, n, [=](f4 v, long long i) {
    return rows::plus(i + 4 <= n ? load4(x + i) : rows::take<false>(x + i, (int)(n - i)), v);
  });
}

// The kernels of an activation type A. Those on ranges of rows have 4 rows a block if they have no chunks.
#define JENGA_ROWS(A, name)                                                                                          \
  KERNEL_OF(1024, 1, norm_forward_##name, float* out32, A* out, float* stats, const float* x, const float* gain,     \
    const float* bias, float epsilon, unsigned long long key, unsigned bound, float scale, int rows, int width) {    \
    rows::norm<A, false>({out32, out, stats, nullptr, nullptr, nullptr, nullptr, x, gain, bias,                      \
      {key, bound, scale}, epsilon, rows, width});                                                                   \
  }                                                                                                                  \
  KERNEL_OF(1024, 1, add_norm_forward_##name, float* out32, A* out, float* stats, float* sum, A* low, const A* y,    \
    const float* yBias, unsigned long long key, unsigned bound, float scale, const float* residual,                  \
    const float* gain, const float* bias, float epsilon, int rows, int width) {                                      \
    rows::norm<A, true>({out32, out, stats, sum, low, y, yBias, residual, gain, bias, {key, bound, scale},           \
      epsilon, rows, width});                                                                                        \
  }                                                                                                                  \
  KERNEL_OF(1024, 1, norm_backward_##name, float* dx, A* dropped, float* partial, const float* dOut,                 \
    const A* x, const float* stats, const float* gain, const float* beside, unsigned long long key,                  \
    unsigned bound, float scale, int rows, int width, int chunk) {                                                   \
    rows::norm_backward<A>({dx, dropped, partial, dOut, x, stats, gain, beside, {key, bound, scale}, rows,           \
      width, chunk});                                                                                                \
  }                                                                                                                  \
  KERNEL(gelu_forward_##name, A* active, const A* raised, int rows, int width, int stride) {                         \
    rows::part p = rows::part_of(blockIdx.y, blockIdx.x, rows, width, 4);                                            \
    if (p.n > 0)                                                                                                     \
      EITHER(width % 4 == 0 && stride % 4 == 0, gelu_forward, active, raised, p, width, stride)                      \
  }                                                                                                                  \
  KERNEL(gelu_backward_##name, A* d, float* partial, const A* raised, int rows, int width, int chunk) {              \
    rows::part p = rows::part_of(blockIdx.x, blockIdx.y, rows, width, chunk);                                        \
    float* sums = partial ? partial + (long long)blockIdx.y * width + p.c : nullptr;                                 \
    if (p.n > 0)                                                                                                     \
      EITHER(width % 4 == 0, gelu_backward, d, sums, raised, p, width)                                               \
  }                                                                                                                  \
  KERNEL(geglu_forward_##name, A* active, const A* both, unsigned long long key, unsigned bound, float scale,        \
    int rows, int width) {                                                                                           \
    rows::part p = rows::part_of(blockIdx.y, blockIdx.x, rows, width, 4);                                            \
    drop mask = {key, bound, scale};                                                                                 \
    if (p.n > 0)                                                                                                     \
      EITHER(width % 4 == 0, geglu_forward, active, both, mask, p, width)                                            \
  }                                                                                                                  \
  KERNEL(geglu_backward_##name, A* dBoth, const A* dActive, const A* both, unsigned long long key,                   \
    unsigned bound, float scale, int rows, int width) {                                                              \
    rows::part p = rows::part_of(blockIdx.y, blockIdx.x, rows, width, 4);                                            \
    drop mask = {key, bound, scale};                                                                                 \
    if (p.n > 0)                                                                                                     \
      EITHER(width % 4 == 0, geglu_backward, dBoth, dActive, both, mask, p, width)                                   \
  }                                                                                                                  \
  KERNEL(column_sums_##name, float* partial, const A* x, int rows, int width, int stride, int chunk) {               \
    rows::part p = rows::part_of(blockIdx.x, blockIdx.y, rows, width, chunk);                                        \
    if (p.n > 0)                                                                                                     \
      EITHER(width % 4 == 0 && stride % 4 == 0, column_sums, partial + (long long)blockIdx.y * width + p.c, x, p,    \
        stride)                                                                                                      \
  }                                                                                                                  \
  KERNEL(rotate_##name, A* qkv, const float* angles, const int* pos, int rows, int heads, int width, int stride,     \
    float direction) {                                                                                               \
    int row = (int)(blockIdx.x * 4 + threadIdx.x / 32);                                                              \
    if (row < rows)                                                                                                  \
      EITHER(width % 8 == 0 && stride % 4 == 0, rotate, qkv + (long long)row * stride,                               \
        angles + (long long)pos[row] * width, heads, width, direction)                                               \
  }

JENGA_ROWS(float, f32)
JENGA_ROWS(bf16, bf16)

// Attention of float32, by blocks of 64 queries and 64 or 32 keys (Dao et al. 2022), and of both types for heads of any width, a
// warp for each row.
//
// A block of the first has 256 threads: thread 16·y + x has the elements of rows 4·y … 4·y+3 and columns x, x+16, … of a product of
// rows with rows, and those rows of a result with the columns of column_of. D, the columns of a tile, is 32, 64 or 128; heads
// of another width are padded with zeros in shared memory.
//
// Launch: blocks of 256 threads; those of any width of 32 to 256. Shared memory, with O = 64, or 32 where D is 128:
// (64 + O)·(D + 4)·4 + 64·(O + 4)·4 + 512 bytes forward, (128 + O)·(D + 4)·4 + 64·(O + 4)·4 + 1024 backward; for any width, 4·d
// bytes a warp forward, 8·d backward.
#include "attention.h"

namespace {

constexpr int ROWS = ATTENTION_ROWS, THREADS = 256;

// Rows of the tiles that follow one another: keys for a block of queries, queries for a block of keys.
template <int D> __device__ constexpr int others() { return D <= 64 ? 64 : 32; }

// Floats from one row of a tile to the next: rows x … x+7 are in different banks.
template <int D> __device__ constexpr int row_of() { return D + 4; }

// The thread's column c of D/16 in a result.
template <int D> __device__ __forceinline__ int column_of(int c) {
  int x = threadIdx.x & 15;
  return D < 64 ? x + 16 * c : 4 * x + c % 4 + c / 4 * 64;
}

// The thread's first row.
__device__ __forceinline__ int first_row() { return threadIdx.x / 16 * 4; }

// Loads rows 0 … n-1 of x to a tile, and zeros up to whole groups of 16 rows and 4 columns.
template <int D> __device__ __forceinline__ void load_tile(float* tile, const float* x, int stride, int n, int d) {
  const int rows = (n + 15) / 16 * 16;
  if (d % 4 == 0 && stride % 4 == 0) {
    constexpr int STEP = THREADS / (D / 4); // rows
    const int c = threadIdx.x % (D / 4) * 4, r0 = threadIdx.x / (D / 4);
    x += (long long)r0 * stride + c;
    tile += r0 * row_of<D>() + c;
#pragma unroll 4
    for (int r = r0; r < rows; r += STEP, x += STEP * stride, tile += STEP * row_of<D>()) {
      store4(tile, r < n && c < d ? load4(x) : f4{0, 0, 0, 0});
    }
    return;
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * D; i += THREADS) {
    int r = i / D, c = i % D;
    tile[r * row_of<D>() + c] = r < n && c < d ? x[(long long)r * stride + c] : 0;
  }
}

// s [4 C] becomes the product of the thread's rows of a tile and its columns, which are rows of another tile, of which there are m.
template <int D, int C>
__device__ __forceinline__ void multiply_transposed(float s[4][C], const float* left, const float* right, int m, int d) {
  left += first_row() * row_of<D>();
  right += (threadIdx.x & 15) * row_of<D>();
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int c = 0; c < C; c++) s[i][c] = 0;
  }
#pragma unroll 2
  for (int k = 0; k < d; k += 4) {
    f4 a[4];
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = load4(left + i * row_of<D>() + k);
#pragma unroll
    for (int c = 0; c < C; c++) {
      if (16 * c >= m) break;
      f4 b = load4(right + 16 * c * row_of<D>() + k);
#pragma unroll
      for (int i = 0; i < 4; i++) s[i][c] = fmaf(a[i].w, b.w, fmaf(a[i].z, b.z, fmaf(a[i].y, b.y, fmaf(a[i].x, b.x, s[i][c]))));
    }
  }
}

// sums [4 D/16] += the thread's rows of weights [64 O], m columns of them, times the m rows of a tile.
template <int D, int O>
__device__ __forceinline__ void add_product(float sums[4][D / 16], const float* weights, const float* tile, int m) {
  weights += first_row() * (O + 4);
#pragma unroll 1
  for (int k = 0; k < m; k += 4) {
    f4 w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = load4(weights + i * (O + 4) + k);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const float* row = tile + (k + e) * row_of<D>();
      float v[D / 16];
      if constexpr (D < 64) {
#pragma unroll
        for (int c = 0; c < D / 16; c++) v[c] = row[column_of<D>(c)];
      } else {
#pragma unroll
        for (int c = 0; c < D / 16; c += 4) {
          f4 four = load4(row + column_of<D>(c));
          v[c] = four.x, v[c + 1] = four.y, v[c + 2] = four.z, v[c + 3] = four.w;
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float by = e == 0 ? w[i].x : e == 1 ? w[i].y : e == 2 ? w[i].z : w[i].w;
#pragma unroll
        for (int c = 0; c < D / 16; c++) sums[i][c] = fmaf(by, v[c], sums[i][c]);
      }
    }
  }
}

// Writes the thread's sums, row i times scale[i], to those of the n rows and d columns of out that it has.
template <int D>
__device__ __forceinline__ void store_rows(float* out, int stride, int n, int d, const float sums[4][D / 16], const float scale[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int r = first_row() + i;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
      int j = column_of<D>(c);
      if (r < n && j < d) out[(long long)r * stride + j] = sums[i][c] * scale[i];
    }
  }
}

// bits [queries 4]: bit k of bits[4·q + p] is whether the mask keeps the weight of query query+q and key key+16·p+k, of m keys.
__device__ __forceinline__ void make_mask(unsigned short* bits, const attention& a, int query, int queries, int key, int m) {
  for (int i = threadIdx.x; i < queries * 4; i += THREADS) {
    int q = i / 4, first = i % 4 * 16;
    unsigned long long element = (unsigned long long)(query + q) * a.length + key + first;
    bits[i] = (unsigned short)kept_bits(a.dropped, a.counter, element, min(16, m - first));
  }
}

// The sum, and the largest, of the values of the 16 threads that have the same rows.
__device__ __forceinline__ float sum_of_row(float v) {
#pragma unroll
  for (int offset = 8; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__device__ __forceinline__ float max_of_row(float v) {
#pragma unroll
  for (int offset = 8; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}

template <int D> __device__ void forward(float* context, float* normalizers, const float* qkv, const attention& a) {
  SHARED(float, queries);
  constexpr int O = others<D>(), C = O / 16;
  float *other = queries + ROWS * row_of<D>(), *weights = other + O * row_of<D>(); // other: keys, then values
  unsigned short* bits = reinterpret_cast<unsigned short*>(weights + ROWS * (O + 4));
  const bool busy = warp_number() * 8 < a.n, drops = a.dropped.bound > 0;
  const int row = first_row(), x = threadIdx.x & 15;

  load_tile<D>(queries, a.part(qkv, 0) + (long long)a.lo * a.stride, a.stride, a.n, a.d);
  float out[4][D / 16] = {}, top[4], sum[4] = {0, 0, 0, 0}; // of sum, the thread's part
  for (int i = 0; i < 4; i++) top[i] = -infinity();
  for (int j = a.from; j < a.to; j += O) {
    const int m = min(O, a.to - j);
    __syncthreads();
    load_tile<D>(other, a.part(qkv, 1) + (long long)j * a.stride, a.stride, m, a.d);
    if (drops) make_mask(bits, a, a.lo, a.n, j, m);
    __syncthreads();
    if (busy) {
      float s[4][C];
      multiply_transposed<D, C>(s, queries, other, m, a.d);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float highest = top[i];
#pragma unroll
        for (int c = 0; c < C; c++) {
          if (x + 16 * c >= m || a.outside(a.lo + row + i, j + x + 16 * c)) s[i][c] = -infinity();
          highest = fmaxf(highest, s[i][c]);
        }
        highest = max_of_row(highest);
        float base = highest == -infinity() ? 0 : highest; // a row may have no key of this tile in its window
        float shrink = expf((top[i] - base) * a.scale);
        top[i] = highest;
        sum[i] *= shrink;
#pragma unroll
        for (int c = 0; c < D / 16; c++) out[i][c] *= shrink;
#pragma unroll
        for (int c = 0; c < C; c++) {
          if (16 * c >= m) break;
          float weight = expf((s[i][c] - base) * a.scale);
          sum[i] += weight;
          if (drops) weight = bits[(row + i) * 4 + c] >> x & 1 ? weight * a.dropped.scale : 0;
          weights[(row + i) * (O + 4) + x + 16 * c] = weight;
        }
      }
    }
    __syncthreads();
    load_tile<D>(other, a.part(qkv, 2) + (long long)j * a.stride, a.stride, m, a.d);
    __syncthreads();
    if (busy) add_product<D, O>(out, weights, other, m);
  }
  if (!busy) return;

  float scale[4];
  for (int i = 0; i < 4; i++) {
    float total = sum_of_row(sum[i]);
    scale[i] = 1 / total;
    if (normalizers != nullptr && x == 0 && row + i < a.n) {
      normalizers[a.statistics + a.lo + row + i] = top[i] * a.scale + logf(total);
    }
  }
  store_rows<D>(a.result(context) + (long long)a.lo * a.outStride, a.outStride, a.n, a.d, out, scale);
}

template <int D>
__device__ void backward_queries(float* dqkv, const float* qkv, const float* dContext, const float* normalizers,
                                 const float* delta, const attention& a) {
  SHARED(float, queries);
  constexpr int O = others<D>(), C = O / 16;
  float *gradients = queries + ROWS * row_of<D>(), *other = gradients + ROWS * row_of<D>(); // other: values, then keys
  float* weights = other + O * row_of<D>();
  unsigned short* bits = reinterpret_cast<unsigned short*>(weights + ROWS * (O + 4));
  const bool busy = warp_number() * 8 < a.n, drops = a.dropped.bound > 0;
  const int row = first_row(), x = threadIdx.x & 15;

  load_tile<D>(queries, a.part(qkv, 0) + (long long)a.lo * a.stride, a.stride, a.n, a.d);
  load_tile<D>(gradients, a.result(dContext) + (long long)a.lo * a.outStride, a.outStride, a.n, a.d);
  float normalizer[4], sum[4], scale[4], dq[4][D / 16] = {};
  for (int i = 0; i < 4; i++) {
    normalizer[i] = row + i < a.n ? normalizers[a.statistics + a.lo + row + i] : infinity();
    sum[i] = row + i < a.n ? delta[a.statistics + a.lo + row + i] : 0;
    scale[i] = a.scale;
  }
  for (int j = a.from; j < a.to; j += O) {
    const int m = min(O, a.to - j);
    float s[4][C], dp[4][C];
    __syncthreads();
    load_tile<D>(other, a.part(qkv, 2) + (long long)j * a.stride, a.stride, m, a.d);
    if (drops) make_mask(bits, a, a.lo, a.n, j, m);
    __syncthreads();
    if (busy) multiply_transposed<D, C>(dp, gradients, other, m, a.d);
    __syncthreads();
    load_tile<D>(other, a.part(qkv, 1) + (long long)j * a.stride, a.stride, m, a.d);
    __syncthreads();
    if (busy) {
      multiply_transposed<D, C>(s, queries, other, m, a.d);
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
          if (16 * c >= m) break;
          float weight = expf(fmaf(s[i][c], a.scale, -normalizer[i]));
          if (x + 16 * c >= m || a.outside(a.lo + row + i, j + x + 16 * c)) weight = 0;
          if (drops) dp[i][c] = bits[(row + i) * 4 + c] >> x & 1 ? dp[i][c] * a.dropped.scale : 0;
          weights[(row + i) * (O + 4) + x + 16 * c] = weight * (dp[i][c] - sum[i]);
        }
      }
      __syncwarp();
      add_product<D, O>(dq, weights, other, m);
    }
  }
  if (busy) store_rows<D>(a.part(dqkv, 0) + (long long)a.lo * a.stride, a.stride, a.n, a.d, dq, scale);
}

template <int D>
__device__ void backward_keys(float* dqkv, const float* qkv, const float* dContext, const float* normalizers,
                              const float* delta, const attention& a) {
  SHARED(float, keys);
  constexpr int O = others<D>(), C = O / 16;
  float *values = keys + ROWS * row_of<D>(), *other = values + ROWS * row_of<D>(); // other: queries, gradients, queries
  float *weights = other + O * row_of<D>(), *statistics = weights + ROWS * (O + 4); // normalizers [ROWS], deltas [ROWS]
  unsigned short* bits = reinterpret_cast<unsigned short*>(statistics + 2 * ROWS);
  const bool busy = warp_number() * 8 < a.n, drops = a.dropped.bound > 0;
  const int row = first_row(), x = threadIdx.x & 15;

  load_tile<D>(keys, a.part(qkv, 1) + (long long)a.lo * a.stride, a.stride, a.n, a.d);
  load_tile<D>(values, a.part(qkv, 2) + (long long)a.lo * a.stride, a.stride, a.n, a.d);
  float dk[4][D / 16] = {}, dv[4][D / 16] = {};
  for (int j = a.from; j < a.to; j += O) {
    const int m = min(O, a.to - j);
    const float* queryRows = a.part(qkv, 0) + (long long)j * a.stride;
    float s[4][C], dp[4][C]; // a row is a key
    __syncthreads();
    load_tile<D>(other, queryRows, a.stride, m, a.d);
    if (threadIdx.x < O) {
      int q = threadIdx.x;
      statistics[q] = q < m ? normalizers[a.statistics + j + q] : infinity();
      statistics[ROWS + q] = q < m ? delta[a.statistics + j + q] : 0;
    }
    if (drops) make_mask(bits, a, j, m, a.lo, a.n);
    __syncthreads();
    if (busy) multiply_transposed<D, C>(s, keys, other, m, a.d);
    __syncthreads();
    load_tile<D>(other, a.result(dContext) + (long long)j * a.outStride, a.outStride, m, a.d);
    __syncthreads();
    if (busy) {
      multiply_transposed<D, C>(dp, values, other, m, a.d);
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
          if (16 * c >= m) break;
          int query = x + 16 * c;
          float weight = expf(fmaf(s[i][c], a.scale, -statistics[query]));
          if (query >= m || a.outside(j + query, a.lo + row + i)) weight = 0;
          float kept = weight;
          if (drops) {
            bool keeps = bits[query * 4 + (row + i) / 16] >> ((row + i) & 15) & 1 && query < m;
            kept = keeps ? weight * a.dropped.scale : 0;
            dp[i][c] = keeps ? dp[i][c] * a.dropped.scale : 0;
          }
          weights[(row + i) * (O + 4) + query] = kept;
          s[i][c] = weight * (dp[i][c] - statistics[ROWS + query]);
        }
      }
      __syncwarp();
      add_product<D, O>(dv, weights, other, m);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
          if (16 * c < m) weights[(row + i) * (O + 4) + x + 16 * c] = s[i][c];
        }
      }
    }
    __syncthreads();
    load_tile<D>(other, queryRows, a.stride, m, a.d);
    __syncthreads();
    if (busy) add_product<D, O>(dk, weights, other, m);
  }
  if (!busy) return;
  const float scale[4] = {a.scale, a.scale, a.scale, a.scale}, one[4] = {1, 1, 1, 1};
  store_rows<D>(a.part(dqkv, 1) + (long long)a.lo * a.stride, a.stride, a.n, a.d, dk, scale);
  store_rows<D>(a.part(dqkv, 2) + (long long)a.lo * a.stride, a.stride, a.n, a.d, dv, one);
}

// For heads of any width: a warp has a row, whose sums are in shared memory, and each lane every 32nd column.

template <class A> __device__ __forceinline__ float dot(const A* x, const A* y, int d) {
  float sum = 0;
#pragma unroll 1
  for (int i = lane_number(); i < d; i += 32) sum = fmaf(to_float(x[i]), to_float(y[i]), sum);
  return warp_sum(sum);
}

// The rows that row has in its window: first … last-1.
__device__ __forceinline__ int first_in_window(const attention& a, int row) { return a.window > 0 ? max(0, row - a.window) : 0; }
__device__ __forceinline__ int end_of_window(const attention& a, int row) {
  return a.window > 0 ? min(a.length, row + a.window + 1) : a.length;
}

template <class A> __device__ void forward_any(A* context, float* normalizers, const A* qkv, const attention& a) {
  SHARED(float, sums);
  float* out = sums + warp_number() * a.d;
  for (int query = a.lo + warp_number(); query < a.lo + a.n; query += blockDim.x / 32) {
    const A* q = a.part(qkv, 0) + (long long)query * a.stride;
    float top = -infinity(), sum = 0;
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) out[i] = 0;
    for (int key = first_in_window(a, query); key < end_of_window(a, query); key++) {
      const A* v = a.part(qkv, 2) + (long long)key * a.stride;
      float s = dot(q, a.part((const A*)qkv, 1) + (long long)key * a.stride, a.d) * a.scale;
      float highest = fmaxf(top, s), base = highest == -infinity() ? 0 : highest;
      float shrink = expf(top - base), weight = expf(s - base);
      top = highest;
      sum = sum * shrink + weight;
      weight = dropout(a.dropped, a.counter, (unsigned long long)query * a.length + key, weight);
#pragma unroll 1
      for (int i = lane_number(); i < a.d; i += 32) out[i] = fmaf(weight, to_float(v[i]), out[i] * shrink);
    }
    A* to = a.result(context) + (long long)query * a.outStride;
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) to[i] = from_float<A>(out[i] / sum);
    if (normalizers != nullptr && lane_number() == 0) normalizers[a.statistics + query] = top + logf(sum);
  }
}

// The weight of a query and a key after dropout, and the gradient of its logit.
struct pair_gradient {
  float kept, logit;
};

template <class A>
__device__ __forceinline__ pair_gradient gradient_of(const attention& a, const A* qkv, const A* dContext, const float* normalizers,
                                                     const float* delta, int query, int key) {
  float s = dot(a.part(qkv, 0) + (long long)query * a.stride, a.part(qkv, 1) + (long long)key * a.stride, a.d) * a.scale;
  float dp = dot(a.result(dContext) + (long long)query * a.outStride, a.part(qkv, 2) + (long long)key * a.stride, a.d);
  float weight = expf(s - normalizers[a.statistics + query]);
  float keep = dropout(a.dropped, a.counter, (unsigned long long)query * a.length + key, 1);
  dp = keep == 0 ? 0 : dp * keep;
  return pair_gradient{keep == 0 ? 0 : weight * keep, weight * (dp - delta[a.statistics + query])};
}

template <class A>
__device__ void backward_queries_any(A* dqkv, const A* qkv, const A* dContext, const float* normalizers, const float* delta,
                                     const attention& a) {
  SHARED(float, sums);
  float* dq = sums + warp_number() * a.d;
  for (int query = a.lo + warp_number(); query < a.lo + a.n; query += blockDim.x / 32) {
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) dq[i] = 0;
    for (int key = first_in_window(a, query); key < end_of_window(a, query); key++) {
      pair_gradient g = gradient_of(a, qkv, dContext, normalizers, delta, query, key);
      const A* k = a.part(qkv, 1) + (long long)key * a.stride;
#pragma unroll 1
      for (int i = lane_number(); i < a.d; i += 32) dq[i] = fmaf(g.logit, to_float(k[i]), dq[i]);
    }
    A* to = a.part(dqkv, 0) + (long long)query * a.stride;
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) to[i] = from_float<A>(dq[i] * a.scale);
  }
}

template <class A>
__device__ void backward_keys_any(A* dqkv, const A* qkv, const A* dContext, const float* normalizers, const float* delta,
                                  const attention& a) {
  SHARED(float, sums);
  float *dk = sums + warp_number() * 2 * a.d, *dv = dk + a.d;
  for (int key = a.lo + warp_number(); key < a.lo + a.n; key += blockDim.x / 32) {
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) dk[i] = dv[i] = 0;
    for (int query = first_in_window(a, key); query < end_of_window(a, key); query++) {
      pair_gradient g = gradient_of(a, qkv, dContext, normalizers, delta, query, key);
      const A* q = a.part(qkv, 0) + (long long)query * a.stride;
      const A* gradient = a.result(dContext) + (long long)query * a.outStride;
#pragma unroll 1
      for (int i = lane_number(); i < a.d; i += 32) {
        dk[i] = fmaf(g.logit, to_float(q[i]), dk[i]);
        dv[i] = fmaf(g.kept, to_float(gradient[i]), dv[i]);
      }
    }
    A *toKey = a.part(dqkv, 1) + (long long)key * a.stride, *toValue = a.part(dqkv, 2) + (long long)key * a.stride;
#pragma unroll 1
    for (int i = lane_number(); i < a.d; i += 32) {
      toKey[i] = from_float<A>(dk[i] * a.scale);
      toValue[i] = from_float<A>(dv[i]);
    }
  }
}

// A warp for each row and head.
template <class A>
__device__ void attention_delta(float* delta, const A* context, const A* dContext, int rows, int heads, int d, int stride) {
  int unit = blockIdx.x * (blockDim.x / 32) + warp_number();
  if (unit >= rows * heads) return;
  long long row = unit / heads, at = row * stride + (long long)(unit % heads) * d;
  float sum = 0;
  if (d % 4 == 0 && stride % 4 == 0) {
#pragma unroll 1
    for (int i = lane_number() * 4; i < d; i += 128) {
      f4 x = load4(context + at + i), y = load4(dContext + at + i);
      sum = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
    }
    sum = warp_sum(sum);
  } else {
    sum = dot(context + at, dContext + at, d);
  }
  if (lane_number() == 0) delta[(long long)(unit % heads) * rows + row] = sum;
}

} // namespace

#define ATTENTION(BLOCKS, A, VARIANT, FORWARD, QUERIES, KEYS)                                                               \
  KERNEL_OF(THREADS, BLOCKS, attention_forward_##VARIANT, A* context, float* normalizers, const A* qkv, ATTENTION_PARAMETERS) {   \
    FORWARD(context, normalizers, qkv, ATTENTION_ARGUMENTS);                                                                 \
  }                                                                                                                          \
  KERNEL_OF(THREADS, BLOCKS, attention_backward_queries_##VARIANT, A* dqkv, const A* qkv, const A* dContext,                      \
            const float* normalizers, const float* delta, ATTENTION_PARAMETERS) {                                            \
    QUERIES(dqkv, qkv, dContext, normalizers, delta, ATTENTION_ARGUMENTS);                                                   \
  }                                                                                                                          \
  KERNEL_OF(THREADS, BLOCKS, attention_backward_keys_##VARIANT, A* dqkv, const A* qkv, const A* dContext,                         \
            const float* normalizers, const float* delta, ATTENTION_PARAMETERS) {                                            \
    KEYS(dqkv, qkv, dContext, normalizers, delta, ATTENTION_ARGUMENTS);                                                      \
  }

ATTENTION(2, float, f32_32, forward<32>, backward_queries<32>, backward_keys<32>)
ATTENTION(2, float, f32_64, forward<64>, backward_queries<64>, backward_keys<64>)
ATTENTION(1, float, f32_128, forward<128>, backward_queries<128>, backward_keys<128>)
ATTENTION(2, float, f32_any, forward_any, backward_queries_any, backward_keys_any)
ATTENTION(2, bf16, bf16_any, forward_any, backward_queries_any, backward_keys_any)

#define ATTENTION_DELTA(suffix, A)                                                                               \
  KERNEL_OF(256, 2, attention_delta_##suffix, float* delta, const A* context, const A* dContext, int rows, int heads, int d, \
            int stride) {                                                                                        \
    attention_delta(delta, context, dContext, rows, heads, d, stride);                                           \
  }
ATTENTION_DELTA(f32, float)
ATTENTION_DELTA(bf16, bf16)

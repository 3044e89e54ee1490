// Attention of bfloat16 on tensor cores, by blocks of 64 queries and 64 keys (Dao et al. 2022, 2023). Logits, softmax and sums are
// in float32; weights and their gradients are rounded to bfloat16 as operands of products.
//
// A block has four warps, and a warp 16 rows: of queries forward and for the gradient of the queries, of keys for that of keys and
// values. The other operands come through shared memory in tiles of 64 rows, the next while one is used. The logits of a
// warp's rows with 64 rows of a tile, backward with 16, are in registers, and go from there to the product that they are an operand of.
//
// D, the columns of a tile, is 32, 64 or 128; heads of another width are padded with zeros in shared memory.
// Launch: blocks of 128 threads; shared memory 640·D bytes forward, 768·D + 1024 backward.
#include "attention_tiles.h"

namespace {

constexpr int ROWS = ATTENTION_ROWS, THREADS = 128;

// Begins to load rows 0 … n-1 of x, n ≤ 64, to a tile, and zeros up to whole groups of rows. aligned: all rows of x are
// aligned to 16 bytes, and d is a multiple of 8.
template <int D> __device__ __forceinline__ void load_tile(bf16* tile, const bf16* x, int stride, int n, int d, bool aligned) {
  const int rows = (n + GROUP - 1) / GROUP * GROUP;
  if (aligned) {
    constexpr int STEP = THREADS / (D / 8); // rows; their order of columns is that of every 8th row
    const int c = threadIdx.x % (D / 8), r0 = threadIdx.x / (D / 8);
    bf16* to = tile + chunk_at<D>(r0, c);
    const bf16* from = x + (long long)r0 * stride + c * 8;
#pragma unroll 1
    for (int r = r0; r < rows; r += STEP, to += STEP * D, from += STEP * stride) {
      bool valid = r < n && c * 8 < d;
      copy16(to, valid ? from : x, valid);
    }
    return;
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * D; i += THREADS) {
    int r = i / D, c = i % D;
    tile[chunk_at<D>(r, c >> 3) + (c & 7)] = r < n && c < d ? x[(long long)r * stride + c] : bf16{0};
  }
}

// kept[i][h] has the bits of the mask of the warp's query lane/4 + 8·i, those of the keys first+32·h … of m ≤ 64 keys from first
// on, shifted so that bit 8·f + e is element [2·i+e] of a fragment f of these 32 keys. query is the warp's first. Each lane makes
// half of the bits of a row.
__device__ __forceinline__ void mask_of_queries(unsigned kept[2][2], const attention& a, int query, int first, int m) {
  int lane = lane_number(), half = m > 32 ? 32 : 16, begin = (lane & 1) * half;
  unsigned mine = kept_bits(a.dropped, a.counter, (unsigned long long)(query + (lane >> 1)) * a.length + first + begin,
                            min(half, m - begin));
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int source = 2 * ((lane >> 2) + 8 * i);
    unsigned low = __shfl_sync(0xffffffffu, mine, source), high = __shfl_sync(0xffffffffu, mine, source + 1);
    if (half == 16) low |= high << 16, high = 0;
    kept[i][0] = low >> 2 * (lane & 3);
    kept[i][1] = high >> 2 * (lane & 3);
  }
}

template <int D> __device__ void forward(bf16* context, float* normalizers, const bf16* qkv, const attention& a) {
  SHARED(bf16, tiles);
  constexpr int TILE = ROWS * D;
  bf16 *keys = tiles + TILE, *values = tiles + 3 * TILE; // two each
  const bf16 *keyRows = a.part(qkv, 1), *valueRows = a.part(qkv, 2);
  const bool aligned = aligned_rows(a.d, a.stride);
  const int row = warp_number() * GROUP, query = a.lo + row;
  const int g = lane_number() >> 2, t = lane_number() & 3;
  const float scale2 = a.scale * LOG2_E;

  auto load = [&](int buffer, int j) {
    int n = min(ROWS, a.to - j);
    load_tile<D>(keys + buffer * TILE, keyRows + (long long)j * a.stride, a.stride, n, a.d, aligned);
    load_tile<D>(values + buffer * TILE, valueRows + (long long)j * a.stride, a.stride, n, a.d, aligned);
  };
  load_tile<D>(tiles, a.part(qkv, 0) + (long long)a.lo * a.stride, a.stride, a.n, a.d, aligned);
  load(0, a.from);
  copy_commit();

  unsigned queries[D / 16][4];
  float out[D / 8][4] = {};
  float top[2] = {-infinity(), -infinity()}, sum[2] = {0, 0}; // of rows g and g+8; of sum, the lane's part
  int buffer = 0;
  for (int j = a.from; j < a.to; j += ROWS, buffer ^= 1) {
    if (j + ROWS < a.to) load(buffer ^ 1, j + ROWS);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    if (row < a.n) {
      if (j == a.from) {
#pragma unroll
        for (int k = 0; k < D / 16; k++) load_left<D>(queries[k], tiles, row, k);
      }
      const int m = min(ROWS, a.to - j);
      float s[ROWS / 8][4];
#pragma unroll
      for (int f = 0; f < ROWS / 8; f++) s[f][0] = s[f][1] = s[f][2] = s[f][3] = 0;
#pragma unroll
      for (int p = 0; p < ROWS / GROUP; p++) {
        if (p * GROUP < m) {
#pragma unroll
          for (int k = 0; k < D / 16; k++) {
            unsigned b[4];
            load_right_transposed<D>(b, keys + buffer * TILE, p * GROUP, k);
            mma_16816_bf16(s[2 * p], queries[k], b);
            mma_16816_bf16(s[2 * p + 1], queries[k], b + 2);
          }
        }
      }
      if (m < ROWS || a.window > 0) {
#pragma unroll
        for (int f = 0; f < ROWS / 8; f++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            if (a.outside(query + g + 8 * (e >> 1), j + 8 * f + 2 * t + (e & 1))) s[f][e] = -infinity();
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float highest = top[i];
#pragma unroll
        for (int f = 0; f < ROWS / 8; f++) highest = fmaxf(highest, fmaxf(s[f][2 * i], s[f][2 * i + 1]));
        highest = max_of_row(highest);
        float base = highest == -infinity() ? 0 : highest * scale2; // a row may have no key of this tile in its window
        float shrink = fast_exp2(fmaf(top[i], scale2, -base));
        top[i] = highest;
        sum[i] *= shrink;
#pragma unroll
        for (int f = 0; f < D / 8; f++) out[f][2 * i] *= shrink, out[f][2 * i + 1] *= shrink;
#pragma unroll
        for (int f = 0; f < ROWS / 8; f++) {
          if (f / 2 * GROUP < m) {
            s[f][2 * i] = fast_exp2(fmaf(s[f][2 * i], scale2, -base));
            s[f][2 * i + 1] = fast_exp2(fmaf(s[f][2 * i + 1], scale2, -base));
            sum[i] += s[f][2 * i] + s[f][2 * i + 1];
          }
        }
      }
      if (a.dropped.bound > 0) {
        unsigned kept[2][2];
        mask_of_queries(kept, a, query, j, m);
#pragma unroll
        for (int f = 0; f < ROWS / 8; f++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            if (!(kept[e >> 1][f / 4] >> (f % 4 * 8 + (e & 1)) & 1)) s[f][e] = 0;
          }
        }
      }
#pragma unroll
      for (int p = 0; p < ROWS / GROUP; p++) {
        if (p * GROUP < m) add_product<D>(out, s + 2 * p, values + buffer * TILE, p * GROUP);
      }
    }
    __syncthreads();
  }
  copy_wait<0>();
  if (row >= a.n) return;

  float total[2] = {sum_of_row(sum[0]), sum_of_row(sum[1])};
  store_rows<D>(a.result(context) + (long long)query * a.outStride, a.outStride, a.n - row, a.d, out,
                a.dropped.scale / total[0], a.dropped.scale / total[1], tiles, row);
  if (normalizers != nullptr && t == 0) {
    for (int i = 0; i < 2; i++) {
      if (row + g + 8 * i < a.n) normalizers[a.statistics + query + g + 8 * i] = top[i] * a.scale + logf(total[i]);
    }
  }
}

// The gradient of a logit whose weight is s, given the gradient dp of the weight.
__device__ __forceinline__ float logit_gradient(float s, float dp, float delta) { return s * (dp - delta); }

template <int D>
__device__ void backward_queries(bf16* dqkv, const bf16* qkv, const bf16* dContext, const float* normalizers,
                                 const float* delta, const attention& a) {
  SHARED(bf16, tiles);
  constexpr int TILE = ROWS * D;
  bf16 *keys = tiles + 2 * TILE, *values = tiles + 4 * TILE; // two each
  const bf16 *keyRows = a.part(qkv, 1), *valueRows = a.part(qkv, 2);
  const bool aligned = aligned_rows(a.d, a.stride);
  const int row = warp_number() * GROUP, query = a.lo + row;
  const int g = lane_number() >> 2, t = lane_number() & 3;
  const float scale2 = a.scale * LOG2_E;

  auto load = [&](int buffer, int j) {
    int n = min(ROWS, a.to - j);
    load_tile<D>(keys + buffer * TILE, keyRows + (long long)j * a.stride, a.stride, n, a.d, aligned);
    load_tile<D>(values + buffer * TILE, valueRows + (long long)j * a.stride, a.stride, n, a.d, aligned);
  };
  load_tile<D>(tiles, a.part(qkv, 0) + (long long)a.lo * a.stride, a.stride, a.n, a.d, aligned);
  load_tile<D>(tiles + TILE, a.result(dContext) + (long long)a.lo * a.outStride, a.outStride, a.n, a.d,
               aligned_rows(a.d, a.outStride));
  load(0, a.from);
  copy_commit();

  float normalizer2[2], sum[2]; // of rows g and g+8
  for (int i = 0; i < 2; i++) {
    bool valid = row + g + 8 * i < a.n;
    normalizer2[i] = valid ? normalizers[a.statistics + query + g + 8 * i] * LOG2_E : infinity();
    sum[i] = valid ? delta[a.statistics + query + g + 8 * i] : 0;
  }
  left<D> queries, gradients;
  float dq[D / 8][4] = {};
  int buffer = 0;
  for (int j = a.from; j < a.to; j += ROWS, buffer ^= 1) {
    if (j + ROWS < a.to) load(buffer ^ 1, j + ROWS);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    if (row < a.n) {
      if (j == a.from) queries.load(tiles, row), gradients.load(tiles + TILE, row);
      const int m = min(ROWS, a.to - j);
      const bool edge = m < ROWS || a.window > 0;
      unsigned kept[2][2];
      if (a.dropped.bound > 0) mask_of_queries(kept, a, query, j, m);
#pragma unroll
      for (int h = 0; h < ROWS / GROUP; h++) { // 16 keys
        if (h * GROUP < m) {
          float s[2][4], dp[2][4];
          multiply_transposed<D>(s, queries, keys + buffer * TILE, h * GROUP);
          multiply_transposed<D>(dp, gradients, values + buffer * TILE, h * GROUP);
#pragma unroll
          for (int f = 0; f < 2; f++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int i = e >> 1, column = h * GROUP + 8 * f + 2 * t + (e & 1);
              float weight = fast_exp2(fmaf(s[f][e], scale2, -normalizer2[i]));
              if (edge && a.outside(query + g + 8 * i, j + column)) weight = 0;
              if (a.dropped.bound > 0) {
                bool keeps = kept[i][h / 2] >> (h % 2 * GROUP + 8 * f + (e & 1)) & 1;
                dp[f][e] = keeps ? dp[f][e] * a.dropped.scale : 0;
              }
              s[f][e] = logit_gradient(weight, dp[f][e], sum[i]);
            }
          }
          add_product<D>(dq, s, keys + buffer * TILE, h * GROUP);
        }
      }
    }
    __syncthreads();
  }
  copy_wait<0>();
  if (row < a.n) {
    store_rows<D>(a.part(dqkv, 0) + (long long)query * a.stride, a.stride, a.n - row, a.d, dq, a.scale, a.scale, tiles, row);
  }
}

// kept[f][e] has in bit 16·h + 8·i whether the mask keeps the weight of the warp's key lane/4 + 8·i and query 32·h + 8·f +
// 2·(lane%4) + e, of m ≤ 64 queries from first on. key is the warp's first. Each lane makes the bits of two queries.
__device__ __forceinline__ void mask_of_keys(unsigned kept[4][2], const attention& a, int key, int first, int m) {
  int lane = lane_number();
  unsigned mine = 0;
#pragma unroll 1
  for (int h = 0; h < 2; h++) {
    if (32 * h + lane >= m) continue;
    unsigned long long element = (unsigned long long)(first + 32 * h + lane) * a.length + key;
    mine |= kept_bits(a.dropped, a.counter, element, min(GROUP, a.length - key)) << GROUP * h;
  }
#pragma unroll
  for (int f = 0; f < 4; f++) {
#pragma unroll
    for (int e = 0; e < 2; e++) kept[f][e] = __shfl_sync(0xffffffffu, mine, 8 * f + 2 * (lane & 3) + e) >> (lane >> 2);
  }
}

template <int D>
__device__ void backward_keys(bf16* dqkv, const bf16* qkv, const bf16* dContext, const float* normalizers, const float* delta,
                              const attention& a) {
  SHARED(bf16, tiles);
  constexpr int TILE = ROWS * D;
  bf16 *queries = tiles + 2 * TILE, *gradients = tiles + 4 * TILE;      // two each
  float* statistics = reinterpret_cast<float*>(tiles + 6 * TILE);       // two of [2 ROWS]: normalizers, deltas
  const bf16 *queryRows = a.part(qkv, 0), *gradientRows = a.result(dContext);
  const bool aligned = aligned_rows(a.d, a.stride), alignedResult = aligned_rows(a.d, a.outStride);
  const int row = warp_number() * GROUP, key = a.lo + row;
  const int g = lane_number() >> 2, t = lane_number() & 3;
  const float scale2 = a.scale * LOG2_E;

  auto load = [&](int buffer, int i) {
    int n = min(ROWS, a.to - i);
    load_tile<D>(queries + buffer * TILE, queryRows + (long long)i * a.stride, a.stride, n, a.d, aligned);
    load_tile<D>(gradients + buffer * TILE, gradientRows + (long long)i * a.outStride, a.outStride, n, a.d, alignedResult);
    int r = threadIdx.x % ROWS;
    float* to = statistics + buffer * 2 * ROWS;
    if (threadIdx.x < ROWS) {
      to[r] = r < n ? normalizers[a.statistics + i + r] * LOG2_E : infinity();
    } else {
      to[ROWS + r] = r < n ? delta[a.statistics + i + r] : 0;
    }
  };
  load_tile<D>(tiles, a.part(qkv, 1) + (long long)a.lo * a.stride, a.stride, a.n, a.d, aligned);
  load_tile<D>(tiles + TILE, a.part(qkv, 2) + (long long)a.lo * a.stride, a.stride, a.n, a.d, aligned);
  load(0, a.from);
  copy_commit();

  left<D> keys, values;
  float dk[D / 8][4] = {}, dv[D / 8][4] = {};
  int buffer = 0;
  for (int i = a.from; i < a.to; i += ROWS, buffer ^= 1) {
    if (i + ROWS < a.to) load(buffer ^ 1, i + ROWS);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    if (row < a.n) {
      if (i == a.from) keys.load(tiles, row), values.load(tiles + TILE, row);
      const int m = min(ROWS, a.to - i);
      const float* normalizer2 = statistics + buffer * 2 * ROWS;
      unsigned kept[4][2];
      if (a.dropped.bound > 0) mask_of_keys(kept, a, key, i, m);
#pragma unroll
      for (int h = 0; h < ROWS / GROUP; h++) { // 16 queries
        if (h * GROUP < m) {
          float s[2][4], dp[2][4]; // transposed: a row is a key
          multiply_transposed<D>(s, keys, queries + buffer * TILE, h * GROUP);
          multiply_transposed<D>(dp, values, gradients + buffer * TILE, h * GROUP);
#pragma unroll
          for (int f = 0; f < 2; f++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int query = h * GROUP + 8 * f + 2 * t + (e & 1);
              float weight = fast_exp2(fmaf(s[f][e], scale2, -normalizer2[query]));
              if (a.window > 0 && a.outside(i + query, key + g + 8 * (e >> 1))) weight = 0;
              bool keeps = true;
              if (a.dropped.bound > 0) {
                keeps = kept[h % 2 * 2 + f][e & 1] >> (h / 2 * GROUP + 8 * (e >> 1)) & 1;
                dp[f][e] = keeps ? dp[f][e] * a.dropped.scale : 0;
              }
              dp[f][e] = logit_gradient(weight, dp[f][e], normalizer2[ROWS + query]);
              s[f][e] = keeps ? weight : 0;
            }
          }
          add_product<D>(dv, s, gradients + buffer * TILE, h * GROUP);
          add_product<D>(dk, dp, queries + buffer * TILE, h * GROUP);
        }
      }
    }
    __syncthreads();
  }
  copy_wait<0>();
  if (row < a.n) {
    store_rows<D>(a.part(dqkv, 1) + (long long)key * a.stride, a.stride, a.n - row, a.d, dk, a.scale, a.scale, tiles, row);
    store_rows<D>(a.part(dqkv, 2) + (long long)key * a.stride, a.stride, a.n - row, a.d, dv, a.dropped.scale,
                  a.dropped.scale, tiles, row);
  }
}

} // namespace

#define ATTENTION_BF16(D, FORWARD, BACKWARD)                                                                                             \
  KERNEL_OF(THREADS, FORWARD, attention_forward_bf16_##D, bf16* context, float* normalizers, const bf16* qkv,                  \
            ATTENTION_PARAMETERS) {                                                                                           \
    forward<D>(context, normalizers, qkv, ATTENTION_ARGUMENTS);                                                               \
  }                                                                                                                           \
  KERNEL_OF(THREADS, BACKWARD, attention_backward_queries_bf16_##D, bf16* dqkv, const bf16* qkv, const bf16* dContext,          \
            const float* normalizers, const float* delta, ATTENTION_PARAMETERS) {                                             \
    backward_queries<D>(dqkv, qkv, dContext, normalizers, delta, ATTENTION_ARGUMENTS);                                        \
  }                                                                                                                           \
  KERNEL_OF(THREADS, BACKWARD, attention_backward_keys_bf16_##D, bf16* dqkv, const bf16* qkv, const bf16* dContext,             \
            const float* normalizers, const float* delta, ATTENTION_PARAMETERS) {                                             \
    backward_keys<D>(dqkv, qkv, dContext, normalizers, delta, ATTENTION_ARGUMENTS);                                           \
  }

// The blocks that are to fit a multiprocessor bound the registers.
ATTENTION_BF16(32, 4, 4)
ATTENTION_BF16(64, 4, 3)
ATTENTION_BF16(128, 2, 2)

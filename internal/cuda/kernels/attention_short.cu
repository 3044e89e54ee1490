// Attention of bfloat16 for texts of at most 128 rows and heads of at most 64 columns, on tensor cores. The forward pass is one
// kernel, and the backward pass is one. Logits, softmax and sums are in float32; weights and their gradients are rounded to bfloat16
// as operands of products.
//
// A block has eight warps, and a warp 16 rows of a text: its item. The texts of a block, one or several, have all their rows in
// it, those of a text in consecutive warps. Row r of warp w's item is row 16·w + r of the block's tiles. An item of length 0 has no
// rows. A text's results do not depend on which warps of a block have it, or on the block's other texts.
//
// D, the columns of a tile, is 32 or 64; narrower heads are padded with zeros in shared memory. Heads and rows of qkv and of
// results have multiples of 8 columns.
//
// Launch: blocks of 256 threads; shared memory of 768·D + 2064 bytes forward, and backward of 1024·D + 5136 and of 32768 more with
// D = 32, 16384 with D = 64.
#include "attention_tiles.h"

namespace {

constexpr int WARPS = 8, THREADS = 32 * WARPS, ROWS = GROUP * WARPS;

// The mask of a block: of a text that begins in warp w, from byte 256·w on, the bits of its elements in the order of their
// indices. 16 bytes more are read, but not used.
constexpr int MASK = ROWS * ROWS / 8 + 16; // bytes

// An item, and where its text begins in the block's tiles.
struct short_attention : attention {
  int slot; // warp of the text's first row
  int groups; // of 16 rows, that the text has
  int group; // the item's

  __device__ __forceinline__ int tile_row(int group) const { return (slot + group) * GROUP; }
};

__device__ __forceinline__ short_attention open_short(const int* items, int heads, int d, int stride, int outStride, int tokens,
                                                      float scale, int window, drop dropped) {
  const int* item = items + (blockIdx.x * WARPS + warp_number()) * 4;
  short_attention a;
  a.length = item[1];
  a.lo = item[2];
  a.n = min(GROUP, a.length - a.lo);
  a.group = a.lo / GROUP;
  a.groups = (a.length + GROUP - 1) / GROUP;
  a.slot = warp_number() - a.group;
  a.window = window;
  a.from = window > 0 ? max(0, a.lo - window) / GROUP : 0; // groups that are read for the item
  a.to = window > 0 ? min(a.length, a.lo + a.n + window) : a.length;
  a.to = (a.to + GROUP - 1) / GROUP;
  a.heads = heads, a.d = d, a.stride = stride, a.outStride = outStride;
  a.row = item[0];
  a.head = blockIdx.y;
  a.statistics = (long long)a.head * tokens + a.row;
  a.scale = scale;
  a.dropped = dropped;
  if (dropped.bound == 0) a.dropped.scale = 1;
  a.counter = (unsigned long long)item[3] * heads + a.head;
  return a;
}

#define SHORT_ARGUMENTS open_short(items, heads, d, stride, outStride, tokens, scale, window, drop{key, bound, dropScale})

// Begins to load the item's rows of x to the tile, and zeros for those and the columns that it does not have.
template <int D> __device__ __forceinline__ void load_item(bf16* tile, const bf16* x, int stride, const short_attention& a) {
  share<D> mine;
#pragma unroll
  for (int i = 0; i < mine.count; i++) {
    bool valid = mine.row(i) < a.n && mine.chunk * 8 < a.d;
    copy16(tile + chunk_at<D>(warp_number() * GROUP + mine.row(i), mine.chunk),
           valid ? x + (long long)(a.lo + mine.row(i)) * stride + mine.chunk * 8 : x, valid);
  }
}

// Writes sums [16 D] of the item, times scale0 in rows 0 to 7 and scale1 in the others, to its rows of out, through its rows of
// tile, which only this warp uses.
template <int D>
__device__ __forceinline__ void store_item(bf16* out, int stride, const float sums[D / 8][4], float scale0, float scale1, bf16* tile,
                                           const short_attention& a) {
  store_aligned<D>(out + (long long)a.lo * stride, stride, a.n, a.d, sums, scale0, scale1, tile, warp_number() * GROUP);
}

// Makes the warp's part of the mask of the item's text: a lane makes 8 bits at a time.
__device__ __forceinline__ void make_mask(unsigned char* mask, const short_attention& a) {
  const int bytes = (a.length * a.length + 7) / 8;
#pragma unroll 1
  for (int i = a.group * 32 + lane_number(); i < bytes; i += a.groups * 32) {
    words4 x = philox(a.dropped.key, a.counter, 2u * i), y = philox(a.dropped.key, a.counter, 2u * i + 1);
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      bits |= (x.w[k] >= a.dropped.bound ? 1u << k : 0u) | (y.w[k] >= a.dropped.bound ? 16u << k : 0u);
    }
    mask[a.slot * (ROWS * GROUP / 8) + i] = (unsigned char)bits;
  }
}

// What a lane copies of the mask of its item's text to or from memory, which the forward pass keeps it in for the backward pass:
// masks [heads T 16] bytes, of which those of the text's rows have its bits. The lane has the 16 bytes from 16·i on, for each i
// of first, first + step … below end.
struct mask_share {
  int first, step, end;
  long long at; // in masks
  int shared;   // in the block's mask

  __device__ __forceinline__ explicit mask_share(const short_attention& a)
      : first(a.group * 32 + lane_number()), step(a.groups * 32), end((a.length * a.length + 127) / 128), at(a.statistics * 16),
        shared(a.slot * (ROWS * GROUP / 8)) {}
};

__device__ __forceinline__ void store_mask(unsigned char* masks, const unsigned char* mask, const short_attention& a) {
  mask_share mine(a);
  for (int i = mine.first; i < mine.end; i += mine.step) {
    reinterpret_cast<uint4*>(masks + mine.at)[i] = reinterpret_cast<const uint4*>(mask + mine.shared)[i];
  }
}

__device__ __forceinline__ void load_mask(unsigned char* mask, const unsigned char* masks, const short_attention& a) {
  mask_share mine(a);
  for (int i = mine.first; i < mine.end; i += mine.step) copy16(mask + mine.shared + 16 * i, masks + mine.at + 16 * i, true);
}

// 32 bits of the mask of the item's text, from element index on.
__device__ __forceinline__ unsigned mask_bits(const unsigned char* mask, const short_attention& a, int index) {
  const unsigned* words = reinterpret_cast<const unsigned*>(mask) + a.slot * (ROWS * GROUP / 32) + (index >> 5);
  return (unsigned)((words[0] | (unsigned long long)words[1] << 32) >> (index & 31));
}

template <int D> __device__ void forward_short(bf16* context, float* normalizers, unsigned char* masks, const bf16* qkv,
                                                     const short_attention& a) {
  SHARED(bf16, queries);
  bf16 *keys = queries + ROWS * D, *values = keys + ROWS * D;
  unsigned char* mask = reinterpret_cast<unsigned char*>(values + ROWS * D);
  const int g = lane_number() >> 2, t = lane_number() & 3;
  const float scale2 = a.scale * LOG2_E;

  load_item<D>(queries, a.part(qkv, 0), a.stride, a);
  load_item<D>(keys, a.part(qkv, 1), a.stride, a);
  copy_commit();
  load_item<D>(values, a.part(qkv, 2), a.stride, a);
  copy_commit();
  if (a.dropped.bound > 0) make_mask(mask, a);
  copy_wait<0>();
  __syncthreads();
  if (a.n <= 0) return;
  if (a.dropped.bound > 0 && masks != nullptr) store_mask(masks, mask, a);

  float s[WARPS * 2][4]; // logits, then weights
  {
    left<D> mine;
    mine.load(queries, warp_number() * GROUP);
#pragma unroll
    for (int p = 0; p < WARPS; p++) {
      if (p < a.from || p >= a.to) {
#pragma unroll
        for (int e = 0; e < 4; e++) s[2 * p][e] = s[2 * p + 1][e] = -infinity();
        continue;
      }
      multiply_transposed<D>(s + 2 * p, mine, keys, a.tile_row(p));
      if (a.window > 0 || (p + 1) * GROUP > a.length) {
#pragma unroll
        for (int f = 0; f < 2; f++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            if (a.outside(a.lo + g + 8 * (e >> 1), p * GROUP + 8 * f + 2 * t + (e & 1))) s[2 * p + f][e] = -infinity();
          }
        }
      }
    }
  }
  float top[2], total[2]; // of rows g and g+8
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float highest = -infinity(), sum = 0;
#pragma unroll
    for (int f = 0; f < 2 * WARPS; f++) highest = fmaxf(highest, fmaxf(s[f][2 * i], s[f][2 * i + 1]));
    highest = max_of_row(highest);
    float base = highest == -infinity() ? 0 : highest * scale2; // a row that the text does not have
#pragma unroll
    for (int f = 0; f < 2 * WARPS; f++) { // also where no group is read: 0
      s[f][2 * i] = fast_exp2(fmaf(s[f][2 * i], scale2, -base));
      s[f][2 * i + 1] = fast_exp2(fmaf(s[f][2 * i + 1], scale2, -base));
      sum += s[f][2 * i] + s[f][2 * i + 1];
    }
    top[i] = highest;
    total[i] = sum_of_row(sum);
  }
  if (a.dropped.bound > 0) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int query = min(a.lo + g + 8 * i, a.length - 1);
#pragma unroll
      for (int h = 0; h < WARPS / 2; h++) {
        if (2 * h < a.from - 1 || 2 * h >= a.to) continue;
        unsigned kept = mask_bits(mask, a, query * a.length + 32 * h) >> 2 * t;
#pragma unroll
        for (int f = 0; f < 4; f++) {
          s[4 * h + f][2 * i] = (kept & 1u << 8 * f) != 0 ? s[4 * h + f][2 * i] : 0;
          s[4 * h + f][2 * i + 1] = (kept & 2u << 8 * f) != 0 ? s[4 * h + f][2 * i + 1] : 0;
        }
      }
    }
  }
  float out[D / 8][4] = {};
#pragma unroll
  for (int p = 0; p < WARPS; p++) {
    if (p >= a.from && p < a.to) add_product<D>(out, s + 2 * p, values, a.tile_row(p));
  }
  store_item<D>(a.result(context), a.outStride, out, a.dropped.scale / total[0], a.dropped.scale / total[1], queries, a);
  if (normalizers != nullptr && t == 0) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (g + 8 * i < a.n) normalizers[a.statistics + a.lo + g + 8 * i] = top[i] * a.scale + logf(total[i]);
    }
  }
}

// The tiles of gradients of logits: rows are the keys of the block, columns the queries of a text, in two tiles of 64.
constexpr int HALF = 64;

// statistics [128 2]: of each row, its normalizer as a power of two, and the sum of its products of a result and its gradient,
// divided by the dropout's scale. Rows that the text does not have get weights of 0.
template <int D>
__device__ __forceinline__ void make_statistics(float* statistics, const uint4* results, const bf16* gradients,
                                                const float* normalizers, const short_attention& a) {
  share<D> mine;
  const float unscale = 1 / a.dropped.scale;
#pragma unroll
  for (int i = 0; i < mine.count; i++) {
    const uint4 x = results[i], y = *reinterpret_cast<const uint4*>(gradients + chunk_at<D>(warp_number() * GROUP + mine.row(i), mine.chunk));
    float sum = low_bf16(x.x) * low_bf16(y.x);
    sum = fmaf(high_bf16(x.x), high_bf16(y.x), sum);
    sum = fmaf(low_bf16(x.y), low_bf16(y.y), sum), sum = fmaf(high_bf16(x.y), high_bf16(y.y), sum);
    sum = fmaf(low_bf16(x.z), low_bf16(y.z), sum), sum = fmaf(high_bf16(x.z), high_bf16(y.z), sum);
    sum = fmaf(low_bf16(x.w), low_bf16(y.w), sum), sum = fmaf(high_bf16(x.w), high_bf16(y.w), sum);
#pragma unroll
    for (int offset = 1; offset < D / 8; offset *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (mine.chunk == 0) statistics[2 * (warp_number() * GROUP + mine.row(i)) + 1] = sum * unscale;
  }
  if (lane_number() < GROUP) {
    bool valid = lane_number() < a.n;
    statistics[2 * (warp_number() * GROUP + lane_number())] =
        valid ? normalizers[a.statistics + a.lo + lane_number()] * LOG2_E : infinity();
  }
}

template <int D>
__device__ void backward_short(bf16* dqkv, const bf16* qkv, const bf16* context, const bf16* dContext, const float* normalizers,
                               const unsigned char* masks, const short_attention& a) {
  SHARED(bf16, queries);
  bf16 *gradients = queries + ROWS * D, *keys = gradients + ROWS * D, *values = keys + ROWS * D;
  // With D = 64, the first tile of gradients is that of the values: each warp reads and writes its own rows only.
  bf16 *logits = D == HALF ? values : values + ROWS * D;
  float* statistics = reinterpret_cast<float*>(logits + 2 * ROWS * HALF);
  unsigned char* mask = reinterpret_cast<unsigned char*>(statistics + 2 * ROWS);
  unsigned short* kept = reinterpret_cast<unsigned short*>(mask + MASK) + warp_number() * ROWS; // of each query, the item's 16 keys
  const bool drops = a.dropped.bound > 0;
  const int g = lane_number() >> 2, t = lane_number() & 3, row = warp_number() * GROUP;
  const float scale2 = a.scale * LOG2_E;

  load_item<D>(gradients, a.result(dContext), a.outStride, a);
  load_item<D>(keys, a.part(qkv, 1), a.stride, a);
  load_item<D>(values, a.part(qkv, 2), a.stride, a);
  load_item<D>(queries, a.part(qkv, 0), a.stride, a);
  if (drops) load_mask(mask, masks, a);
  copy_commit();
  {
    share<D> mine;
    uint4 results[mine.count];
#pragma unroll
    for (int i = 0; i < mine.count; i++) {
      results[i] = make_uint4(0, 0, 0, 0);
      if (mine.row(i) < a.n && mine.chunk * 8 < a.d) {
        results[i] = *reinterpret_cast<const uint4*>(a.result(context) + (long long)(a.lo + mine.row(i)) * a.outStride + mine.chunk * 8);
      }
    }
    copy_wait<0>();
    make_statistics<D>(statistics, results, gradients, normalizers, a);
  }
  __syncthreads();

  float dk[D / 8][4] = {}, dv[D / 8][4] = {};
  if (a.n > 0) {
    left<D, D < HALF> myKeys; // held in registers where these are enough
    left<D> myValues;
    myKeys.load(keys, row), myValues.load(values, row);
    for (int q = lane_number(); q < a.groups * GROUP; q += 32) {
      kept[q] = drops && q < a.length ? (unsigned short)mask_bits(mask, a, q * a.length + a.lo) : 0xffff;
    }
    __syncwarp();
    const bool edge = a.window > 0 || a.n < GROUP;
    const int reach = a.window > 0 ? a.window : ROWS;
#pragma unroll 1
    for (int p = a.from; p < a.to; p++) { // 16 queries
      float s[2][4], dp[2][4]; // transposed: a row is a key
      multiply_transposed<D>(s, myKeys, queries, a.tile_row(p));
      multiply_transposed<D>(dp, myValues, gradients, a.tile_row(p));
#pragma unroll
      for (int f = 0; f < 2; f++) {
        const int query = p * GROUP + 8 * f + 2 * t;
        const float4 of = *reinterpret_cast<const float4*>(statistics + 2 * (a.slot * GROUP + query));
        const unsigned keeps = *reinterpret_cast<const unsigned*>(kept + query) >> g;
#pragma unroll
        for (int e = 0; e < 4; e++) {
          bool keep = (keeps & 1u << (16 * (e & 1) + 8 * (e >> 1))) != 0;
          float weight = fast_exp2(fmaf(s[f][e], scale2, -(e & 1 ? of.z : of.x)));
          s[f][e] = keep ? weight : 0;
          dp[f][e] = weight * ((keep ? dp[f][e] : 0) - (e & 1 ? of.w : of.y));
        }
      }
      if (edge) {
#pragma unroll
        for (int f = 0; f < 2; f++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int key = a.lo + g + 8 * (e >> 1), query = p * GROUP + 8 * f + 2 * t + (e & 1);
            bool outside = (key >= a.length) | (abs(query - key) > reach);
            s[f][e] = outside ? 0 : s[f][e];
            dp[f][e] = outside ? 0 : dp[f][e];
          }
        }
      }
      unsigned left[4];
      as_left(left, s);
      add_product<D>(dv, left, gradients, a.tile_row(p));
      as_left(left, dp);
      add_product<D>(dk, left, queries, a.tile_row(p));
      bf16* to = logits + ((p >> 2) * ROWS * HALF + chunk_at<HALF>(row + g, 0) + 2 * t ^ (p & 3) * GROUP);
      *reinterpret_cast<unsigned*>(to) = left[0];
      *reinterpret_cast<unsigned*>(to + 8 * HALF) = left[1];
      to = logits + ((p >> 2) * ROWS * HALF + chunk_at<HALF>(row + g, 1) + 2 * t ^ (p & 3) * GROUP);
      *reinterpret_cast<unsigned*>(to) = left[2];
      *reinterpret_cast<unsigned*>(to + 8 * HALF) = left[3];
    }
  }
  __syncthreads();
  if (a.n <= 0) return;

  const float scale = a.scale * a.dropped.scale;
  store_item<D>(a.part(dqkv, 2), a.stride, dv, a.dropped.scale, a.dropped.scale, gradients, a);
  store_item<D>(a.part(dqkv, 1), a.stride, dk, scale, scale, queries, a);
  float dq[D / 8][4] = {};
  const bf16* mine = logits + (a.group >> 2) * ROWS * HALF; // the item's queries as columns
#pragma unroll 1
  for (int p = a.from; p < a.to; p++) { // 16 keys
    unsigned left[4];
    load_left_transposed<HALF>(left, mine, a.tile_row(p), a.group & 3);
    add_product<D>(dq, left, keys, a.tile_row(p));
  }
  store_item<D>(a.part(dqkv, 0), a.stride, dq, scale, scale, gradients, a);
}

} // namespace

#define ATTENTION_SHORT(D)                                                                                         \
  KERNEL_OF(THREADS, 2, attention_forward_short_bf16_##D, bf16* context, float* normalizers, unsigned char* masks, \
            const bf16* qkv, ATTENTION_PARAMETERS) {                                                               \
    forward_short<D>(context, normalizers, masks, qkv, SHORT_ARGUMENTS);                                           \
  }                                                                                                                \
  KERNEL_OF(THREADS, 2, attention_backward_short_bf16_##D, bf16* dqkv, const bf16* qkv, const bf16* context,       \
            const bf16* dContext, const float* normalizers, const unsigned char* masks, ATTENTION_PARAMETERS) {    \
    backward_short<D>(dqkv, qkv, context, dContext, normalizers, masks, SHORT_ARGUMENTS);                          \
  }

ATTENTION_SHORT(32)
ATTENTION_SHORT(64)

// What the attention kernels of float32 and of bfloat16 share. ../attention.go launches them, with a grid of items by heads, and
// has the sizes of their blocks and shared memory.
//
//   qkv, dqkv      [T stride]: queries of a head at column head·d, keys at (heads + head)·d, values at (2·heads + head)·d
//   context        [T outStride], and dContext, its gradient: a head at column head·d
//   normalizers    [heads T], logarithms of the softmaxes' denominators; delta [heads T], what attention_delta writes
//   items          [n 4]: the first row of a text, its length, the first row of the text that a block works on, the text's number
//   window         a query reads the keys that are at most so many rows before or after it; 0: all
//
// No row outside a text is read for it. Sums have an order that depends on the text alone.
#pragma once
#include "device.h"

#define ATTENTION_ROWS 64 // queries or keys of a block

// The arguments that all kernels but attention_delta have last.
#define ATTENTION_PARAMETERS                                                                                    \
  const int *items, int heads, int d, int stride, int outStride, int tokens, float scale, int window,          \
      unsigned long long key, unsigned bound, float dropScale

#define ATTENTION_ARGUMENTS \
  open_attention(items, heads, d, stride, outStride, tokens, scale, window, drop{key, bound, dropScale})

// One head of a text, and the rows of it that a block works on: rows lo … lo+n-1, which have the rows from … to-1 of the
// text in their windows. All count from the text's first row.
struct attention {
  int length, lo, n, from, to, window;
  int heads, d, stride, outStride;
  long long row;         // the text's first
  long long statistics;  // where the text's normalizers and deltas begin
  int head;
  float scale;
  drop dropped;
  unsigned long long counter; // of the mask

  __device__ __forceinline__ int column(int part) const { return (part * heads + head) * d; } // 0: queries; 1: keys; 2: values
  // The text's first row of a part of qkv, and of a result.
  template <class A> __device__ __forceinline__ A* part(A* qkv, int part) const { return qkv + row * stride + column(part); }
  template <class A> __device__ __forceinline__ A* result(A* out) const { return out + row * outStride + head * d; }
  __device__ __forceinline__ bool outside(int query, int key) const {
    return key >= length || window > 0 && (query - key > window || key - query > window);
  }
};

__device__ __forceinline__ attention open_attention(const int* items, int heads, int d, int stride, int outStride,
                                                    int tokens, float scale, int window, drop dropped) {
  const int* item = items + blockIdx.x * 4;
  attention a;
  a.length = item[1];
  a.lo = item[2];
  a.n = min(ATTENTION_ROWS, a.length - a.lo);
  a.window = window;
  a.from = window > 0 ? max(0, a.lo - window) : 0;
  a.to = window > 0 ? min(a.length, a.lo + a.n + window) : a.length;
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

// Bit i is whether the dropout keeps element first+i of mask `counter`, for i < count ≤ 32; the other bits are 0.
__device__ __forceinline__ unsigned kept_bits(drop d, unsigned long long counter, unsigned long long first, int count) {
  if (count <= 0) return 0;
  int skipped = (int)(first & 3); // elements of the first four random words before it
  unsigned long long bits = 0;
#pragma unroll 1
  for (int i = 0; i < count + skipped; i += 4) {
    words4 random = philox(d.key, counter, (first + i) >> 2);
    unsigned four = (random.w[0] >= d.bound ? 1u : 0u) | (random.w[1] >= d.bound ? 2u : 0u) |
                    (random.w[2] >= d.bound ? 4u : 0u) | (random.w[3] >= d.bound ? 8u : 0u);
    bits |= (unsigned long long)four << i;
  }
  return (unsigned)(bits >> skipped) & (count < 32 ? (1u << count) - 1 : 0xffffffffu);
}

#define LOG2_E 1.44269504088896341f

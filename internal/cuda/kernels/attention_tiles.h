// Tiles of bfloat16 in shared memory and products of them on tensor cores, for the attention kernels of bfloat16.
//
// A tile has D columns, 32, 64 or 128. A product's fragments are those of mma_16816_bf16: of a group of 16 rows, a lane has rows
// lane/4 and lane/4 + 8.
#pragma once
#include "attention.h"

constexpr int GROUP = 16; // rows of a fragment

// Where 8 columns from 8·c on begin in row r of a tile: rows are stored without padding, in an order of columns for
// which eight consecutive rows of the same columns are in different banks.
template <int D> __device__ __forceinline__ int chunk_at(int r, int c) {
  return r * D + ((c ^ (D == 32 ? r >> 1 & 3 : r & 7)) << 3);
}

// Where the lane's row of the matrices of 16 rows and columns begins in the tile, from row `row` (a multiple of 8) and column 16·k
// on: matrices below each other first, or beside each other.
template <int D> __device__ __forceinline__ int down_at(int row, int k) {
  const int lane = lane_number();
  return (row * D + chunk_at<D>(lane & 15, lane >> 4)) ^ k * GROUP; // the order of columns is that of column 0, but for these bits
}

template <int D> __device__ __forceinline__ int across_at(int row, int k) {
  const int lane = lane_number();
  return (row * D + chunk_at<D>((lane & 7) + (lane >> 4 << 3), lane >> 3 & 1)) ^ k * GROUP;
}

// The fragment of 16 rows from row on and the 16 columns from 16·k on of a tile, as the first operand of a product.
template <int D> __device__ __forceinline__ void load_left(unsigned a[4], const bf16* tile, int row, int k) {
  ldmatrix_x4(a, tile + down_at<D>(row, k));
}

// The fragment of the transposed tile: 16 columns from 16·k on as rows, and the 16 rows from row on as columns.
template <int D> __device__ __forceinline__ void load_left_transposed(unsigned a[4], const bf16* tile, int row, int k) {
  ldmatrix_x4_trans(a, tile + across_at<D>(row, k));
}

// Two fragments of the transposed tile as the second operand: of its rows row … row+7 and row+8 … row+15 as columns.
template <int D> __device__ __forceinline__ void load_right_transposed(unsigned b[4], const bf16* tile, int row, int k) {
  ldmatrix_x4(b, tile + across_at<D>(row, k));
}

// Two fragments of the tile as the second operand: of 16 rows from row on, and the 16 columns from 16·k on.
template <int D> __device__ __forceinline__ void load_right(unsigned b[4], const bf16* tile, int row, int k) {
  ldmatrix_x4_trans(b, tile + down_at<D>(row, k));
}

// 16 rows of a tile as first operands of products: in registers if HELD, else read again for each product.
template <int D, bool HELD = D <= 64> struct left {
  static constexpr bool held = HELD;
  unsigned a[held ? D / 16 : 1][4];
  const bf16* tile;
  int row;

  __device__ __forceinline__ void load(const bf16* from, int first) {
    tile = from, row = first;
    if (held) {
#pragma unroll
      for (int k = 0; k < D / 16; k++) load_left<D>(a[held ? k : 0], tile, row, k);
    }
  }
  __device__ __forceinline__ const unsigned* at(int k) {
    if (!held) load_left<D>(a[0], tile, row, k);
    return a[held ? k : 0];
  }
};

// c [16 16], two fragments, becomes the product of 16 rows and the transposed rows row … row+15 of a tile.
template <int D, bool HELD> __device__ __forceinline__ void multiply_transposed(float c[2][4], left<D, HELD>& a, const bf16* tile, int row) {
#pragma unroll
  for (int i = 0; i < 4; i++) c[0][i] = c[1][i] = 0;
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
    unsigned b[4];
    load_right_transposed<D>(b, tile, row, k);
    const unsigned* rows = a.at(k);
    mma_16816_bf16(c[0], rows, b);
    mma_16816_bf16(c[1], rows, b + 2);
  }
}

// a becomes x [16 16], two fragments of a product, as the first operand of another.
__device__ __forceinline__ void as_left(unsigned a[4], const float x[2][4]) {
  a[0] = pack_bf16(x[0][0], x[0][1]), a[1] = pack_bf16(x[0][2], x[0][3]);
  a[2] = pack_bf16(x[1][0], x[1][1]), a[3] = pack_bf16(x[1][2], x[1][3]);
}

// sums [16 D] += a [16 16] · the rows row … row+15 of a tile.
template <int D> __device__ __forceinline__ void add_product(float sums[D / 8][4], const unsigned a[4], const bf16* tile, int row) {
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
    unsigned b[4];
    load_right<D>(b, tile, row, k);
    mma_16816_bf16(sums[2 * k], a, b);
    mma_16816_bf16(sums[2 * k + 1], a, b + 2);
  }
}

template <int D> __device__ __forceinline__ void add_product(float sums[D / 8][4], const float x[2][4], const bf16* tile, int row) {
  unsigned a[4];
  as_left(a, x);
  add_product<D>(sums, a, tile, row);
}

// A lane has 8 columns of each of the 16 rows first + step·i.
template <int D> struct share {
  static constexpr int step = 32 / (D / 8), count = GROUP / step;
  int first, chunk; // chunk: the columns divided by 8

  __device__ __forceinline__ share() : first(lane_number() / (D / 8)), chunk(lane_number() % (D / 8)) {}
  __device__ __forceinline__ int row(int i) const { return first + step * i; }
};

// Whether all rows of heads are aligned to 16 bytes, and have multiples of 8 columns.
__device__ __forceinline__ bool aligned_rows(int d, int stride) { return d % 8 == 0 && stride % 8 == 0; }

// Writes a warp's sums [16 D], times scale0 in rows 0 to 7 and scale1 in the others, to the first n rows and d columns of out, which
// are aligned. They go through the 16 rows from row on of tile, which only this warp uses.
template <int D>
__device__ __forceinline__ void store_aligned(bf16* out, int stride, int n, int d, const float sums[D / 8][4], float scale0, float scale1,
                                              bf16* tile, int row) {
  int g = lane_number() >> 2, t = lane_number() & 3;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < D / 8; k++) {
    bf16* at = tile + chunk_at<D>(row + g, k) + 2 * t;
    *reinterpret_cast<unsigned*>(at) = pack_bf16(sums[k][0] * scale0, sums[k][1] * scale0);
    *reinterpret_cast<unsigned*>(at + 8 * D) = pack_bf16(sums[k][2] * scale1, sums[k][3] * scale1);
  }
  __syncwarp();
  share<D> mine;
#pragma unroll
  for (int i = 0; i < mine.count; i++) {
    const int r = mine.row(i);
    if (r < n && mine.chunk * 8 < d) {
      *reinterpret_cast<uint4*>(out + (long long)r * stride + mine.chunk * 8) =
          *reinterpret_cast<const uint4*>(tile + chunk_at<D>(row + r, mine.chunk));
    }
  }
}

// As store_aligned, of any d and stride.
template <int D>
__device__ __forceinline__ void store_rows(bf16* out, int stride, int n, int d, const float sums[D / 8][4], float scale0, float scale1,
                                           bf16* tile, int row) {
  if (aligned_rows(d, stride)) return store_aligned<D>(out, stride, n, d, sums, scale0, scale1, tile, row);
  int g = lane_number() >> 2, t = lane_number() & 3;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    bf16* to = out + (long long)(g + 8 * i) * stride;
    float scale = i == 0 ? scale0 : scale1;
    if (g + 8 * i >= n) continue;
#pragma unroll
    for (int k = 0; k < D / 8; k++) {
      int j = 8 * k + 2 * t;
      unsigned two = pack_bf16(sums[k][2 * i] * scale, sums[k][2 * i + 1] * scale);
      if (j < d) to[j] = bf16{(unsigned short)two};
      if (j + 1 < d) to[j + 1] = bf16{(unsigned short)(two >> 16)};
    }
  }
}

// The sum, and the largest, of the values of the four lanes that have the same rows of a fragment.
__device__ __forceinline__ float sum_of_row(float v) {
  v += __shfl_xor_sync(0xffffffffu, v, 1);
  return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

__device__ __forceinline__ float max_of_row(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

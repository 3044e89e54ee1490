// Products of matrices: C[m n] = op(A)[m k] · op(B)[k n], all row-major.
//
//	product_nn_T   A [m k] in rows of lda,  B [k n] in rows of ldb
//	product_nt_T   A [m k] in rows of lda,  B [n k] in rows of ldb
//	product_tn_T   A [k m] in rows of lda,  B [k n] in rows of ldb
//
// with T one of
//
//	f32         A, B, C float: products and sums in float32
//	tf32        A, B, C float: A and B are rounded to TF32, sums in float32
//	bf16_f32    A, B bfloat16, C float: sums in float32
//	bf16_bf16   A, B, C bfloat16: sums in float32, rounded once at the end
//
// Arguments: (C, A, B, int m, int n, int k, int lda, int ldb, int ldc,
// int accumulate, const float* bias). bias [n] is added to each row of the
// product; null: none. accumulate 0 overwrites C, otherwise the result is
// added to it. k may be 0.
//
// Launch, the same for all twelve: grid (ceil(n/128), ceil(m/128), 1), block
// (256, 1, 1), dynamic shared bytes
//
//	f32         32768
//	tf32        81920
//	bf16_f32    65536
//	bf16_bf16   65536
//
// (above 49152 the function needs CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
//
// An element sums over k in ascending order, in steps that depend neither on m,
// n nor the place of the element: a row has the same bits alone and in any
// batch. Rows whose address is not a multiple of 16 bytes (a leading dimension
// that is not a multiple of 8 bfloat16 or 4 floats) are read by elements: it is
// slower, and the bits are the same.
#include "device.h"

namespace product {

const int TILE = 128;    // rows and columns of C that a block computes
const int THREADS = 256; // of a block
const int STAGES = 4;    // tiles of A and of B in shared memory, those being copied among them

// What depends on the type of the elements of A and B.
template <class E> struct type;
template <> struct type<bf16> {
  static constexpr int LANES = 8; // elements in 16 bytes
  static constexpr int STEP = 32; // of k in a tile
  static constexpr int MMA = 16;  // of k in an instruction
  // Elements from a row of a tile to the next: across k, and with rows of k.
  static constexpr int ACROSS = 32, ALONG = 128;
};
template <> struct type<float> {
  static constexpr int LANES = 4;
  static constexpr int STEP = 16;
  static constexpr int MMA = 8;
  static constexpr int ACROSS = 20, ALONG = 136; // padded: eight rows lie in different banks
};

// tile_size is how many elements a tile takes: 128 rows of STEP elements or, with K_ROWS (each row is one k), STEP rows
// of 128 elements.
template <class E, bool K_ROWS> __device__ constexpr int tile_size() {
  return K_ROWS ? type<E>::STEP * type<E>::ALONG : TILE * type<E>::ACROSS;
}

// place is where the 16 bytes number `chunk` of a row of a tile lie. The chunks of a row of bfloat16 are permuted, so
// that ldmatrix reads eight rows from different banks.
template <bool K_ROWS> __device__ inline int place(const bf16*, int row, int chunk) {
  return K_ROWS ? row * type<bf16>::ALONG + ((chunk ^ (row & 7)) * 8)
                  : row * type<bf16>::ACROSS + ((chunk ^ ((row >> 1) & 3)) * 8);
}
template <bool K_ROWS> __device__ inline int place(const float*, int row, int chunk) {
  return row * (K_ROWS ? type<float>::ALONG : type<float>::ACROSS) + chunk * 4;
}

// source reads the tiles of one operand in the order of k. Each thread reads two chunks of 16 bytes of a tile, in the
// same columns of the operand, APART rows from each other.
template <class E, bool K_ROWS> struct source {
  static constexpr int LANES = type<E>::LANES;
  static constexpr int STEP = type<E>::STEP;
  static constexpr int CHUNKS = (K_ROWS ? TILE : STEP) / LANES; // of a row of a tile
  static constexpr int APART = THREADS / CHUNKS;

  const E* next; // this thread's first chunk of the next tile
  int ld;
  int inside;    // from the chunk's first row or column of C to the end of the operand
  int left;      // from the chunk's first k to the end
  bool aligned;  // chunks lie at multiples of 16 bytes

  // The tiles hold rows (or columns) first.. of C; the operand has `size` of them.
  __device__ source(const E* x, int ld, int first, int size, int k) : ld(ld) {
    aligned = ld % LANES == 0 && (unsigned long long)x % 16 == 0;
    int column = chunk() * LANES;
    if (K_ROWS) {
      next = x + (long long)row(0) * ld + first + column;
      inside = size - first - column;
      left = k - row(0);
    } else {
      next = x + (long long)(first + row(0)) * ld + column;
      inside = size - first - row(0);
      left = k - column;
    }
  }

  __device__ int row(int i) const { return (int)threadIdx.x / CHUNKS + i * APART; }
  __device__ int chunk() const { return (int)threadIdx.x % CHUNKS; }
  __device__ const E* at(int i) const { return next + (long long)(i * APART) * ld; }

  // How many elements of chunk i of the next tile lie inside the operand.
  __device__ int valid(int i) const {
    int rows = K_ROWS ? left : inside, columns = K_ROWS ? inside : left;
    if (rows <= i * APART || columns < 0) return 0;
    return columns < LANES ? columns : +LANES;
  }

  __device__ void advance() {
    next += K_ROWS ? (long long)STEP * ld : STEP;
    left -= STEP;
  }

  // copy starts the copy of the next tile; elements outside the operand are zeros. `operand` is the operand's first
  // element: an address for the copies that read nothing.
  __device__ void copy(E* tile, const E* operand) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      E* to = tile + place<K_ROWS>(tile, row(i), chunk());
      int n = valid(i);
      if (aligned && (n == LANES || n == 0)) {
        copy16(to, n ? at(i) : operand, n != 0);
        continue;
      }
#pragma unroll 1
      for (int j = 0; j < LANES; j++) to[j] = j < n ? at(i)[j] : from_float<E>(0);
    }
    advance();
  }
};

// rows_of_a reads the 16 rows of A from `row`, at MMA elements of k from `k`, from a tile.
template <bool K_ROWS> __device__ inline void rows_of_a(unsigned a[4], const bf16* tile, int row, int k) {
  int lane = threadIdx.x % 32;
  if (K_ROWS) {
    ldmatrix_x4_trans(a, tile + place<true>(tile, k + (lane & 7) + (lane >> 4) * 8, row / 8 + ((lane >> 3) & 1)));
  } else {
    ldmatrix_x4(a, tile + place<false>(tile, row + (lane & 15), k / 8 + (lane >> 4)));
  }
}
template <bool K_ROWS> __device__ inline void rows_of_a(unsigned a[4], const float* tile, int row, int k) {
  int lane = threadIdx.x % 32;
  if (K_ROWS) {
    const float* x = tile + (k + lane % 4) * type<float>::ALONG + row + lane / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = to_tf32(x[(i >> 1) * 4 * type<float>::ALONG + (i & 1) * 8]);
  } else {
    ldmatrix_x4(a, tile + place<false>(tile, row + (lane & 15), k / 4 + (lane >> 4)));
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = to_tf32(__uint_as_float(a[i]));
  }
}

// columns_of_b reads the 16 columns of B from `column`, at MMA elements of k from `k`, from a tile: b[0..1] for the
// first eight, b[2..3] for the others.
template <bool K_ROWS> __device__ inline void columns_of_b(unsigned b[4], const bf16* tile, int column, int k) {
  int lane = threadIdx.x % 32;
  if (K_ROWS) {
    ldmatrix_x4_trans(b, tile + place<true>(tile, k + (lane & 15), column / 8 + (lane >> 4)));
  } else {
    ldmatrix_x4(b, tile + place<false>(tile, column + (lane & 7) + (lane >> 4) * 8, k / 8 + ((lane >> 3) & 1)));
  }
}
template <bool K_ROWS> __device__ inline void columns_of_b(unsigned b[4], const float* tile, int column, int k) {
  int lane = threadIdx.x % 32;
  if (K_ROWS) {
    const float* x = tile + (k + lane % 4) * type<float>::ALONG + column + lane / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) b[i] = to_tf32(x[(i & 1) * 4 * type<float>::ALONG + (i >> 1) * 8]);
  } else {
    ldmatrix_x4(b, tile + place<false>(tile, column + (lane & 7) + (lane >> 4) * 8, k / 4 + ((lane >> 3) & 1)));
#pragma unroll
    for (int i = 0; i < 4; i++) b[i] = to_tf32(__uint_as_float(b[i]));
  }
}

// multiply adds the product of 16 rows and 8 columns.
__device__ inline void multiply(const bf16*, float c[4], const unsigned a[4], const unsigned b[2]) {
  mma_16816_bf16(c, a, b);
}
__device__ inline void multiply(const float*, float c[4], const unsigned a[4], const unsigned b[2]) {
  mma_1688_tf32(c, a, b);
}

// held is where column `column` of row `row` of half a tile of C [64 128] lies in shared memory; groups of four columns
// stay together.
__device__ inline int held(int row, int column) { return row * TILE + (column ^ (row % 4 * 8)); }

// finish writes half a tile of C from shared memory: rows from `row`, columns from `column` of C.
template <class O>
__device__ inline void finish(O* c, const float* sums, int row, int column, int m, int n, int ldc, bool accumulate,
                              const float* bias) {
  int first = threadIdx.x / 32, mine = threadIdx.x % 32 * 4; // each warp a row, each lane four columns
  int rows = m - row < TILE / 2 ? m - row : TILE / 2;
  int inside = n - column - mine < 4 ? n - column - mine : 4;
  if (inside <= 0) return;
  if (bias) bias += column + mine;
  O* to = c + (long long)(row + first) * ldc + column + mine;
  long long step = (long long)ldc * (THREADS / 32);

  if (inside < 4 || ldc % 4 != 0 || (unsigned long long)c % (4 * sizeof(O)) != 0) {
#pragma unroll 1
    for (int i = first; i < rows; i += THREADS / 32, to += step) {
#pragma unroll 1
      for (int j = 0; j < inside; j++) {
        float x = sums[held(i, mine) + j];
        if (bias) x += bias[j];
        to[j] = from_float<O>(accumulate ? to_float(to[j]) + x : x);
      }
    }
    return;
  }

  f4 add = f4{0, 0, 0, 0};
  if (bias) add = f4{bias[0], bias[1], bias[2], bias[3]};
#pragma unroll 4
  for (int i = first; i < rows; i += THREADS / 32, to += step) {
    f4 x = load4(sums + held(i, mine));
    if (bias) x = f4{x.x + add.x, x.y + add.y, x.z + add.z, x.w + add.w};
    if (accumulate) {
      f4 old = load4(to);
      x = f4{old.x + x.x, old.y + x.y, old.z + x.z, old.w + x.w};
    }
    store4(to, x);
  }
}

// tensor computes a tile of C with the matrix instructions. Eight warps take 64 rows and 32 columns each.
template <class E, class O, bool A_K_ROWS, bool B_K_ROWS>
__device__ void tensor(O* c, const E* a, const E* b, int m, int n, int k, int lda, int ldb, int ldc, int accumulate,
                       const float* bias) {
  const int A_SIZE = tile_size<E, A_K_ROWS>(), B_SIZE = tile_size<E, B_K_ROWS>();
  const int STEP = type<E>::STEP, MMA = type<E>::MMA;
  SHARED(E, shared);
  E* a_tiles = shared;                   // [STAGES A_SIZE]
  E* b_tiles = shared + STAGES * A_SIZE; // [STAGES B_SIZE]

  int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
  source<E, A_K_ROWS> from_a(a, lda, m0, m, k);
  source<E, B_K_ROWS> from_b(b, ldb, n0, n, k);
  int tiles = (k + STEP - 1) / STEP;
  for (int i = 0; i < STAGES - 1; i++) {
    if (i < tiles) {
      from_a.copy(a_tiles + i * A_SIZE, a);
      from_b.copy(b_tiles + i * B_SIZE, b);
    }
    copy_commit();
  }

  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = warp % 2 * 64, column = warp / 2 * 32; // of the warp in the tile
  float sums[4][4][4];                             // [16 rows each][8 columns each][of a thread]
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int l = 0; l < 4; l++) sums[i][j][l] = 0;

  for (int t = 0; t < tiles; t++) {
    copy_wait<STAGES - 2>();
    __syncthreads(); // tile t has arrived, and everybody is done with tile t-1
    if (t + STAGES - 1 < tiles) {
      int stage = (t + STAGES - 1) % STAGES;
      from_a.copy(a_tiles + stage * A_SIZE, a);
      from_b.copy(b_tiles + stage * B_SIZE, b);
    }
    copy_commit();

    const E* a_tile = a_tiles + t % STAGES * A_SIZE;
    const E* b_tile = b_tiles + t % STAGES * B_SIZE;
#pragma unroll
    for (int at = 0; at < STEP; at += MMA) {
      unsigned rows[4][4], columns[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) rows_of_a<A_K_ROWS>(rows[i], a_tile, row + i * 16, at);
#pragma unroll
      for (int j = 0; j < 2; j++) columns_of_b<B_K_ROWS>(columns[j], b_tile, column + j * 16, at);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) multiply(a_tile, sums[i][j], rows[i], columns[j / 2] + j % 2 * 2);
    }
  }

  copy_wait<0>();
  float* half = reinterpret_cast<float*>(shared); // [64 128]
#pragma unroll 1
  for (int h = 0; h < 2; h++) {
    __syncthreads(); // everybody is done with what is in shared memory
    if (row == h * 64) {
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
          for (int l = 0; l < 2; l++) {
            float* to = half + held(i * 16 + l * 8 + lane / 4, column + j * 8 + lane % 4 * 2);
            to[0] = sums[i][j][l * 2];
            to[1] = sums[i][j][l * 2 + 1];
          }
    }
    __syncthreads();
    finish(c, half, m0 + h * 64, n0, m, n, ldc, accumulate != 0, bias);
  }
}

// fetch reads this thread's chunks of the next tile into registers.
template <bool K_ROWS> __device__ inline void fetch(f4 x[2], source<float, K_ROWS>& from) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int n = from.valid(i);
    const float* at = from.at(i);
    if (from.aligned && n == 4) {
      x[i] = load4(at);
    } else {
      x[i] = f4{n > 0 ? at[0] : 0, n > 1 ? at[1] : 0, n > 2 ? at[2] : 0, n > 3 ? at[3] : 0};
    }
  }
  from.advance();
}

// keep writes them to a tile [16 128], k by k. Columns of row k are permuted by k/4 (exclusive or of bits 3 and 4), so
// that the writes of a warp that turn rows into columns go to different banks.
template <bool K_ROWS> __device__ inline void keep(float* tile, const f4 x[2], const source<float, K_ROWS>& from) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int row = from.row(i), chunk = from.chunk();
    if (K_ROWS) {
      store4(tile + row * TILE + ((chunk * 4) ^ (row / 4 * 8)), x[i]);
      continue;
    }
    float* to = tile + chunk * 4 * TILE + (row ^ (chunk * 8));
    to[0] = x[i].x;
    to[TILE] = x[i].y;
    to[2 * TILE] = x[i].z;
    to[3 * TILE] = x[i].w;
  }
}

// plain computes a tile of C in float32, eight rows and eight columns a thread: four and four, 64 apart.
template <bool A_K_ROWS, bool B_K_ROWS>
__device__ void plain(float* c, const float* a, const float* b, int m, int n, int k, int lda, int ldb, int ldc,
                      int accumulate, const float* bias) {
  const int STEP = type<float>::STEP;
  SHARED(float, shared);
  float* a_tiles = shared;                   // [2 STEP TILE]
  float* b_tiles = shared + 2 * STEP * TILE; // [2 STEP TILE]

  int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
  source<float, A_K_ROWS> from_a(a, lda, m0, m, k);
  source<float, B_K_ROWS> from_b(b, ldb, n0, n, k);
  int tiles = (k + STEP - 1) / STEP;
  f4 staged[2]; // chunks on the way from global to shared memory
  if (tiles > 0) {
    fetch(staged, from_a);
    keep(a_tiles, staged, from_a);
    fetch(staged, from_b);
    keep(b_tiles, staged, from_b);
  }
  __syncthreads();

  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = warp % 4 * 16 + lane / 8 * 4, column = warp / 4 * 32 + lane % 8 * 4;
  float sums[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sums[i][j] = 0;

  for (int t = 0; t < tiles; t++) {
    bool more = t + 1 < tiles;
    const float* a_tile = a_tiles + t % 2 * STEP * TILE;
    const float* b_tile = b_tiles + t % 2 * STEP * TILE;
#pragma unroll 1
    for (int quarter = 0; quarter < STEP / 4; quarter++) {
      if (more && quarter == 0) fetch(staged, from_a);
      if (more && quarter == 2) {
        keep(a_tiles + (t + 1) % 2 * STEP * TILE, staged, from_a);
        fetch(staged, from_b);
      }
      const float* at_a = a_tile + quarter * 4 * TILE + (row ^ (quarter * 8)); // see keep
      const float* at_b = b_tile + quarter * 4 * TILE + (column ^ (quarter * 8));
#pragma unroll
      for (int l = 0; l < 4; l++, at_a += TILE, at_b += TILE) {
        f4 a0 = load4(at_a), a1 = load4(at_a + 64), b0 = load4(at_b), b1 = load4(at_b + 64);
        float rows[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
        float columns[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
          for (int j = 0; j < 8; j++) sums[i][j] += rows[i] * columns[j];
      }
    }
    if (more) keep(b_tiles + (t + 1) % 2 * STEP * TILE, staged, from_b);
    __syncthreads();
  }

#pragma unroll
  for (int h = 0; h < 2; h++) {
    float* half = shared; // [64 128]
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float* x = sums[h * 4 + i];
      store4(half + held(row + i, column), f4{x[0], x[1], x[2], x[3]});
      store4(half + held(row + i, column + 64), f4{x[4], x[5], x[6], x[7]});
    }
    __syncthreads();
    finish(c, half, m0 + h * 64, n0, m, n, ldc, accumulate != 0, bias);
    __syncthreads();
  }
}

} // namespace product

#define PRODUCT(NAME, BODY, E, O)                                                                                  \
  KERNEL_OF(256, 2, NAME, O* c, const E* a, const E* b, int m, int n, int k, int lda, int ldb, int ldc,            \
            int accumulate, const float* bias) {                                                                   \
    BODY(c, a, b, m, n, k, lda, ldb, ldc, accumulate, bias);                                                       \
  }

#define PRODUCTS(TRANSPOSED, A_K_ROWS, B_K_ROWS)                                                                   \
  PRODUCT(product_##TRANSPOSED##_f32, (product::plain<A_K_ROWS, B_K_ROWS>), float, float)                          \
  PRODUCT(product_##TRANSPOSED##_tf32, (product::tensor<float, float, A_K_ROWS, B_K_ROWS>), float, float)          \
  PRODUCT(product_##TRANSPOSED##_bf16_f32, (product::tensor<bf16, float, A_K_ROWS, B_K_ROWS>), bf16, float)        \
  PRODUCT(product_##TRANSPOSED##_bf16_bf16, (product::tensor<bf16, bf16, A_K_ROWS, B_K_ROWS>), bf16, bf16)

PRODUCTS(nn, false, true)
PRODUCTS(nt, false, false)
PRODUCTS(tn, true, true)

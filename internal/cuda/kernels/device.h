// What all kernels share: bf16, loads of four elements, random words, sums over a warp, and the instructions that CUDA C has
// no name for. NVRTC compiles it for the GPU; with JENGA_HOST, g++ compiles it with host.h, which has the same functions for the
// processor (tests run the kernels there).
//
// A kernel is written with KERNEL(NAME, PARAMETERS), which declares it and, on the host, registers it by that name:
//
//	#include "device.h"
//
//	template <class A> __device__ void scale_rows(A* out, const A* x, float by, int rows, int width) {
//	  int row = blockIdx.x;
//	  for (int j = threadIdx.x * 4; j < width; j += blockDim.x * 4) {
//	    f4 v = load4(x + (long long)row * width + j);
//	    store4(out + (long long)row * width + j, f4{v.x * by, v.y * by, v.z * by, v.w * by});
//	  }
//	}
//
//	#define SCALE_ROWS(suffix, A) \ (the macro's lines go on)
//	  KERNEL(scale_rows_##suffix, A* out, const A* x, float by, int rows, int width) { scale_rows<A>(out, x, by, rows, width); }
//	SCALE_ROWS(f32, float)
//	SCALE_ROWS(bf16, bf16)
//
// KERNEL_OF(THREADS, BLOCKS, NAME, PARAMETERS) also has __launch_bounds__(THREADS, BLOCKS); launching it with more threads is
// an error. Parameters are pointers, int, unsigned, long long, unsigned long long, float or double.
//
// Shared memory: __shared__ arrays of fixed size, and SHARED(type, name), which declares `type* name` as the start of the
// block's dynamic shared memory (aligned to 128 bytes); several SHARED of a kernel are the same memory.
//
// Warp functions (warp_*, mma_*, ldmatrix_*, __shfl_*_sync, __ballot_sync, __syncwarp) are called by all 32 lanes of a warp
// together, so blocks have a multiple of 32 threads, and no lane of the warp may have returned. On the host, a lane that misses a
// barrier of its warp or block aborts the program with the kernel's name.
//
// Addresses are multiples of 16 bytes for copy16, ldmatrix_* and load4 and store4 of float, of 8 for those of bf16. On the host,
// another address aborts the program in copy16 and ldmatrix_* alone; the others may read and write it, which a GPU does not.
//
// On the host a copy16 arrives only at copy_wait; until then its 16 bytes are NaN. Dynamic shared memory begins as NaN.
#pragma once

struct bf16 {
  unsigned short bits;
};

// Four consecutive elements as float32.
struct f4 {
  float x, y, z, w;
};

struct words4 {
  unsigned w[4];
};

#ifdef JENGA_HOST
#include "host.h"
#else

#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define KERNEL_OF(threads, blocks, name, ...) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(__VA_ARGS__)

#define SHARED(type, name)                                       \
  extern __shared__ __align__(128) unsigned char shared_bytes[]; \
  type* name = reinterpret_cast<type*>(shared_bytes)

// The bits of the bf16 nearest to x; ties to even; of NaN, 0x7fff.
__device__ __forceinline__ unsigned short bf16_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Two floats as bf16 in one word, low in its lower half.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// 2 to the power of x, to two units of the last place; 0 where that is below the smallest normal number.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The bits of the TF32 (10 bits of mantissa) nearest to x; ties away from zero.
__device__ __forceinline__ unsigned to_tf32(float x) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return word;
}

// c += a·b for a [16 16] and b [16 8] of bf16, in the fragments of mma.m16n8k16 (PTX ISA): with g = lane/4 and t = lane%4,
//	a[0] = A[g][2t, 2t+1]     a[1] = A[g+8][2t, 2t+1]     a[2] = A[g][2t+8, 2t+9]     a[3] = A[g+8][2t+8, 2t+9]
//	b[0] = B[2t, 2t+1][g]     b[1] = B[2t+8, 2t+9][g]
//	c[0], c[1] = C[g][2t, 2t+1]     c[2], c[3] = C[g+8][2t, 2t+1]
// where the first of two elements is in the lower half of the word.
__device__ __forceinline__ void mma_16816_bf16(float c[4], const unsigned a[4], const unsigned b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c += a·b for a [16 8] and b [8 8] of TF32, in the fragments of mma.m16n8k8 (PTX ISA): with g = lane/4 and t = lane%4,
//	a[0] = A[g][t]     a[1] = A[g+8][t]     a[2] = A[g][t+4]     a[3] = A[g+8][t+4]     b[0] = B[t][g]     b[1] = B[t+4][g]
//	c[0], c[1] = C[g][2t, 2t+1]     c[2], c[3] = C[g+8][2t, 2t+1]
__device__ __forceinline__ void mma_1688_tf32(float c[4], const unsigned a[4], const unsigned b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// Four matrices [8 8] of 16-bit elements from shared memory: lane l passes the address of row l%8 of matrix l/8 (16 bytes,
// aligned to 16). r[i] gets of matrix i the elements [lane/4][2·(lane%4), 2·(lane%4)+1].
__device__ __forceinline__ void ldmatrix_x4(unsigned r[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(shared))
               : "memory");
}

// As ldmatrix_x4, of the transposed matrices: r[i] gets the elements [2·(lane%4), 2·(lane%4)+1][lane/4].
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned r[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(shared))
               : "memory");
}

// As ldmatrix_x4 with two matrices; lanes 0 to 15 pass addresses, those of the others must be valid but are not read.
__device__ __forceinline__ void ldmatrix_x2(unsigned r[2], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(shared))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x2_trans(unsigned r[2], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(shared))
               : "memory");
}

// Begins a copy of 16 bytes (both addresses aligned to 16) from global to shared memory; of zeros if !valid, and then global is
// not read, but is an address of the device all the same.
__device__ __forceinline__ void copy16(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}

// Makes a group of the thread's copies since the last group.
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the last N groups of the thread's copies are not complete. A barrier must follow before other threads
// read them.
template <int N> __device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif

// The thread's number in its warp, and its warp's in the block, for blocks of one dimension.
__device__ __forceinline__ int lane_number() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_number() { return threadIdx.x >> 5; }

__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

// x as A: rounded to the nearest bf16, ties to even; NaN stays NaN.
template <class A> __device__ __forceinline__ A from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) { return bf16{bf16_bits(x)}; }

// The two bf16 of a word.
__device__ __forceinline__ float low_bf16(unsigned word) { return __uint_as_float(word << 16); }
__device__ __forceinline__ float high_bf16(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

// Four elements at p, in one access: p is aligned to 16 bytes for float, 8 for bf16.
__device__ __forceinline__ f4 load4(const float* p) {
  float4 v = *reinterpret_cast<const float4*>(p);
  return f4{v.x, v.y, v.z, v.w};
}

__device__ __forceinline__ f4 load4(const bf16* p) {
  uint2 v = *reinterpret_cast<const uint2*>(p);
  return f4{low_bf16(v.x), high_bf16(v.x), low_bf16(v.y), high_bf16(v.y)};
}

__device__ __forceinline__ void store4(float* p, f4 v) { *reinterpret_cast<float4*>(p) = make_float4(v.x, v.y, v.z, v.w); }

__device__ __forceinline__ void store4(bf16* p, f4 v) {
  *reinterpret_cast<uint2*>(p) = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
}

// Philox4x32-10 (Salmon et al. 2011): four random words that are a function of the key and of a counter, here the block's
// number and the mask's.
__device__ __forceinline__ words4 philox(unsigned long long key, unsigned long long counter, unsigned long long block) {
  unsigned key0 = (unsigned)key, key1 = (unsigned)(key >> 32);
  unsigned x0 = (unsigned)block, x1 = (unsigned)(block >> 32), x2 = (unsigned)counter, x3 = (unsigned)(counter >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    unsigned high0 = __umulhi(0xd2511f53u, x0), low0 = 0xd2511f53u * x0;
    unsigned high2 = __umulhi(0xcd9e8d57u, x2), low2 = 0xcd9e8d57u * x2;
    x0 = high2 ^ x1 ^ key0;
    x1 = low2;
    x2 = high0 ^ x3 ^ key1;
    x3 = low0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return words4{{x0, x1, x2, x3}};
}

// Which elements a dropout keeps: element i of mask `counter` is 0 if word i%4 of philox(key, counter, i/4) is below bound,
// else it is multiplied by scale. With bound 0 all elements stay what they are.
struct drop {
  unsigned long long key;
  unsigned bound;
  float scale;
};

// Element `index` of mask `counter` applied to v.
__device__ __forceinline__ float dropout(drop d, unsigned long long counter, unsigned long long index, float v) {
  if (d.bound == 0) return v;
  words4 random = philox(d.key, counter, index / 4);
  unsigned i = (unsigned)index & 3;
  unsigned word = i == 0 ? random.w[0] : i == 1 ? random.w[1] : i == 2 ? random.w[2] : random.w[3];
  return word < d.bound ? 0.0f : v * d.scale;
}

// Elements index … index+3 of mask `counter` applied to v; index is a multiple of 4.
__device__ __forceinline__ f4 dropout4(drop d, unsigned long long counter, unsigned long long index, f4 v) {
  if (d.bound == 0) return v;
  words4 random = philox(d.key, counter, index / 4);
  return f4{random.w[0] < d.bound ? 0.0f : v.x * d.scale, random.w[1] < d.bound ? 0.0f : v.y * d.scale,
            random.w[2] < d.bound ? 0.0f : v.z * d.scale, random.w[3] < d.bound ? 0.0f : v.w * d.scale};
}

// The sum of the lanes' values, the same bits in all lanes.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

// The largest of the lanes' values; NaN only if all are, as fmaxf.
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}

// The sum of the values of all threads of a block of one dimension: of each warp, then of the warps in ascending order; the
// same bits in all threads, which all call it. shared32 is room for 32 floats in shared memory, also for several sums in turn.
__device__ __forceinline__ float block_sum(float v, float* shared32) {
  v = warp_sum(v);
  __syncthreads(); // an earlier sum has been read
  if (lane_number() == 0) shared32[warp_number()] = v;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < (int)(blockDim.x >> 5); w++) sum += shared32[w];
  return sum;
}

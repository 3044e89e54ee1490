// What CUDA C has built in and the instructions of device.h, for the processor, so that g++ compiles the kernels' sources.
// The threads of a block are coroutines that switch at barriers (fibers.cpp).
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __constant__ static const
// A thread of the processor runs one block at a time.
#define __shared__ static thread_local

struct uint2 { unsigned x, y; };
struct uint3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct int2 { int x, y; };
struct int3 { int x, y, z; };
struct alignas(16) int4 { int x, y, z, w; };
struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct dim3 { unsigned x, y, z; };

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

namespace host {

struct Block;
struct Warp;

// A thread of a block.
struct Thread {
  uint3 index;
  int lane;
  Warp* warp;
  Block* block;
};

// The stacks of threads are so large and aligned to that; the last word of each is the address of its Thread.
constexpr uintptr_t stack_bytes = 128 << 10;

// The thread that runs.
inline Thread* current() {
  uintptr_t in_stack = (uintptr_t)__builtin_frame_address(0);
  return *(Thread**)((in_stack | (stack_bytes - 1)) + 1 - sizeof(Thread*));
}

uint3 block_index();
dim3 block_size();
dim3 grid_size();
void* dynamic_shared();
void block_barrier();
// Waits at the block's barrier; returns how many threads passed a true predicate.
int block_count(bool predicate);

// Waits until all lanes of mask have called it with the same run, which is then called once with what each lane passed (null
// for lanes that are not of mask). what names the operation in messages.
void collect(unsigned mask, const char* what, void (*run)(void* const lanes[32]), void* data);

// Reports a mistake of the kernel that runs, and aborts.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

void copy_begin(void* shared, const void* global, bool valid);
void copy_group();
void copy_finish(int groups);

inline void aligned(const void* p, unsigned to, const char* what) {
  if ((uintptr_t)p % to != 0) fail("%s: address %p is not aligned to %u bytes", what, p, to);
}

// What the kernels register: by name, how to call one with the addresses of its arguments.
struct Kernel {
  const char* name;
  void (*function)();
  void (*call)(void (*function)(), void** args);
  int threads;      // most threads of a block
  int parameters;   // how many
  unsigned char sizes[64];  // of the parameters
  Kernel* next;
};

Kernel* find_kernel(const char* name);
void add_kernel(Kernel* k);

template <class... P> struct Caller {
  template <size_t... I> struct Indices {};
  template <size_t N, size_t... I> struct Count : Count<N - 1, N - 1, I...> {};
  template <size_t... I> struct Count<0, I...> { using type = Indices<I...>; };
  template <size_t... I> static void unpack(void (*f)(P...), void** args, Indices<I...>) { f(*(P*)args[I]...); }
  static void call(void (*f)(), void** args) {
    unpack((void (*)(P...))f, args, typename Count<sizeof...(P)>::type());
  }
};

struct Registration {
  Kernel kernel;
  template <class... P> Registration(const char* name, int threads, void (*f)(P...)) {
    static_assert(sizeof...(P) <= sizeof(kernel.sizes), "too many parameters");
    kernel = {name, (void (*)())f, Caller<P...>::call, threads, (int)sizeof...(P), {(unsigned char)sizeof(P)...}, nullptr};
    add_kernel(&kernel);
  }
};

// Runs all blocks; returns when they have finished.
void launch(const Kernel* k, dim3 grid, dim3 block, unsigned shared, void** args);

inline uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

inline float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

} // namespace host

#define KERNEL(name, ...) KERNEL_OF(1024, 1, name, __VA_ARGS__)
#define KERNEL_OF(threads, blocks, name, ...)                                                                       \
  static void name(__VA_ARGS__);                                                                                    \
  static host::Registration registration_of_##name(#name, threads, static_cast<void (*)(__VA_ARGS__)>(name)); \
  static void name(__VA_ARGS__)

#define SHARED(type, name) type* name = reinterpret_cast<type*>(host::dynamic_shared())

#define threadIdx (host::current()->index)
#define blockIdx (host::block_index())
#define blockDim (host::block_size())
#define gridDim (host::grid_size())
#define warpSize 32

// Barriers.

inline void __syncthreads() { host::block_barrier(); }
inline int __syncthreads_or(int p) { return host::block_count(p != 0) > 0; }
inline int __syncthreads_count(int p) { return host::block_count(p != 0); }
inline int __syncthreads_and(int p) { return host::block_count(p == 0) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  host::collect(mask, "__syncwarp", [](void* const*) {}, host::current());
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() {}

// Values exchanged between lanes.

namespace host {

template <class T> struct Shuffle {
  T value, result;
  int from;
};

template <class T> T shuffle(unsigned mask, const char* what, T value, int from) {
  Shuffle<T> data{value, value, from};
  auto run = [](void* const lanes[32]) {
    for (int i = 0; i < 32; i++) {
      auto* to = (Shuffle<T>*)lanes[i];
      if (!to) continue;
      auto* of = (Shuffle<T>*)lanes[to->from];
      if (!of) fail("a shuffle reads lane %d, which does not take part", to->from);
      to->result = of->value;
    }
  };
  collect(mask, what, run, &data);
  return data.result;
}

} // namespace host

template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  int lane = host::current()->lane;
  return host::shuffle(mask, "__shfl_sync", v, (lane & ~(width - 1)) | (from & (width - 1)));
}

template <class T> T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  int lane = host::current()->lane, from = lane ^ with;
  return host::shuffle(mask, "__shfl_xor_sync", v, from >= (lane & ~(width - 1)) + width ? lane : from);
}

template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int lane = host::current()->lane, from = lane + (int)by;
  return host::shuffle(mask, "__shfl_down_sync", v, from >= (lane & ~(width - 1)) + width ? lane : from);
}

template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int lane = host::current()->lane, from = lane - (int)by;
  return host::shuffle(mask, "__shfl_up_sync", v, from < (lane & ~(width - 1)) ? lane : from);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned data[2] = {predicate != 0, 0};
  auto run = [](void* const lanes[32]) {
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
      if (lanes[i]) all |= *(unsigned*)lanes[i] << i;
    for (int i = 0; i < 32; i++)
      if (lanes[i]) ((unsigned*)lanes[i])[1] = all;
  };
  host::collect(mask, "__ballot_sync", run, data);
  return data[1];
}

inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// Arithmetic. Those that are approximate on the GPU are exact here.

inline float __uint_as_float(unsigned u) { return host::float_of(u); }
inline float __int_as_float(int i) { return host::float_of((uint32_t)i); }
inline unsigned __float_as_uint(float x) { return host::bits_of(x); }
inline int __float_as_int(float x) { return (int)host::bits_of(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __popc(unsigned u) { return __builtin_popcount(u); }
inline int __clz(int i) { return i == 0 ? 32 : __builtin_clz((unsigned)i); }
inline int __ffs(int i) { return __builtin_ffs(i); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1 / a; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline float normcdff(float x) { return (float)(0.5 * erfc(-x * M_SQRT1_2)); }

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> void __stcs(T* p, T v) { *p = v; }

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

template <class T> T atomicAdd(T* p, T v) {
  static_assert(T(1) / T(2) == T(0), "sums of floats have a fixed order: no atomics");
  return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
template <class T> T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }
template <class T> T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }

// The instructions of device.h, which describes them.

// Rounds to the nearest bf16, ties to even.
inline unsigned short bf16_bits(float x) {
  uint32_t u = host::bits_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

inline unsigned pack_bf16(float low, float high) { return bf16_bits(low) | (unsigned)bf16_bits(high) << 16; }

inline float fast_exp2(float x) { return exp2f(x); }

// Rounds to 10 bits of mantissa, ties away from zero.
inline unsigned to_tf32(float x) {
  uint32_t u = host::bits_of(x);
  if ((u & 0x7f800000u) == 0x7f800000u) return (u & 0x7fffffu) ? 0x7fffffffu : u;
  return (u + 0x1000) & ~0x1fffu;
}

namespace host {

struct Multiplication {
  float* c;
  const unsigned *a, *b;
};

void multiply_bf16(void* const lanes[32]);
void multiply_tf32(void* const lanes[32]);

struct Rows {
  unsigned row[4];  // the lane's row of eight elements
  unsigned* out;
};

void load_matrices_x4(void* const lanes[32]);
void load_matrices_x2(void* const lanes[32]);
void load_matrices_x4_trans(void* const lanes[32]);
void load_matrices_x2_trans(void* const lanes[32]);

// A lane reads its row before the others arrive: what they write without a barrier is missed.
inline void load_matrices(const char* what, void (*run)(void* const*), unsigned* out, const void* shared, int count) {
  Rows rows{};
  aligned(shared, 16, what);
  if (current()->lane < 8 * count) memcpy(rows.row, shared, 16);
  rows.out = out;
  collect(0xffffffffu, what, run, &rows);
}

} // namespace host

inline void mma_16816_bf16(float c[4], const unsigned a[4], const unsigned b[2]) {
  host::Multiplication m{c, a, b};
  host::collect(0xffffffffu, "mma_16816_bf16", host::multiply_bf16, &m);
}

inline void mma_1688_tf32(float c[4], const unsigned a[4], const unsigned b[2]) {
  host::Multiplication m{c, a, b};
  host::collect(0xffffffffu, "mma_1688_tf32", host::multiply_tf32, &m);
}

inline void ldmatrix_x4(unsigned r[4], const void* shared) {
  host::load_matrices("ldmatrix_x4", host::load_matrices_x4, r, shared, 4);
}
inline void ldmatrix_x4_trans(unsigned r[4], const void* shared) {
  host::load_matrices("ldmatrix_x4_trans", host::load_matrices_x4_trans, r, shared, 4);
}
inline void ldmatrix_x2(unsigned r[2], const void* shared) {
  host::load_matrices("ldmatrix_x2", host::load_matrices_x2, r, shared, 2);
}
inline void ldmatrix_x2_trans(unsigned r[2], const void* shared) {
  host::load_matrices("ldmatrix_x2_trans", host::load_matrices_x2_trans, r, shared, 2);
}

inline void copy16(void* shared, const void* global, bool valid) {
  host::aligned(shared, 16, "copy16, to");
  host::aligned(global, 16, "copy16, from");
  host::copy_begin(shared, global, valid);
}
inline void copy_commit() { host::copy_group(); }
template <int N> void copy_wait() { host::copy_finish(N); }

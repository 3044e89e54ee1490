// Checks the coroutines and the instructions against their definitions in the PTX ISA: a program that says ok, or what is wrong.
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <vector>

static int wrong = 0;

static void want(bool right, const char* what, long at) {
  if (!right && ++wrong < 20) printf("wrong: %s at %ld\n", what, at);
}

template <class... P> static void run(const char* name, dim3 grid, dim3 block, unsigned shared, P... p) {
  void* args[] = {&p...};
  host::Kernel* k = host::find_kernel(name);
  if (!k || k->parameters != (int)sizeof...(P)) {
    printf("no kernel %s of %d parameters\n", name, (int)sizeof...(P));
    exit(1);
  }
  host::launch(k, grid, block, shared, args);
}

// Each thread reads what its right neighbour wrote, `times` times.
KERNEL(rotate_block, int* out, int times) {
  SHARED(int, x);
  x[threadIdx.x] = (int)threadIdx.x;
  for (int i = 0; i < times; i++) {
    __syncthreads();
    int v = x[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    x[threadIdx.x] = v;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x];
}

KERNEL(sums, float* out, const float* x) {
  __shared__ float shared[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float warp = warp_sum(x[i]), most = warp_max(x[i]), block = block_sum(x[i], shared);
  block += block_sum(x[i], shared);
  out[4 * i] = warp, out[4 * i + 1] = most, out[4 * i + 2] = block;
  unsigned odd = __ballot_sync(0xffffffffu, lane_number() & 1);
  int low = 0; // halves of a warp, apart
  if (lane_number() < 16) {
    low = __shfl_down_sync(0x0000ffffu, lane_number(), 1, 16);
    __syncwarp(0x0000ffffu);
  } else {
    low = __shfl_up_sync(0xffff0000u, lane_number(), 1, 16);
  }
  out[4 * i + 3] = odd == 0xaaaaaaaau ? (float)(low + __shfl_sync(0xffffffffu, lane_number(), 5)) : -1;
}

// One warp: C [16 8] += A [16 16] · B [16 8], each element loaded by itself into its place in the fragments.
KERNEL(product_bf16, float* c, const bf16* a, const bf16* b) {
  int g = lane_number() / 4, t = lane_number() % 4;
  auto two = [](bf16 low, bf16 high) { return low.bits | (unsigned)high.bits << 16; };
  unsigned fa[4], fb[2];
  for (int i = 0; i < 4; i++) { // PTX ISA, m16n8k16 .bf16: row g or g+8; column 2t + (i&1), +8 for registers 2 and 3
    int row = g + (i % 2) * 8, column = 2 * t + (i / 2) * 8;
    fa[i] = two(a[row * 16 + column], a[row * 16 + column + 1]);
  }
  for (int i = 0; i < 2; i++) fb[i] = two(b[(2 * t + 8 * i) * 8 + g], b[(2 * t + 8 * i + 1) * 8 + g]);
  float fc[4];
  for (int i = 0; i < 4; i++) fc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  mma_16816_bf16(fc, fa, fb);
  for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = fc[i];
}

// As product_bf16, with fragments by copy16 and ldmatrix: A by x4, B [K N] by x2_trans.
KERNEL(product_matrices, float* c, const bf16* a, const bf16* b) {
  SHARED(bf16, s);
  bf16* sb = s + 256;
  int lane = lane_number(), g = lane / 4, t = lane % 4;
  copy16(s + lane * 8, a + lane * 8, true);
  copy_commit();
  if (lane < 16) copy16(sb + lane * 8, b + lane * 8, true);
  copy_commit();
  copy_wait<0>();
  __syncthreads();
  unsigned fa[4], fb[2];
  ldmatrix_x4(fa, s + (lane % 16) * 16 + lane / 16 * 8);
  ldmatrix_x2_trans(fb, sb + lane % 16 * 8);
  float fc[4];
  for (int i = 0; i < 4; i++) fc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  mma_16816_bf16(fc, fa, fb);
  for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = fc[i];
}

KERNEL(product_tf32, float* c, const float* a, const float* b) {
  int g = lane_number() / 4, t = lane_number() % 4;
  unsigned fa[4], fb[2];
  for (int i = 0; i < 4; i++) fa[i] = to_tf32(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
  for (int i = 0; i < 2; i++) fb[i] = to_tf32(b[(t + 4 * i) * 8 + g]);
  float fc[4];
  for (int i = 0; i < 4; i++) fc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  mma_1688_tf32(fc, fa, fb);
  for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = fc[i];
}

// Each matrix element is its number: matrix·64 + row·8 + column.
KERNEL(matrices, unsigned* out) {
  __shared__ __align__(16) unsigned short x[256];
  for (int i = 0; i < 8; i++) x[lane_number() * 8 + i] = (unsigned short)(lane_number() * 8 + i);
  __syncwarp();
  unsigned r[12];
  ldmatrix_x4(r, x + lane_number() * 8);
  ldmatrix_x4_trans(r + 4, x + lane_number() * 8);
  ldmatrix_x2(r + 8, x + lane_number() % 16 * 8);
  ldmatrix_x2_trans(r + 10, x + lane_number() % 16 * 8);
  for (int i = 0; i < 12; i++) out[lane_number() * 12 + i] = r[i];
}

// What shared memory holds before and after each wait.
KERNEL(copies, float* out, const float* x) {
  SHARED(float, s);
  copy16(s, x, true);
  copy_commit();
  copy16(s + 4, x + 4, false);
  copy_commit();
  out[0] = s[0];
  copy_wait<1>();
  out[1] = s[0], out[2] = s[4];
  copy_wait<0>();
  out[3] = s[4];
}

// Some block's thread, or lane of a warp, misses a barrier.
KERNEL(misses_block, int* out) {
  if (threadIdx.x != 7) __syncthreads();
}
KERNEL(misses_warp, int* out) {
  if (threadIdx.x != 7) __syncwarp();
}
KERNEL(misses_operation, float* out) {
  if (threadIdx.x != 7) warp_sum(1);
  else __ballot_sync(0xffffffffu, 1);
  __syncthreads();
}
KERNEL(outside, int* out) { out[1ll << 40] = 1; }
KERNEL(overflows_stack, int* out) {
  volatile char much[200 << 10];
  for (int i = sizeof much - 1; i >= 0; i -= 64) much[i] = 1;
}
KERNEL(past_shared, int* out) {
  SHARED(float, s);
  s[2] = 1;
}

static float number(unsigned i) { return (float)((int)(i * 2654435761u >> 20) % 1000 - 500) / 256; }

// Checks C [16 8] = 1 + a·b, in float64.
template <class X> static void compare(const char* what, const std::vector<float>& c, const X* a, const X* b, int depth) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double sum = 1;
      for (int k = 0; k < depth; k++) sum += (double)to_float(a[i * depth + k]) * to_float(b[k * 8 + j]);
      want(fabs(c[i * 8 + j] - sum) < 1e-5, what, i * 8 + j);
    }
}

static void products() {
  alignas(16) bf16 a[256], b[128];
  alignas(16) float fa[128], fb[64];
  for (int i = 0; i < 256; i++) a[i] = from_float<bf16>(number(i));
  for (int i = 0; i < 128; i++) b[i] = from_float<bf16>(number(i + 1000));
  for (int i = 0; i < 128; i++) fa[i] = number(i + 2000); // exact in TF32: 10 bits
  for (int i = 0; i < 64; i++) fb[i] = number(i + 3000);
  std::vector<float> c(128, 1);
  run("product_bf16", {1, 1, 1}, {32, 1, 1}, 0, c.data(), (const bf16*)a, (const bf16*)b);
  compare("mma_16816_bf16", c, a, b, 16);
  c.assign(128, 1);
  run("product_matrices", {1, 1, 1}, {32, 1, 1}, 768, c.data(), (const bf16*)a, (const bf16*)b);
  compare("ldmatrix, mma_16816_bf16", c, a, b, 16);
  c.assign(128, 1);
  run("product_tf32", {1, 1, 1}, {32, 1, 1}, 0, c.data(), (const float*)fa, (const float*)fb);
  compare("mma_1688_tf32", c, fa, fb, 8);

  std::vector<unsigned> r(32 * 12);
  run("matrices", {1, 1, 1}, {32, 1, 1}, 0, r.data());
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 12; i++) {
      int m = i < 8 ? i % 4 : i % 2, row = lane / 4, column = lane % 4 * 2;
      bool transposed = (i >= 4 && i < 8) || i >= 10;
      unsigned first = m * 64 + (transposed ? column * 8 + row : row * 8 + column), second = first + (transposed ? 8 : 1);
      want(r[lane * 12 + i] == (first | second << 16), "ldmatrix", lane * 12 + i);
    }
}

static void barriers() {
  for (int threads : {32, 96, 128, 1000, 1024}) {
    std::vector<int> out(3 * threads);
    run("rotate_block", {3, 1, 1}, {(unsigned)threads, 1, 1}, threads * 4, out.data(), 301);
    for (int i = 0; i < 3 * threads; i++) want(out[i] == (i % threads + 301) % threads, "rotate_block", i);
  }
  std::vector<float> x(512), out(2048);
  for (int i = 0; i < 512; i++) x[i] = (float)(i * 7 % 61);
  run("sums", {2, 1, 1}, {256, 1, 1}, 0, out.data(), (const float*)x.data());
  for (int i = 0; i < 512; i++) {
    float warp = 0, most = 0, block = 0;
    for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++) warp += x[j], most = fmaxf(most, x[j]);
    for (int j = i / 256 * 256; j < i / 256 * 256 + 256; j++) block += x[j];
    int lane = i % 32, neighbour = lane < 16 ? (lane == 15 ? 15 : lane + 1) : (lane == 16 ? 16 : lane - 1);
    want(out[4 * i] == warp && out[4 * i + 1] == most, "warp_sum, warp_max", i);
    want(out[4 * i + 2] == 2 * block && out[4 * i + 3] == neighbour + 5, "block_sum, shuffles of halves", i);
  }
}

static void copying() {
  alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[4];
  run("copies", {1, 1, 1}, {1, 1, 1}, 64, (float*)out, (const float*)x);
  want(isnan(out[0]) && out[1] == 1 && isnan(out[2]) && out[3] == 0, "copy16", 0);

  // cvt.rna ties away from zero, cvt.rn to even
  want(to_tf32(1 + 0x1p-11f) == host::bits_of(1 + 0x1p-10f) && to_tf32(1 + 0x1p-12f) == host::bits_of(1), "to_tf32", 0);
  want(bf16_bits(1 + 0x1p-8f) == 0x3f80 && bf16_bits(1 + 3 * 0x1p-8f) == 0x3f82, "bf16_bits", 0);
  want(bf16_bits(NAN) == 0x7fff && bf16_bits(INFINITY) == 0x7f80 && bf16_bits(3.4e38f) == 0x7f80, "bf16_bits", 1);
  // Random123's known answer of philox4x32-10: all counter and key words ffffffff
  words4 w = philox(~0ull, ~0ull, ~0ull);
  want(w.w[0] == 0x408f276d && w.w[1] == 0x41c83b0e && w.w[2] == 0xa20bc7c6 && w.w[3] == 0x6d5451fd, "philox", 0);
}

int main(int n, char** args) {
  static int out[4];
  if (n > 1) { // a kernel that is wrong: must abort
    run(args[1], {1, 1, 1}, {64, 1, 1}, 8, (int*)out);
    return 0;
  }
  products();
  barriers();
  copying();

  timespec from, to;
  std::vector<int> many(8 * 128);
  run("rotate_block", {8, 1, 1}, {128, 1, 1}, 512, many.data(), 1);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  run("rotate_block", {8, 1, 1}, {128, 1, 1}, 512, many.data(), 500);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  double us = (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3;
  printf("%s; 8 blocks of 128 threads with 1000 barriers: %.0f us of processor time\n", wrong ? "wrong" : "ok", us);
  return wrong != 0;
}

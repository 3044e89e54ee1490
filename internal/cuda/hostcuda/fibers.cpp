// Runs a kernel on the processor: blocks over a few threads of the system, the threads of a block as coroutines of one. A
// coroutine runs until its thread waits for others at a barrier of its warp or block; then the next one that can run does, of
// the same warp where there is one.
//
// Environment: JENGA_HOSTCUDA_THREADS, how many threads of the system (2); JENGA_HOSTCUDA_ORDER=reverse, the last lane of the
// last warp runs first, so that a missing barrier shows in another way.

#include "host.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace host {

namespace {

constexpr int max_threads = 1024;
constexpr size_t max_shared = 232448;     // an H100's

// Registers that a function preserves, kept on the coroutine's own stack: switching saves them, stores the stack's pointer in
// *from and continues at to.
#if defined(__x86_64__)
using Context = void*;
extern "C" void host_switch(Context* from, Context* to);
asm(R"(
.text
.p2align 4
.hidden host_switch
.type host_switch, @function
host_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov (%rsi), %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size host_switch, .-host_switch
)");

Context new_context(char* stack, size_t bytes, void (*entry)()) {
  void** top = (void**)(stack + bytes) - 1; // entry finds the stack as after a call
  *top = nullptr;
  *--top = (void*)entry;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  return top;
}
#elif defined(__aarch64__)
using Context = void*;
extern "C" void host_switch(Context* from, Context* to);
asm(R"(
.text
.p2align 4
.hidden host_switch
.type host_switch, %function
host_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  ldr x2, [x1]
  mov sp, x2
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size host_switch, .-host_switch
)");

Context new_context(char* stack, size_t bytes, void (*entry)()) {
  void** registers = (void**)(stack + bytes) - 20;
  memset(registers, 0, 160);
  registers[11] = (void*)entry; // x30
  return registers;
}
#else
using Context = ucontext_t;
void host_switch(Context* from, Context* to) { swapcontext(from, to); }

Context new_context(char* stack, size_t bytes, void (*entry)()) {
  ucontext_t c;
  getcontext(&c);
  c.uc_stack.ss_sp = stack;
  c.uc_stack.ss_size = bytes;
  makecontext(&c, entry, 0);
  return c;
}
#endif

struct Copy {
  void* shared;
  const void* global;
  bool valid;
  int group;
};

struct Fiber : Thread {
  Context context;
  std::vector<Copy> copies; // not yet finished, in order
  int groups;               // committed so far
};

} // namespace

struct Warp {
  unsigned lanes;   // those that exist
  unsigned ready;   // can run
  unsigned arrived; // wait for lanes of their masks
  unsigned exited;
  unsigned masks[32];
  const char* what[32];
  void (*run[32])(void* const*);
  void* data[32];
};

struct Block {
  const Kernel* kernel;
  void** args;
  dim3 grid, size;
  uint3 index;
  int threads, warps_used;
  int arrived, exited; // at the block's barrier; returned
  int votes, counted;  // of block_count
  unsigned with_ready; // bit w: warp w has lanes that can run
  Warp warps[32];
  Fiber fibers[max_threads];
  Context main;
  Fiber* runs; // null between blocks
  char* stacks; // of stack_bytes each; the lowest page of one is not accessible
  unsigned char* shared;
  unsigned shared_bytes;
};

namespace {

bool reverse() {
  static const bool is = [] {
    const char* order = getenv("JENGA_HOSTCUDA_ORDER");
    return order && !strcmp(order, "reverse");
  }();
  return is;
}

// The block that the thread of the system works on, and what it uses for all its blocks.
thread_local Block* working = nullptr;

int pick(unsigned bits) { return reverse() ? 31 - __builtin_clz(bits) : __builtin_ctz(bits); }

// Says where a kernel is; of its thread where one runs.
void describe(Block* b) {
  fprintf(stderr, "hostcuda: kernel %s, block (%u %u %u) of (%u %u %u), %u x %u x %u threads", b->kernel->name, b->index.x,
          b->index.y, b->index.z, b->grid.x, b->grid.y, b->grid.z, b->size.x, b->size.y, b->size.z);
}

// Nobody can run although not all have returned.
[[noreturn]] void stuck(Block* b) {
  describe(b);
  fprintf(stderr, ": a barrier is not reached by all: %d threads wait at the block's barrier, %d have returned\n", b->arrived,
          b->exited);
  for (int w = 0; w < b->warps_used; w++) {
    Warp& warp = b->warps[w];
    for (int i = 0; i < 32 && warp.arrived; i++)
      if (warp.arrived >> i & 1) {
        fprintf(stderr, "  warp %d: lanes %08x wait at barriers of their warp (lane %d at %s of lanes %08x); returned: %08x\n", w,
                warp.arrived, i, warp.what[i], warp.masks[i], warp.exited);
        break;
      }
  }
  abort();
}

// The next thread that can run, or null if all have returned.
Fiber* next(Block* b, Warp* preferred) {
  Warp* w = preferred;
  if (!w->ready) {
    if (!b->with_ready) {
      if (b->exited < b->threads) stuck(b);
      return nullptr;
    }
    w = &b->warps[pick(b->with_ready)];
  }
  int lane = pick(w->ready);
  w->ready &= ~(1u << lane);
  int number = (int)(w - b->warps);
  if (!w->ready) b->with_ready &= ~(1u << number);
  return &b->fibers[number * 32 + lane];
}

void make_ready(Block* b, Warp* w, unsigned lanes) {
  w->ready |= lanes;
  if (lanes) b->with_ready |= 1u << (w - b->warps);
}

// Leaves the thread that runs until another makes it ready.
void wait() {
  Fiber* self = (Fiber*)current();
  Fiber* to = next(self->block, self->warp); // never null: self has not returned
  self->block->runs = to;
  if (to != self) host_switch(&self->context, &to->context);
}

void run_thread() {
  Fiber* self = (Fiber*)current();
  Block* b = self->block;
  b->kernel->call(b->kernel->function, b->args);
  b->exited++;
  self->warp->exited |= 1u << self->lane;
  Fiber* to = next(b, self->warp);
  b->runs = to;
  host_switch(&self->context, to ? &to->context : &b->main);
  abort(); // a thread that has returned runs no more
}

void run_block(Block* b, unsigned number) {
  b->index = {number % b->grid.x, number / b->grid.x % b->grid.y, number / b->grid.x / b->grid.y};
  b->arrived = b->exited = b->votes = 0;
  b->with_ready = 0;
  memset(b->shared, 0xff, b->shared_bytes);
  memset(b->shared + b->shared_bytes, 0xa5, 128);
  for (int w = 0; w < b->warps_used; w++) {
    Warp& warp = b->warps[w];
    int lanes = b->threads - w * 32;
    warp.lanes = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    warp.ready = warp.arrived = warp.exited = 0;
    make_ready(b, &warp, warp.lanes);
  }
  for (int i = 0; i < b->threads; i++) {
    Fiber& f = b->fibers[i];
    unsigned x = b->size.x, y = b->size.y;
    f.index = {(unsigned)i % x, (unsigned)i / x % y, (unsigned)i / x / y};
    f.lane = i % 32;
    f.warp = &b->warps[i / 32];
    f.block = b;
    f.copies.clear();
    f.groups = 0;
    // stacks that begin at different places of a page share no lines of the cache
    char* stack = b->stacks + i * stack_bytes;
    ((Thread**)(stack + stack_bytes))[-1] = &f;
    f.context = new_context(stack, stack_bytes - 64 - i % 64 * 320, run_thread);
  }
  Fiber* first = next(b, &b->warps[reverse() ? b->warps_used - 1 : 0]);
  b->runs = first;
  host_switch(&b->main, &first->context);
  for (int i = 0; i < 128; i++)
    if (b->shared[b->shared_bytes + i] != 0xa5) {
      describe(b);
      fprintf(stderr, ": wrote past the %u bytes of its dynamic shared memory\n", b->shared_bytes);
      abort();
    }
}

} // namespace

uint3 block_index() { return current()->block->index; }
dim3 block_size() { return current()->block->size; }
dim3 grid_size() { return current()->block->grid; }
void* dynamic_shared() { return current()->block->shared; }

void block_barrier() { block_count(false); }

int block_count(bool predicate) {
  Block* b = current()->block;
  b->votes += predicate;
  if (++b->arrived < b->threads) {
    wait();
    return b->counted;
  }
  b->counted = b->votes;
  b->arrived = b->votes = 0;
  for (int w = 0; w < b->warps_used; w++) {
    Warp* warp = &b->warps[w];
    make_ready(b, warp, warp->lanes & ~(warp == current()->warp ? 1u << current()->lane : 0));
  }
  return b->counted;
}

void collect(unsigned mask, const char* what, void (*run)(void* const lanes[32]), void* data) {
  Thread* self = current();
  Warp* w = self->warp;
  unsigned bit = 1u << self->lane;
  if (!(mask & bit)) fail("%s: lane %d is not of its mask %08x", what, self->lane, mask);
  if (mask & ~w->lanes) fail("%s: the block has not all lanes of mask %08x", what, mask);
  w->masks[self->lane] = mask;
  w->what[self->lane] = what;
  w->run[self->lane] = run;
  w->data[self->lane] = data;
  w->arrived |= bit;
  if ((w->arrived & mask) != mask) {
    wait();
    return;
  }
  void* lanes[32];
  for (int i = 0; i < 32; i++) {
    lanes[i] = nullptr;
    if (!(mask >> i & 1)) continue;
    lanes[i] = w->data[i];
    if (w->run[i] != run || w->masks[i] != mask)
      fail("lane %d is at %s of lanes %08x while lane %d is at %s of lanes %08x", self->lane, what, mask, i, w->what[i],
           w->masks[i]);
  }
  run(lanes);
  w->arrived &= ~mask;
  make_ready(self->block, w, mask & ~bit);
}

void fail(const char* format, ...) {
  if (working && working->runs) {
    describe(working);
    uint3 i = working->runs->index;
    fprintf(stderr, ", thread (%u %u %u): ", i.x, i.y, i.z);
  }
  va_list list;
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
  abort();
}

void copy_begin(void* shared, const void* global, bool valid) {
  Fiber* f = (Fiber*)current();
  memset(shared, 0xff, 16);
  f->copies.push_back({shared, global, valid, f->groups});
}

void copy_group() { ((Fiber*)current())->groups++; }

void copy_finish(int groups) {
  Fiber* f = (Fiber*)current();
  size_t done = 0;
  for (; done < f->copies.size() && f->copies[done].group < f->groups - groups; done++) {
    Copy& c = f->copies[done];
    if (c.valid)
      memcpy(c.shared, c.global, 16);
    else
      memset(c.shared, 0, 16);
  }
  f->copies.erase(f->copies.begin(), f->copies.begin() + done);
}

namespace {

// c += a·b of m16n8k(depth), with exact products summed in float64 and rounded once. A word holds 1 or 2 elements.
template <int depth, class Element> void multiply(void* const lanes[32], Element element) {
  float a[16][depth], b[depth][8];
  constexpr int half = depth / 2, per_word = depth / 8;
  for (int l = 0; l < 32; l++) {
    auto* m = (Multiplication*)lanes[l];
    int g = l / 4, t = l % 4;
    for (int e = 0; e < per_word; e++) {
      int k = t * per_word + e;
      a[g][k] = element(m->a[0], e);
      a[g + 8][k] = element(m->a[1], e);
      a[g][k + half] = element(m->a[2], e);
      a[g + 8][k + half] = element(m->a[3], e);
      b[k][g] = element(m->b[0], e);
      b[k + half][g] = element(m->b[1], e);
    }
  }
  for (int i = 0; i < 16; i++) {
    double sum[8] = {};
    for (int k = 0; k < depth; k++)
      for (int j = 0; j < 8; j++) sum[j] += (double)a[i][k] * b[k][j];
    for (int j = 0; j < 8; j++) {
      float* c = ((Multiplication*)lanes[i % 8 * 4 + j / 2])->c;
      float* to = &c[i / 8 * 2 + j % 2];
      *to = (float)(*to + sum[j]);
    }
  }
}

void load(void* const lanes[32], int count, bool transposed) {
  for (int m = 0; m < count; m++) {
    unsigned short x[8][8];
    for (int i = 0; i < 8; i++) memcpy(x[i], ((Rows*)lanes[m * 8 + i])->row, 16);
    for (int l = 0; l < 32; l++) {
      int i = l / 4, j = l % 4 * 2;
      ((Rows*)lanes[l])->out[m] = transposed ? x[j][i] | (unsigned)x[j + 1][i] << 16 : x[i][j] | (unsigned)x[i][j + 1] << 16;
    }
  }
}

} // namespace

void multiply_bf16(void* const lanes[32]) {
  multiply<16>(lanes, [](unsigned word, int e) { return float_of(e == 0 ? word << 16 : word & 0xffff0000u); });
}

void multiply_tf32(void* const lanes[32]) {
  multiply<8>(lanes, [](unsigned word, int) { return float_of(word & ~0x1fffu); });
}

void load_matrices_x4(void* const lanes[32]) { load(lanes, 4, false); }
void load_matrices_x2(void* const lanes[32]) { load(lanes, 2, false); }
void load_matrices_x4_trans(void* const lanes[32]) { load(lanes, 4, true); }
void load_matrices_x2_trans(void* const lanes[32]) { load(lanes, 2, true); }

// Registered kernels, and the threads of the system that run blocks.

namespace {

Kernel* kernels = nullptr;

struct Pool {
  std::mutex launching; // one kernel at a time
  std::mutex mutex;
  std::condition_variable begin, end;
  long job = 0; // number of the last launch
  int busy = 0;
  int workers = 0, wanted = 0; // started; those that run the job
  unsigned taken = 0, blocks = 0; // blocks begun, in all
  Block form; // kernel, arguments and sizes of the job
};

Pool& pool() {
  static Pool* p = new Pool; // never freed: threads use it until the process ends
  return *p;
}

struct sigaction old_action;

// A kernel's access outside of all allocations ends here.
void on_fault(int number, siginfo_t* info, void* context) {
  if (working && working->runs) {
    describe(working);
    uint3 i = working->runs->index;
    fprintf(stderr, ", thread (%u %u %u): access to %p, outside of all memory\n", i.x, i.y, i.z, info->si_addr);
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (old_action.sa_flags & SA_SIGINFO && old_action.sa_sigaction) {
    old_action.sa_sigaction(number, info, context);
    return;
  }
  signal(number, SIG_DFL);
}

void work(int number) {
  sigset_t none;
  sigfillset(&none);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&none, s);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  stack_t alternative{};
  alternative.ss_size = 64 << 10;
  alternative.ss_sp = malloc(alternative.ss_size);
  sigaltstack(&alternative, nullptr);

  Block* b = new Block;
  void* mapped = mmap(nullptr, (max_threads + 1) * stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail("no memory for stacks");
  b->stacks = (char*)(((uintptr_t)mapped + stack_bytes - 1) & ~(stack_bytes - 1));
  for (int i = 0; i < max_threads; i++) mprotect(b->stacks + i * stack_bytes, getpagesize(), PROT_NONE);
  working = b;
  b->shared = (unsigned char*)aligned_alloc(256, max_shared + 256);

  Pool& p = pool();
  std::unique_lock<std::mutex> lock(p.mutex);
  for (long done = p.job - 1;;) {
    while (p.job == done) p.begin.wait(lock);
    done = p.job;
    if (number >= p.wanted) continue;
    b->kernel = p.form.kernel, b->args = p.form.args, b->grid = p.form.grid, b->size = p.form.size;
    b->threads = p.form.threads, b->warps_used = p.form.warps_used, b->shared_bytes = p.form.shared_bytes;
    while (p.taken < p.blocks) {
      unsigned n = p.taken++;
      lock.unlock();
      run_block(b, n);
      lock.lock();
    }
    if (--p.busy == 0) p.end.notify_all();
  }
}

int system_threads() {
  const char* n = getenv("JENGA_HOSTCUDA_THREADS");
  return n && atoi(n) > 0 ? atoi(n) : 2;
}

} // namespace

Kernel* find_kernel(const char* name) {
  for (Kernel* k = kernels; k; k = k->next)
    if (!strcmp(k->name, name)) return k;
  return nullptr;
}

void add_kernel(Kernel* k) {
  if (find_kernel(k->name)) {
    fprintf(stderr, "hostcuda: two kernels %s\n", k->name);
    abort();
  }
  k->next = kernels;
  kernels = k;
}

void launch(const Kernel* k, dim3 grid, dim3 block, unsigned shared, void** args) {
  Pool& p = pool();
  std::lock_guard<std::mutex> one(p.launching);
  std::unique_lock<std::mutex> lock(p.mutex);
  if (p.workers == 0) {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &old_action);
  }
  p.blocks = grid.x * grid.y * grid.z;
  p.wanted = system_threads();
  if ((unsigned)p.wanted > p.blocks) p.wanted = (int)p.blocks;
  p.form.kernel = k, p.form.args = args, p.form.grid = grid, p.form.size = block;
  p.form.threads = (int)(block.x * block.y * block.z);
  p.form.warps_used = (p.form.threads + 31) / 32;
  p.form.shared_bytes = shared;
  p.taken = 0;
  p.busy = p.wanted;
  for (; p.workers < p.wanted; p.workers++) std::thread(work, p.workers).detach();
  p.job++;
  p.begin.notify_all();
  while (p.busy > 0) p.end.wait(lock);
}

} // namespace host

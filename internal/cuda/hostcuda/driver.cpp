// The functions of NVIDIA's driver that package cuda uses, for a GPU that is this processor. Operations are done when they
// are called. Modules may be anything: the kernels are those that the library was linked with.
//
// Memory begins as NaN (all bits 1) and lies against pages without access: a kernel that leaves it ends the process, with
// the kernel's name. A copy that leaves it returns CUDA_ERROR_INVALID_VALUE.
//
// Environment, read at each call:
//	JENGA_HOSTCUDA_FAIL=NAME:CODE[:CALLS]   function NAME returns CODE, after so many calls that are done (0)
//	JENGA_HOSTCUDA_MEMORY=BYTES             the device's memory (4 GiB)
//	JENGA_HOSTCUDA_DEVICES=COUNT            how many devices (1); with 0, cuInit returns CUDA_ERROR_NO_DEVICE
//	JENGA_HOSTCUDA_CAPABILITY=MAJOR.MINOR   compute capability (9.0)
//	JENGA_HOSTCUDA_VERSION=NUMBER           of CUDA, as cuDriverGetVersion returns it (12020)
//	JENGA_HOSTCUDA_MODE=NUMBER              compute mode (0); 2 is Prohibited

#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <map>
#include <mutex>
#include <string>

#define DRIVER extern "C" __attribute__((visibility("default"))) int

namespace {

enum {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  out_of_resources = 701,
};

const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

std::recursive_mutex mutex;
std::map<std::string, long> calls; // of functions that JENGA_HOSTCUDA_FAIL names
bool started = false;
int retained = 0;
thread_local void* context = nullptr;
int device_context, modules, streams; // whose addresses are handles

// The code that JENGA_HOSTCUDA_FAIL has for a function, or 0.
int planned(const char* function) {
  const char* plan = getenv("JENGA_HOSTCUDA_FAIL");
  size_t n = strlen(function);
  if (!plan || strncmp(plan, function, n) != 0 || plan[n] != ':') return 0;
  std::lock_guard<std::recursive_mutex> lock(mutex);
  char* end;
  int code = (int)strtol(plan + n + 1, &end, 10);
  long first = *end == ':' ? strtol(end + 1, nullptr, 10) : 0;
  return calls[plan]++ >= first ? code : 0;
}

#define MAY_FAIL \
  if (int code = planned(__func__)) return code
#define NEEDS_CONTEXT \
  MAY_FAIL;           \
  if (!context) return invalid_context;  \
  std::lock_guard<std::recursive_mutex> lock(mutex)

long long setting(const char* name, long long otherwise) {
  const char* s = getenv(name);
  return s && *s ? atoll(s) : otherwise;
}

struct Allocation {
  size_t bytes;
  void* mapped;
  size_t mapped_bytes;
};

std::map<uintptr_t, Allocation> memory; // by address
size_t used = 0;

constexpr size_t page = 65536; // a multiple of all systems' pages
constexpr unsigned char beyond = 0xa5; // bytes between the memory and the page without access

size_t total_memory() { return (size_t)setting("JENGA_HOSTCUDA_MEMORY", 4ll << 30); }

// Whether [p, p+bytes) is memory of one allocation.
bool inside(uintptr_t p, size_t bytes) {
  auto after = memory.upper_bound(p);
  if (after == memory.begin()) return false;
  auto& [start, a] = *--after;
  return p - start <= a.bytes && bytes <= a.bytes - (p - start);
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

struct Function {
  host::Kernel* kernel;
  size_t shared = 48 << 10; // dynamic shared memory that it may have
};

std::map<std::string, Function> functions;

} // namespace

DRIVER cuGetErrorName(int code, const char** name) {
  *name = nullptr;
  for (auto& e : errors)
    if (e.code == code) *name = e.name;
  return *name ? success : invalid_value;
}

DRIVER cuGetErrorString(int code, const char** text) {
  *text = nullptr;
  for (auto& e : errors)
    if (e.code == code) *text = e.text;
  return *text ? success : invalid_value;
}

DRIVER cuInit(unsigned) {
  MAY_FAIL;
  if (setting("JENGA_HOSTCUDA_DEVICES", 1) == 0) return no_device;
  started = true;
  return success;
}

DRIVER cuDriverGetVersion(int* version) {
  MAY_FAIL;
  *version = (int)setting("JENGA_HOSTCUDA_VERSION", 12020);
  return success;
}

DRIVER cuDeviceGetCount(int* count) {
  MAY_FAIL;
  if (!started) return not_initialized;
  *count = (int)setting("JENGA_HOSTCUDA_DEVICES", 1);
  return success;
}

DRIVER cuDeviceGet(int* device, int number) {
  MAY_FAIL;
  if (!started) return not_initialized;
  if (number < 0 || number >= setting("JENGA_HOSTCUDA_DEVICES", 1)) return invalid_device;
  *device = number;
  return success;
}

DRIVER cuDeviceGetName(char* name, int bytes, int device) {
  MAY_FAIL;
  snprintf(name, bytes, "Emulated GPU %d", device);
  return success;
}

DRIVER cuDeviceTotalMem_v2(size_t* bytes, int) {
  MAY_FAIL;
  *bytes = total_memory();
  return success;
}

// The attributes by their numbers in cuda.h, of an H100 where the processor has nothing like it.
DRIVER cuDeviceGetAttribute(int* value, int attribute, int) {
  MAY_FAIL;
  const char* capability = getenv("JENGA_HOSTCUDA_CAPABILITY");
  if (!capability || !*capability) capability = "9.0";
  const char* dot = strchr(capability, '.');
  switch (attribute) {
  case 1: *value = 1024; break;                                  // MAX_THREADS_PER_BLOCK
  case 8: *value = 48 << 10; break;                              // MAX_SHARED_MEMORY_PER_BLOCK
  case 10: *value = 32; break;                                   // WARP_SIZE
  case 16: *value = 132; break;                                  // MULTIPROCESSOR_COUNT
  case 20: *value = (int)setting("JENGA_HOSTCUDA_MODE", 0); break; // COMPUTE_MODE
  case 75: *value = atoi(capability); break;                     // COMPUTE_CAPABILITY_MAJOR
  case 76: *value = dot ? atoi(dot + 1) : 0; break;              // COMPUTE_CAPABILITY_MINOR
  case 81: *value = 228 << 10; break;                            // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
  case 97: *value = 227 << 10; break;                            // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  default: *value = 0; return invalid_value;
  }
  return success;
}

DRIVER cuDevicePrimaryCtxRetain(void** to, int) {
  MAY_FAIL;
  if (!started) return not_initialized;
  std::lock_guard<std::recursive_mutex> lock(mutex);
  retained++;
  *to = &device_context;
  return success;
}

DRIVER cuDevicePrimaryCtxRelease_v2(int) {
  MAY_FAIL;
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (retained == 0) return invalid_context;
  retained--;
  return success;
}

DRIVER cuCtxSetCurrent(void* to) {
  MAY_FAIL;
  if (to && (to != &device_context || retained == 0)) return invalid_context;
  context = to;
  return success;
}

DRIVER cuCtxSynchronize() {
  NEEDS_CONTEXT;
  return success;
}

DRIVER cuMemGetInfo_v2(size_t* free, size_t* total) {
  NEEDS_CONTEXT;
  *total = total_memory();
  *free = *total > used ? *total - used : 0;
  return success;
}

DRIVER cuMemAlloc_v2(unsigned long long* to, size_t bytes) {
  NEEDS_CONTEXT;
  if (bytes == 0) return invalid_value;
  if (bytes > total_memory() || used > total_memory() - bytes) return out_of_memory;

  // page without access | … | memory, from a multiple of 256 | up to 255 bytes `beyond` | page without access
  size_t room = (bytes + page - 1) / page * page, mapped_bytes = room + 2 * page;
  auto* mapped = (unsigned char*)mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return out_of_memory;
  if (mprotect(mapped + page, room, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, mapped_bytes);
    return out_of_memory;
  }
  unsigned char* end = mapped + page + room;
  auto* p = (unsigned char*)((uintptr_t)(end - bytes) & ~(uintptr_t)255);
  memset(p, 0xff, bytes);
  memset(p + bytes, beyond, end - p - bytes);
  memory[(uintptr_t)p] = {bytes, mapped, mapped_bytes};
  used += bytes;
  *to = (unsigned long long)(uintptr_t)p;
  return success;
}

DRIVER cuMemFree_v2(unsigned long long address) {
  NEEDS_CONTEXT;
  auto found = memory.find((uintptr_t)address);
  if (found == memory.end()) return invalid_value;
  Allocation a = found->second;
  auto* p = (unsigned char*)(uintptr_t)address;
  for (auto* at = p + a.bytes; at < (unsigned char*)a.mapped + a.mapped_bytes - page; at++)
    if (*at != beyond) host::fail("hostcuda: a kernel wrote past the end of an allocation of %zu bytes", a.bytes);
  munmap(a.mapped, a.mapped_bytes);
  used -= a.bytes;
  memory.erase(found);
  return success;
}

DRIVER cuMemHostAlloc(void** to, size_t bytes, unsigned) {
  NEEDS_CONTEXT;
  if (posix_memalign(to, 4096, bytes) != 0) return out_of_memory;
  memset(*to, 0xff, bytes);
  return success;
}

DRIVER cuMemFreeHost(void* p) {
  NEEDS_CONTEXT;
  free(p);
  return success;
}

DRIVER cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void*) {
  NEEDS_CONTEXT;
  if (!inside(to, bytes)) return invalid_value;
  memcpy((void*)(uintptr_t)to, from, bytes);
  return success;
}

DRIVER cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void*) {
  NEEDS_CONTEXT;
  if (!inside(from, bytes)) return invalid_value;
  memcpy(to, (void*)(uintptr_t)from, bytes);
  return success;
}

DRIVER cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void*) {
  NEEDS_CONTEXT;
  if (!inside(to, bytes) || !inside(from, bytes)) return invalid_value;
  memmove((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
  return success;
}

DRIVER cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void*) {
  NEEDS_CONTEXT;
  if (!inside(to, bytes)) return invalid_value;
  memset((void*)(uintptr_t)to, value, bytes);
  return success;
}

DRIVER cuMemsetD32Async(unsigned long long to, unsigned value, size_t words, void*) {
  NEEDS_CONTEXT;
  if (words > SIZE_MAX / 4 || !inside(to, words * 4) || to % 4 != 0) return invalid_value;
  for (size_t i = 0; i < words; i++) ((unsigned*)(uintptr_t)to)[i] = value;
  return success;
}

DRIVER cuStreamCreate(void** to, unsigned) {
  NEEDS_CONTEXT;
  *to = &streams;
  return success;
}

DRIVER cuStreamDestroy_v2(void* stream) {
  NEEDS_CONTEXT;
  return stream == &streams ? success : invalid_handle;
}

DRIVER cuStreamSynchronize(void*) {
  NEEDS_CONTEXT;
  return success;
}

DRIVER cuEventCreate(void** to, unsigned) {
  NEEDS_CONTEXT;
  *to = new double(0); // time of the last record, in milliseconds
  return success;
}

DRIVER cuEventDestroy_v2(void* event) {
  NEEDS_CONTEXT;
  delete (double*)event;
  return success;
}

DRIVER cuEventRecord(void* event, void*) {
  NEEDS_CONTEXT;
  *(double*)event = now();
  return success;
}

DRIVER cuEventSynchronize(void*) {
  NEEDS_CONTEXT;
  return success;
}

DRIVER cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  NEEDS_CONTEXT;
  if (*(double*)from == 0 || *(double*)to == 0) return invalid_handle;
  *milliseconds = (float)(*(double*)to - *(double*)from);
  return success;
}

DRIVER cuModuleLoadDataEx(void** to, const void*, unsigned, int*, void**) {
  NEEDS_CONTEXT;
  *to = &modules;
  return success;
}

DRIVER cuModuleUnload(void*) {
  NEEDS_CONTEXT;
  return success;
}

DRIVER cuModuleGetFunction(void** to, void*, const char* name) {
  NEEDS_CONTEXT;
  host::Kernel* k = host::find_kernel(name);
  if (!k) return not_found;
  Function& f = functions[name];
  f.kernel = k;
  *to = &f;
  return success;
}

DRIVER cuFuncSetAttribute(void* function, int attribute, int value) {
  NEEDS_CONTEXT;
  if (attribute != 8) return attribute == 9 ? success : invalid_value; // 8: MAX_DYNAMIC_SHARED_SIZE_BYTES, 9: a preference
  if (value < 0 || value > 227 << 10) return invalid_value;
  ((Function*)function)->shared = value;
  return success;
}

// A parameter's place among the arguments and its bytes, as of CUDA 12.4; invalid_value after the last.
DRIVER cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes) {
  NEEDS_CONTEXT;
  host::Kernel* k = ((Function*)function)->kernel;
  if (index >= (size_t)k->parameters) return invalid_value;
  size_t at = 0;
  for (size_t i = 0;; i++) {
    at = (at + k->sizes[i] - 1) / k->sizes[i] * k->sizes[i];
    if (i == index) break;
    at += k->sizes[i];
  }
  *offset = at;
  if (bytes) *bytes = k->sizes[index];
  return success;
}

DRIVER cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared, void*, void** args, void** extra) {
  NEEDS_CONTEXT;
  auto* f = (Function*)function;
  if (!f) return invalid_handle;
  if (extra) return invalid_value;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0 || block_y == 0 || block_z == 0) return invalid_value;
  if (grid_x > 0x7fffffffu || grid_y > 65535 || grid_z > 65535 || block_z > 64) return invalid_value;
  if (block_x > 1024 || block_y > 1024 || block_x * block_y * block_z > 1024) return invalid_value;
  if (shared > f->shared) return invalid_value;
  if (block_x * block_y * block_z > (unsigned)f->kernel->threads) return out_of_resources;
  host::launch(f->kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, args);
  return success;
}

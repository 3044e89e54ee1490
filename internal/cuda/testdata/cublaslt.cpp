// The functions of cuBLASLt that package cuda uses, on the memory of the emulated driver: products are three loops. It
// writes a line to the file JENGA_FAKE_LT_LOG for each request of algorithms, and each product:
//
//	heuristic M N K reduction mask, alignment
//	matmul M N K algorithm
//
// M, N and K are those of the caller, for whom matrices are row-major. Environment, read at each call:
//
//	JENGA_FAKE_LT_NO_BIAS=1      no algorithm adds a bias
//	JENGA_FAKE_LT_SMALLEST=M     the first algorithm, 7, takes no fewer rows; the next is 8
//	JENGA_FAKE_LT_REFUSES=1      cublasLtMatmul returns CUBLAS_STATUS_NOT_SUPPORTED
//	JENGA_FAKE_LT_FAILS=1        cublasLtMatmul returns CUBLAS_STATUS_EXECUTION_FAILED
//
// With NVIDIA_HEADER it is compiled with cublasLt.h, which shows whether the two agree.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef NVIDIA_HEADER
#include <cublasLt.h>
#define STATUS cublasStatus_t CUBLASWINAPI
static_assert(CUDA_R_32F == 0 && CUDA_R_16BF == 14 && CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_32F_FAST_TF32 == 77);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == 3 && CUBLASLT_MATMUL_DESC_TRANSB == 4 && CUBLASLT_MATMUL_DESC_EPILOGUE == 7);
static_assert(CUBLASLT_MATMUL_DESC_BIAS_POINTER == 8 && CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE == 26 && CUBLAS_OP_T == 1);
static_assert(CUBLASLT_EPILOGUE_BIAS == 4 && CUBLASLT_MATRIX_LAYOUT_COLS == 3);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == 1 && CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK == 3);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == 5 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == 8);
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0 && CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == 2);
static_assert(CUBLAS_STATUS_NOT_SUPPORTED == 15 && sizeof(cublasLtMatmulAlgo_t) == 64);
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96);
#else
#define STATUS int
typedef int cublasComputeType_t, cudaDataType_t, cudaDataType, cublasLtMatmulDescAttributes_t;
typedef int cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t;
typedef void *cublasLtHandle_t, *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t, *cudaStream_t;
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  int state;
  float wavesCount;
  int reserved[4];
};
#endif

namespace {

#ifdef NVIDIA_HEADER
typedef cublasStatus_t status;
#else
typedef int status;
#endif
const status success = (status)0, invalid_value = (status)7, execution_failed = (status)13, not_supported = (status)15;

struct Operation {
  int compute = 0, transposed[2] = {}, epilogue = 1, bias_type = -1;
  const float* bias = nullptr;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
};

struct Preference {
  uint64_t workspace;
  uint32_t reduction, alignment[4];
};

int setting(const char* name) {
  const char* s = getenv(name);
  return s ? atoi(s) : 0;
}

template <class... A>
void log(const char* format, A... args) {
  const char* name = getenv("JENGA_FAKE_LT_LOG");
  FILE* file = name && *name ? fopen(name, "a") : nullptr;
  if (!file) return;
  fprintf(file, format, args...);
  fclose(file);
}

status take(void* to, const void* from, size_t bytes, size_t wanted) {
  if (bytes != wanted) return invalid_value;
  memcpy(to, from, bytes);
  return success;
}

float get(const void* p, int type, int64_t i) {
  if (type == 0) return ((const float*)p)[i];
  uint32_t bits = (uint32_t)((const uint16_t*)p)[i] << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

void put(void* p, int type, int64_t i, float x) {
  if (type == 0) {
    ((float*)p)[i] = x;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &x, 4);
  ((uint16_t*)p)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The sizes of a product, 0 where its layouts do not fit.
struct Sizes {
  uint64_t m, n, k;
};

Sizes sizes(const Operation* o, const Layout* a, const Layout* b, const Layout* c) {
  uint64_t m = o->transposed[0] ? a->columns : a->rows, k = o->transposed[0] ? a->rows : a->columns;
  uint64_t kb = o->transposed[1] ? b->columns : b->rows, n = o->transposed[1] ? b->rows : b->columns;
  bool fit = m == c->rows && n == c->columns && k == kb && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows &&
             c->ld >= (int64_t)c->rows;
  return fit ? Sizes{m, n, k} : Sizes{};
}

bool usable(const Operation* o, uint64_t algorithm, Sizes s) {
  if (s.m == 0) return false;
  if (o->epilogue == 4 && setting("JENGA_FAKE_LT_NO_BIAS")) return false;
  return algorithm != 7 || (int)s.n >= setting("JENGA_FAKE_LT_SMALLEST");
}

} // namespace

extern "C" {

STATUS cublasLtCreate(cublasLtHandle_t* to) {
  *(void**)to = malloc(1);
  return success;
}

STATUS cublasLtDestroy(cublasLtHandle_t h) {
  free((void*)h);
  return success;
}

STATUS cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute, cudaDataType_t scale) {
  if (scale != 0) return invalid_value;
  *(void**)to = new Operation{};
  ((Operation*)*(void**)to)->compute = (int)compute;
  return success;
}

STATUS cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t o) {
  delete (Operation*)o;
  return success;
}

STATUS cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute, const void* from,
                                      size_t bytes) {
  auto* o = (Operation*)to;
  switch ((int)attribute) {
  case 3: return take(&o->transposed[0], from, bytes, 4);
  case 4: return take(&o->transposed[1], from, bytes, 4);
  case 7: return take(&o->epilogue, from, bytes, 4);
  case 8: return take(&o->bias, from, bytes, 8);
  case 26: return take(&o->bias_type, from, bytes, 4);
  }
  return invalid_value;
}

STATUS cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  *(void**)to = new Layout{(int)type, rows, columns, ld};
  return success;
}

STATUS cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete (Layout*)l;
  return success;
}

STATUS cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t attribute, const void* from,
                                        size_t bytes) {
  if ((int)attribute != 3) return invalid_value;
  return take(&((Layout*)to)->columns, from, bytes, 8);
}

STATUS cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  *(void**)to = new Preference{};
  return success;
}

STATUS cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete (Preference*)p;
  return success;
}

STATUS cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t attribute,
                                            const void* from, size_t bytes) {
  auto* p = (Preference*)to;
  switch ((int)attribute) {
  case 1: return take(&p->workspace, from, bytes, 8);
  case 3: return take(&p->reduction, from, bytes, 4);
  case 5:
  case 6:
  case 7:
  case 8: return take(&p->alignment[(int)attribute - 5], from, bytes, 4);
  }
  return invalid_value;
}

STATUS cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                      cublasLtMatmulPreference_t preference, int most,
                                      cublasLtMatmulHeuristicResult_t results[], int* count) {
  auto* o = (Operation*)operation;
  auto* p = (Preference*)preference;
  Sizes s = sizes(o, (Layout*)a, (Layout*)b, (Layout*)c);
  log("heuristic %d %d %d mask %d, %d\n", (int)s.n, (int)s.m, (int)s.k, (int)p->reduction, (int)p->alignment[0]);
  *count = 0;
  for (uint64_t algorithm = 7; algorithm < 9 && *count < most; algorithm++)
    if (usable(o, algorithm, s)) {
      cublasLtMatmulHeuristicResult_t r{};
      r.algo.data[7] = algorithm;
      results[(*count)++] = r;
    }
  return *count ? success : not_supported;
}

STATUS cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                               const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  auto* o = (Operation*)operation;
  result->workspaceSize = 0;
  return usable(o, algorithm->data[7], sizes(o, (Layout*)a, (Layout*)b, (Layout*)c)) ? success : not_supported;
}

STATUS cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* A,
                      cublasLtMatrixLayout_t a, const void* B, cublasLtMatrixLayout_t b, const void* beta, const void* C,
                      cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                      void* workspace, size_t bytes, cudaStream_t stream) {
  auto *o = (Operation*)operation;
  auto *la = (Layout*)a, *lb = (Layout*)b, *lc = (Layout*)c;
  Sizes s = sizes(o, la, lb, lc);
  if (!usable(o, algorithm->data[7], s) || c != d || C != D || !workspace || bytes != 32 << 20 || !stream)
    return invalid_value;
  if (setting("JENGA_FAKE_LT_REFUSES")) return not_supported;
  if (setting("JENGA_FAKE_LT_FAILS")) return execution_failed;
  log("matmul %d %d %d %d\n", (int)s.n, (int)s.m, (int)s.k, (int)algorithm->data[7]);
  for (uint64_t j = 0; j < s.n; j++)
    for (uint64_t i = 0; i < s.m; i++) {
      float sum = 0;
      for (uint64_t l = 0; l < s.k; l++)
        sum += get(A, la->type, o->transposed[0] ? l + i * la->ld : i + l * la->ld) *
               get(B, lb->type, o->transposed[1] ? j + l * lb->ld : l + j * lb->ld);
      sum *= *(const float*)alpha;
      if (*(const float*)beta != 0) sum += *(const float*)beta * get(C, lc->type, i + j * lc->ld);
      if (o->epilogue == 4) sum += o->bias[i];
      put(D, lc->type, i + j * lc->ld, sum);
    }
  return success;
}
}

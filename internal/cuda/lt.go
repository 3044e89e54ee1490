//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ProductsVariable is the environment variable that names the file of cuBLASLt; "none" stands for no such library.
const ProductsVariable = "JENGA_CUBLASLT"

// Constants of cublasLt.h, cublas_api.h and library_types.h, the same in CUDA 12 and 13.
const (
	typeFloat32  = 0  // CUDA_R_32F
	typeBFloat16 = 14 // CUDA_R_16BF

	computeFloat32 = 68 // CUBLAS_COMPUTE_32F
	computeTF32    = 77 // CUBLAS_COMPUTE_32F_FAST_TF32

	operationTransA   = 3  // CUBLASLT_MATMUL_DESC_TRANSA, an int32
	operationTransB   = 4  // CUBLASLT_MATMUL_DESC_TRANSB, an int32
	operationEpilogue = 7  // CUBLASLT_MATMUL_DESC_EPILOGUE, an int32
	operationBias     = 8  // CUBLASLT_MATMUL_DESC_BIAS_POINTER
	operationBiasType = 26 // CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, an int32
	transposed        = 1  // CUBLAS_OP_T
	epilogueBias      = 4  // CUBLASLT_EPILOGUE_BIAS

	layoutColumns = 3 // CUBLASLT_MATRIX_LAYOUT_COLS, a uint64

	preferenceWorkspace = 1 // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, a uint64
	preferenceReduction = 3 // CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, a uint32
	preferenceAlignment = 5 // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a uint32; B, C, D follow
	reductionNone       = 0 // CUBLASLT_REDUCTION_SCHEME_NONE
	reductionCompute    = 2 // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE

	statusNotSupported = 15 // CUBLAS_STATUS_NOT_SUPPORTED
)

const (
	// workspaceBytes is the device memory that algorithms may use, which is what NVIDIA recommends for an H100.
	workspaceBytes = 32 << 20
	// usualRows is the number of rows for which an algorithm is chosen.
	usualRows = 8192
	// vectorBytes is what addresses and rows are multiples of where algorithms are to read vectors.
	vectorBytes = 16
	// mostChosen is the number of sizes of a shape that are kept.
	mostChosen = 1 << 14
)

// algorithm is a cublasLtMatmulAlgo_t.
type algorithm [8]uint64

// found is a cublasLtMatmulHeuristicResult_t.
type found struct {
	algorithm algorithm
	workspace uint64 // bytes
	state     int32  // 0: it is one
	waves     float32
	reserved  [4]int32
}

// blas is an open cuBLASLt. Its matrices are column-major: a row-major product C = A·B is C' = B'·A', where ' stands
// for the same memory read column by column. So B is the first operand, A the second.
type blas struct {
	file   string
	device *Device

	create, destroy, multiplyMatrices                  uintptr
	operationCreate, operationSet, operationDestroy    uintptr
	layoutCreate, layoutSet, layoutDestroy             uintptr
	preferenceCreate, preferenceSet, preferenceDestroy uintptr
	heuristic, check                                   uintptr

	handle    uintptr
	workspace Pointer
	plans     map[shape]*plan

	// what calls read and write
	one, zero float32
	word      uint64
	results   [8]found
	count     int32
}

// shape is what products have in common that an algorithm is chosen for.
type shape struct {
	fixed          [2]int // N, K; with TransA M, N
	lda, ldb, ldc  int
	transA, transB bool
	in, out        Type
	tf32, bias     bool
	lowBias        bool // the bias is bfloat16
	aligned        bool // all are multiples of vectorBytes
}

// plan has the descriptors of cuBLASLt for a shape, and the algorithms. The size is M, with TransA K.
type plan struct {
	shape                            shape
	operation, first, second, result uintptr
	size                             int                // that the layouts have
	usual                            map[int]*algorithm // by the size that they were chosen for; nil: none
	chosen                           map[int]*algorithm // by size; nil: none
}

func (b *blas) names() map[string]*uintptr {
	return map[string]*uintptr{
		"cublasLtCreate": &b.create, "cublasLtDestroy": &b.destroy, "cublasLtMatmul": &b.multiplyMatrices,
		"cublasLtMatmulDescCreate": &b.operationCreate, "cublasLtMatmulDescSetAttribute": &b.operationSet,
		"cublasLtMatmulDescDestroy":  &b.operationDestroy,
		"cublasLtMatrixLayoutCreate": &b.layoutCreate, "cublasLtMatrixLayoutSetAttribute": &b.layoutSet,
		"cublasLtMatrixLayoutDestroy":          &b.layoutDestroy,
		"cublasLtMatmulPreferenceCreate":       &b.preferenceCreate,
		"cublasLtMatmulPreferenceSetAttribute": &b.preferenceSet,
		"cublasLtMatmulPreferenceDestroy":      &b.preferenceDestroy,
		"cublasLtMatmulAlgoGetHeuristic":       &b.heuristic, "cublasLtMatmulAlgoCheck": &b.check,
	}
}

// openBLAS opens cuBLASLt for a device, nil where it is not there: it is an error only where ProductsVariable names it.
// Another library of the driver than the system's, as tests have, is used without it.
func openBLAS(d *Device) (*blas, error) {
	file := os.Getenv(ProductsVariable)
	if file == "none" {
		return nil, nil
	}
	if file != "" {
		b, err := openBLASFile(d, file)
		if err != nil {
			return nil, fmt.Errorf("%s names a file that cannot be used (%w): name another one, or none",
				ProductsVariable, err)
		}
		return b, nil
	}
	if d.driver.file != systemLibrary {
		return nil, nil
	}
	for _, name := range []string{"libcublasLt.so.13", "libcublasLt.so.12"} {
		for _, folder := range []string{"", "/usr/local/cuda/lib64"} {
			if b, err := openBLASFile(d, filepath.Join(folder, name)); err == nil {
				return b, nil
			}
		}
	}
	return nil, nil
}

func openBLASFile(d *Device, file string) (*blas, error) {
	library, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	b := &blas{file: file, device: d, plans: map[shape]*plan{}, one: 1}
	for name, address := range b.names() {
		if *address, err = purego.Dlsym(library, name); err != nil {
			return nil, err
		}
	}
	d.enter()
	status := call(b.create, uintptr(unsafe.Pointer(&b.handle)))
	d.leave()
	if status != 0 {
		return nil, fmt.Errorf("cublasLtCreate returned %d", status)
	}
	if b.workspace, err = d.Alloc(workspaceBytes); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// close ends the library's use.
func (b *blas) close() {
	if b == nil {
		return
	}
	d := b.device
	d.enter()
	defer d.leave()
	for _, p := range b.plans {
		b.forget(p)
	}
	clear(b.plans)
	call(b.destroy, b.handle)
}

// Products returns what makes products: the file of cuBLASLt, or "kernels".
func (d *Device) Products() string {
	if d.blas == nil {
		return "kernels"
	}
	return d.blas.file
}

// multiply queues a product, and reports whether it has, or there was an error before. If not, there is no algorithm.
func (b *blas) multiply(p *Product) bool {
	if b == nil || p.K == 0 {
		return false
	}
	d := b.device
	if !d.begin() {
		return true
	}
	defer d.leave()
	plan := b.plan(p)
	size := p.size()
	a := b.choose(plan, size)
	if a == nil {
		return false
	}
	b.resize(plan, size)
	if p.Bias != 0 {
		b.set(b.operationSet, plan.operation, operationBias, uint64(p.biasOf()), 8)
	}
	beta := &b.zero
	if p.Add {
		beta = &b.one
	}
	frame := append(d.frame[:0], b.handle, plan.operation, uintptr(unsafe.Pointer(&b.one)),
		uintptr(p.B), plan.first, uintptr(p.A), plan.second, uintptr(unsafe.Pointer(beta)),
		uintptr(p.C), plan.result, uintptr(p.C), plan.result,
		uintptr(unsafe.Pointer(a)), uintptr(b.workspace), workspaceBytes, d.stream)
	switch status := callFrame(b.multiplyMatrices, frame); status {
	case 0:
		d.launches++
		if d.profile != nil {
			d.mark(fmt.Sprintf("product [%d %d %d]", p.M, p.N, p.K))
		}
	case statusNotSupported:
		plan.chosen[size] = nil
		return false
	default:
		d.failed = fmt.Errorf("cuBLASLt (%s) returned %d for a product [%d %d]·[%d %d]", b.file, status,
			p.M, p.K, p.K, p.N)
	}
	return true
}

// size returns the size that a plan is not made for.
func (p *Product) size() int {
	if p.TransA {
		return p.K
	}
	return p.M
}

// shape returns the shape of a product.
func (p *Product) shape() shape {
	s := shape{fixed: [2]int{p.N, p.K}, lda: p.LDA, ldb: p.LDB, ldc: p.LDC, transA: p.TransA, transB: p.TransB,
		in: p.In, out: p.Out, tf32: p.TF32 && p.In == Float32, bias: p.Bias != 0,
		lowBias: p.lowBias()}
	if p.TransA {
		s.fixed = [2]int{p.M, p.N}
	}
	places := int(p.A|p.B|p.C|p.biasOf()) | (p.LDA|p.LDB)*p.In.Bytes() | p.LDC*p.Out.Bytes()
	s.aligned = places%vectorBytes == 0
	return s
}

// lowBias reports whether cuBLASLt adds LowBias.
func (p *Product) lowBias() bool { return p.Bias != 0 && p.LowBias != 0 && p.Out == BFloat16 }

// biasOf returns the bias that cuBLASLt adds.
func (p *Product) biasOf() Pointer {
	if p.lowBias() {
		return p.LowBias
	}
	return p.Bias
}

// plan returns the plan of a product's shape.
func (b *blas) plan(p *Product) *plan {
	s := p.shape()
	if made := b.plans[s]; made != nil {
		return made
	}
	made := &plan{shape: s, size: p.size(), usual: map[int]*algorithm{}, chosen: map[int]*algorithm{}}
	if !b.describe(made, p) {
		b.forget(made)
		made = &plan{shape: s}
	}
	b.plans[s] = made
	return made
}

// describe makes the descriptors of a plan, and reports whether the library has made all.
func (b *blas) describe(made *plan, p *Product) bool {
	compute, in, out, bias := computeFloat32, typeFloat32, typeFloat32, typeFloat32
	if made.shape.lowBias {
		bias = typeBFloat16
	}
	if made.shape.tf32 {
		compute = computeTF32
	}
	if p.In == BFloat16 {
		in = typeBFloat16
	}
	if p.Out == BFloat16 {
		out = typeBFloat16
	}
	layout := func(to *uintptr, kind, rows, columns, ld int, transpose bool) bool {
		if transpose {
			rows, columns = columns, rows
		}
		return call(b.layoutCreate, uintptr(unsafe.Pointer(to)), uintptr(kind), uintptr(rows), uintptr(columns),
			uintptr(ld)) == 0
	}
	set := func(attribute int, value uint64, bytes int) bool {
		return b.set(b.operationSet, made.operation, attribute, value, bytes)
	}
	return call(b.operationCreate, uintptr(unsafe.Pointer(&made.operation)), uintptr(compute), typeFloat32) == 0 &&
		(!p.TransB || set(operationTransA, transposed, 4)) &&
		(!p.TransA || set(operationTransB, transposed, 4)) &&
		(p.Bias == 0 || set(operationEpilogue, epilogueBias, 4) && set(operationBiasType, uint64(bias), 4) &&
			set(operationBias, uint64(p.biasOf()), 8)) &&
		layout(&made.first, in, p.N, p.K, p.LDB, p.TransB) &&
		layout(&made.second, in, p.K, p.M, p.LDA, p.TransA) &&
		layout(&made.result, out, p.N, p.M, p.LDC, false)
}

// set sets an attribute of an object of the library.
func (b *blas) set(function, object uintptr, attribute int, value uint64, bytes int) bool {
	b.word = value
	return call(function, object, uintptr(attribute), uintptr(unsafe.Pointer(&b.word)), uintptr(bytes)) == 0
}

// forget destroys the descriptors of a plan.
func (b *blas) forget(p *plan) {
	for _, layout := range []uintptr{p.first, p.second, p.result} {
		if layout != 0 {
			call(b.layoutDestroy, layout)
		}
	}
	if p.operation != 0 {
		call(b.operationDestroy, p.operation)
	}
}

// resize gives the layouts of a plan a size.
func (b *blas) resize(p *plan, size int) {
	if p.size == size {
		return
	}
	p.size = size
	other := p.result // [N M] column-major, and A [K M]
	if p.shape.transA {
		other = p.first // B [N K], and A [M K]
	}
	b.set(b.layoutSet, p.second, layoutColumns, uint64(size), 8)
	b.set(b.layoutSet, other, layoutColumns, uint64(size), 8)
}

// choose returns the algorithm for a size, nil: there is none. It depends on the shape and the size alone, and without
// TransA almost always on the shape.
func (b *blas) choose(p *plan, size int) *algorithm {
	if a, ok := p.chosen[size]; ok || p.operation == 0 {
		return a
	}
	usual := usualRows
	if p.shape.transA {
		usual = 1 << bits.Len(uint(max(size-1, 63))) // the power of two from size on
	}
	a, ok := p.usual[usual]
	if !ok {
		a = b.find(p, usual)
		p.usual[usual] = a
	}
	if a != nil && !b.fits(p, a, size) {
		a = b.find(p, size)
	}
	if len(p.chosen) == mostChosen {
		clear(p.chosen)
	}
	p.chosen[size] = a
	return a
}

// find returns the algorithm that the library proposes for a size, nil: none. Without TransA, one that can also be used
// for one row is preferred, and none divides a sum among blocks.
func (b *blas) find(p *plan, size int) *algorithm {
	b.resize(p, size)
	if !b.propose(p) {
		return nil
	}
	var first *algorithm
	for _, r := range b.results[:b.count] {
		if r.state != 0 || r.workspace > workspaceBytes {
			continue
		}
		a := r.algorithm
		if p.shape.transA || b.fits(p, &a, 1) {
			return &a
		}
		if first == nil {
			first = &a
		}
	}
	return first
}

// propose writes the algorithms that the library proposes for the layouts to results.
func (b *blas) propose(p *plan) bool {
	var preference uintptr
	if call(b.preferenceCreate, uintptr(unsafe.Pointer(&preference))) != 0 {
		return false
	}
	defer func() { call(b.preferenceDestroy, preference) }()
	set := func(attribute, value, bytes int) bool {
		return b.set(b.preferenceSet, preference, attribute, uint64(value), bytes)
	}
	reduction := reductionNone
	if p.shape.transA {
		reduction = reductionCompute // parts of a sum are added in order
	}
	if !set(preferenceWorkspace, workspaceBytes, 8) || !set(preferenceReduction, reduction, 4) {
		return false
	}
	for operand := range 4 { // B, A, and C twice
		alignment := vectorBytes
		if !p.shape.aligned && operand < 2 {
			alignment = p.shape.in.Bytes()
		} else if !p.shape.aligned {
			alignment = p.shape.out.Bytes()
		}
		if !set(preferenceAlignment+operand, alignment, 4) {
			return false
		}
	}
	b.count = 0
	return call(b.heuristic, b.handle, p.operation, p.first, p.second, p.result, p.result, preference,
		uintptr(len(b.results)), uintptr(unsafe.Pointer(&b.results)), uintptr(unsafe.Pointer(&b.count))) == 0
}

// fits reports whether an algorithm can be used for a size.
func (b *blas) fits(p *plan, a *algorithm, size int) bool {
	b.resize(p, size)
	var r found
	return call(b.check, b.handle, p.operation, p.first, p.second, p.result, p.result, uintptr(unsafe.Pointer(a)),
		uintptr(unsafe.Pointer(&r))) == 0 && r.workspace <= workspaceBytes
}

//go:build gpu && linux && (amd64 || arm64)

package cuda

import "fmt"

// Type is the type of a matrix's elements.
type Type int

// Types.
const (
	Float32  Type = iota
	BFloat16      // the upper half of a float32
)

// Bytes returns the size of an element.
func (t Type) Bytes() int {
	if t == BFloat16 {
		return 2
	}
	return 4
}

// Product is C = op(A)·op(B), or C += op(A)·op(B), of row-major matrices: op(A) [M K], op(B) [K N], C [M N]. Sums are
// of float32.
type Product struct {
	M, N, K        int
	A, B, C        Pointer
	LDA, LDB, LDC  int     // elements from a row to the next, as they are in memory
	TransA, TransB bool    // A is [K M], B is [N K] in memory; not both
	In, Out        Type    // of A and B; of C, BFloat16 only where In is
	TF32           bool    // elements of Float32 are rounded to TF32, 10 bits of mantissa
	Add            bool    // C +=
	Bias           Pointer // of float32 [N], added to each row, 0: none; not with Add
	LowBias        Pointer // the same of BFloat16, which cuBLASLt wants where Out is that; 0: there is none
}

// Multiply queues a product. A row of C is the same bits for any M unless TransA, and a product of the same sizes
// always is. With Out BFloat16, a bias may be added after the product has been rounded.
func (d *Device) Multiply(p Product) {
	p.check()
	if p.M == 0 || p.N == 0 {
		return
	}
	unbiased := p
	unbiased.Bias = 0
	switch {
	case d.blas.multiply(&p):
	case p.Bias != 0 && d.blas.multiply(&unbiased):
		d.addBias(&p)
	default:
		d.multiplyByKernel(&p)
	}
}

// check panics unless a product is one.
func (p *Product) check() {
	rowA, rowB := p.K, p.N
	if p.TransA {
		rowA = p.M
	}
	if p.TransB {
		rowB = p.K
	}
	if p.M < 0 || p.N < 0 || p.K < 0 || p.LDA < rowA || p.LDB < rowB || p.LDC < p.N || p.TransA && p.TransB ||
		p.In == Float32 && p.Out == BFloat16 || p.Add && p.Bias != 0 {
		panic(fmt.Sprintf("cuda: a product %+v", *p))
	}
}

// The kernels of products: by layout, and by types.
var productKernels = [3][4]string{
	{"product_nn_f32", "product_nn_tf32", "product_nn_bf16_f32", "product_nn_bf16_bf16"},
	{"product_nt_f32", "product_nt_tf32", "product_nt_bf16_f32", "product_nt_bf16_bf16"},
	{"product_tn_f32", "product_tn_tf32", "product_tn_bf16_f32", "product_tn_bf16_bf16"},
}

// What kernels/product.cu says of launches: elements of C that a block has by row and column, threads of a block, and
// bytes of shared memory by types.
const (
	productTile    = 128
	productThreads = 256
)

var productShared = [4]int{32 << 10, 80 << 10, 64 << 10, 64 << 10}

// multiplyByKernel queues a product by a kernel of kernels/product.cu.
func (d *Device) multiplyByKernel(p *Product) {
	layout := 0
	if p.TransB {
		layout = 1
	}
	if p.TransA {
		layout = 2
	}
	types := 0
	switch {
	case p.In == BFloat16 && p.Out == BFloat16:
		types = 3
	case p.In == BFloat16:
		types = 2
	case p.TF32:
		types = 1
	}
	var add int32
	if p.Add {
		add = 1
	}
	d.Launch(productKernels[layout][types], [3]int{pieces(p.N, productTile), pieces(p.M, productTile), 1},
		[3]int{productThreads, 1, 1}, productShared[types],
		p.C, p.A, p.B, p.M, p.N, p.K, p.LDA, p.LDB, p.LDC, add, p.Bias)
}

// addBias queues the addition of a product's bias to its C, by a kernel of kernels/bias.cu.
func (d *Device) addBias(p *Product) {
	const threads = 256
	d.Launch(p.Out.of("add_bias"), [3]int{p.M, 1, 1}, [3]int{threads, 1, 1}, 0, p.C, p.Bias, p.N, p.LDC)
}

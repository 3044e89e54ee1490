// Package cuda computes on an NVIDIA GPU, by the driver of the machine. The driver's library is opened at run time,
// without cgo, in programs built with the tag gpu.
//
// A Device has memory, into and out of which bytes are copied, kernels (CUDA C in kernels, compiled to PTX in ptx) and
// products of matrices, which cuBLASLt makes where the machine has it. Operations are queued and follow each other in
// order. What goes wrong with one is known later: operations return no errors, Synchronize returns the first.
package cuda

//go:generate go run gen/main.go

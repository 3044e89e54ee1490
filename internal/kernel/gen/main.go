// Command gen writes the assembly of package kernel for amd64: each loop once for AVX2 with FMA and once for AVX-512,
// from one description where they differ only in the width of a register. It also writes the declarations of all
// assembly, and lists the loops of each instruction set.
//
//	go generate ./internal/kernel
//
// It is a module of its own, so that programs that import jenga do not download the assembler.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// files are the generated files NAME_amd64.s, whose declarations are in loops_gen_amd64.go.
var files = []struct {
	name     string
	describe func(*isa)
}{
	{"rows", rows},
	{"sumsquares", sumSquares},
	{"dot64", dot64},
	{"layernorm", layerNorm},
	{"dropout", dropout},
	{"adamw", adamW},
	{"gelu", gelu},
	{"tanh", tanh},
	{"softmax", softmax},
	{"product", product},
	{"bfloat16", bfloat16},
	{"int8", int8s},
	{"attention", attention},
	{"copying", copying},
	{"measure", measure},
}

func main() {
	log.SetFlags(0)
	declarations := ir.NewFile()
	for _, f := range files {
		file, err := assemble(f.name, f.describe)
		if err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
		declarations.Constraints = file.Constraints
		declarations.Sections = append(declarations.Sections, file.Sections...)
	}
	text, err := printer.NewStubs(config).Print(declarations)
	if err != nil {
		log.Fatal(err)
	}
	var names []string
	for _, f := range declarations.Functions() {
		names = append(names, f.Name)
	}
	if err := writeSets(text, names); err != nil {
		log.Fatal(err)
	}
}

var config = printer.Config{Name: "go generate ./internal/kernel", Pkg: "kernel"}

// assemble writes the assembly of the loops that describe describes.
func assemble(name string, describe func(*isa)) (*ir.File, error) {
	c := build.NewContext()
	c.ConstraintExpr("amd64")
	for _, a := range []*isa{newAVX2(c), newAVX512(c)} {
		describe(a)
	}
	file, err := c.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	if err := pass.FunctionPass(checkAVX2).Execute(file); err != nil {
		return nil, err
	}
	encode(file)
	text, err := printer.NewGoAsm(config).Print(file)
	if err != nil {
		return nil, err
	}
	return file, os.WriteFile(filepath.Join("..", name+"_amd64.s"), text, 0o644)
}

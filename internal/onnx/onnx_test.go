package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// describe writes a file's parameters as one line each: name, shape, values.
func describe(t *testing.T, f *File) string {
	t.Helper()
	var lines []string
	for _, p := range f.Tensors() {
		values, err := p.Floats()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(p.Name, " ", p.Shape, " ", values))
	}
	return strings.Join(lines, "\n")
}

func TestParametersHavePyTorchsNamesAndShapes(t *testing.T) {
	in2out3 := float32s("onnx::MatMul_7", []int{2, 3}, 1, 2, 3, 4, 5, 6) // [in out]
	out3in2 := float32s("onnx::Gemm_7", []int{3, 2}, 1, 4, 2, 5, 3, 6)   // [out in]
	bias := float32s("a.b.bias", []int{3}, 7, 8, 9)
	const weight, both = "a.b.weight [3 2] [1 4 2 5 3 6]", "a.b.bias [3] [7 8 9]\na.b.weight [3 2] [1 4 2 5 3 6]"
	scopes := message{}.entry(9, "pkg.torch.onnx.name_scopes", "['', 'a', 'a.b', 'linear_1']")
	tests := []struct {
		name  string
		parts []message
		want  string
	}{
		{"by the initializer's name", []message{float32s("a.b.weight", []int{3, 2}, 1, 4, 2, 5, 3, 6)}, weight},
		{"by the bias added to its product", []message{in2out3, bias,
			op("MatMul_1", "MatMul", []string{"x", "onnx::MatMul_7"}, "y"),
			op("Add_2", "Add", []string{"y", "a.b.bias"}, "z")}, both},
		{"by the bias as first operand", []message{in2out3, bias,
			op("MatMul_1", "MatMul", []string{"x", "onnx::MatMul_7"}, "y"),
			op("Add_2", "Add", []string{"a.b.bias", "y"}, "z")}, both},
		{"by the node's name", []message{in2out3, op("/a/b/MatMul", "MatMul", []string{"x", "onnx::MatMul_7"}, "y")},
			weight},
		{"by the node's modules", []message{in2out3,
			op("node_9", "MatMul", []string{"x", "onnx::MatMul_7"}, "y", scopes)}, weight},
		{"a product by its own name is turned", []message{float32s("a.b.weight", []int{2, 3}, 1, 2, 3, 4, 5, 6),
			op("", "MatMul", []string{"x", "a.b.weight"}, "y")}, weight},
		{"a transposed product is not", []message{out3in2,
			op("", "Transpose", []string{"onnx::Gemm_7"}, "t", integers("perm", 1, 0)),
			op("/a/b/MatMul", "MatMul", []string{"x", "t"}, "y")}, weight},
		{"Gemm with transB", []message{out3in2, bias,
			op("g", "Gemm", []string{"x", "onnx::Gemm_7", "a.b.bias"}, "y", integer("transB", 1), float("alpha", 1))},
			both},
		{"Gemm without transB", []message{in2out3, bias,
			op("g", "Gemm", []string{"x", "onnx::MatMul_7", "a.b.bias"}, "y")}, both},
		{"one tensor for equal values, copied by name", []message{float32s("a.bias", []int{1}, 5),
			op("Identity_1", "Identity", []string{"a.bias"}, "b.bias"),
			op("Identity_2", "Identity", []string{"b.bias"}, "c.bias")},
			"a.bias [1] [5]\nb.bias [1] [5]\nc.bias [1] [5]"},
		{"one tensor for equal values, identified by module", []message{in2out3, float32s("c.bias", []int{3}, 7, 8, 9),
			op("/a/b/MatMul", "MatMul", []string{"x", "onnx::MatMul_7"}, "y"),
			op("/a/b/Add", "Add", []string{"y", "c.bias"}, "z"),
			float32s("onnx::MatMul_8", []int{1, 3}, 1, 2, 3),
			op("/c/MatMul", "MatMul", []string{"z", "onnx::MatMul_8"}, "v"),
			op("/c/Add", "Add", []string{"v", "c.bias"}, "u")},
			both + "\nc.bias [3] [7 8 9]\nc.weight [3 1] [1 2 3]"},
		{"a bias of two products names neither weight", []message{in2out3, float32s("c.bias", []int{3}, 7, 8, 9),
			op("", "MatMul", []string{"x", "onnx::MatMul_7"}, "y"), op("", "Add", []string{"y", "c.bias"}, "z"),
			op("", "MatMul", []string{"z", "onnx::MatMul_7"}, "w"), op("", "Add", []string{"w", "c.bias"}, "v")},
			"c.bias [3] [7 8 9]"},
		{"a module with two weights names neither", []message{in2out3, out3in2,
			op("/a/b/MatMul", "MatMul", []string{"x", "onnx::MatMul_7"}, "y"),
			op("/a/b/MatMul_1", "MatMul", []string{"y", "onnx::Gemm_7"}, "z")}, ""},
		{"norm in one operator", []message{float32s("p", []int{1}, 3), float32s("q", []int{1}, 4),
			op("/n/LayerNormalization", "LayerNormalization", []string{"x", "p", "q"}, "y")},
			"n.bias [1] [4]\nn.weight [1] [3]"},
		{"decomposed norm", []message{float32s("p", []int{1}, 3), float32s("q", []int{1}, 4),
			op("/n/Mul", "Mul", []string{"x", "p"}, "y"), op("/n/Add_1", "Add", []string{"y", "q"}, "z")},
			"n.bias [1] [4]\nn.weight [1] [3]"},
		{"table", []message{float32s("p", []int{1, 2}, 3, 4), op("/e/Gather", "Gather", []string{"p", "ids"}, "y")},
			"e.weight [1 2] [3 4]"},
		{"constant node", []message{op("", "Constant", nil, "a.bias", message{}.bytes(5, message{}.text(1, "value").
			bytes(5, message{}.number(1, 1).number(2, 1).bytes(9, bytesOf([]float32{2})))))}, "a.bias [1] [2]"},
		{"float_data in one piece", []message{tensorOf("a.bias", 1, []int{2},
			message{}.bytes(4, bytesOf([]float32{1, 2})))}, "a.bias [2] [1 2]"},
		{"float_data in several pieces",
			[]message{tensorOf("a.bias", 1, []int{3}, append(message{}.bytes(4, bytesOf([]float32{1, 2})),
				protowire.AppendFixed32(protowire.AppendTag(nil, 4, protowire.Fixed32Type), math.Float32bits(3))...))},
			"a.bias [3] [1 2 3]"},
		{"half", []message{tensorOf("a.bias", 10, []int{2}, message{}.bytes(9, []byte{0, 0x3c, 0, 0xc0}))},
			"a.bias [2] [1 -2]"},
		{"half in int32_data", []message{tensorOf("a.bias", 10, []int{2},
			message{}.number(5, 0x3c00).number(5, 0xc000))}, "a.bias [2] [1 -2]"},
		{"bfloat", []message{tensorOf("a.bias", 16, []int{2}, message{}.bytes(9, []byte{0x80, 0x3f, 0, 0xc0}))},
			"a.bias [2] [1 -2]"},
		{"half turned", []message{tensorOf("onnx::MatMul_7", 10, []int{2, 1},
			message{}.bytes(9, []byte{0, 0x3c, 0, 0xc0})),
			op("/a/b/MatMul", "MatMul", []string{"x", "onnx::MatMul_7"}, "y")}, "a.b.weight [1 2] [1 -2]"},
		{"packed shape", []message{message{}.bytes(5, message{}.bytes(1, []byte{2, 1}).number(2, 1).text(8, "a.weight").
			bytes(9, bytesOf([]float32{1, 2})))}, "a.weight [2 1] [1 2]"},
		{"integers are not parameters",
			[]message{tensorOf("a.weight", 7, []int{1}, message{}.bytes(9, make([]byte, 8)))}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := newFile(model(test.parts...), "")
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(t, f); got != test.want {
				t.Errorf("parameters are\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// externalTensor returns an initializer in an external file, for a graph.
func externalTensor(shape []int, entries ...string) message {
	m := message{}.number(14, 1)
	for i := 0; i < len(entries); i += 2 {
		m = m.entry(13, entries[i], entries[i+1])
	}
	return tensorOf("a.bias", 1, shape, m)
}

func TestExternalValues(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "w"), bytesOf([]float32{1, 2, 3, 4}), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "model.onnx")
	if err := os.WriteFile(path, model(externalTensor([]int{2}, "location", "w", "offset", "4", "length", "8")),
		0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(t, f), "a.bias [2] [2 3]"; got != want {
		t.Errorf("parameters are %s, want %s", got, want)
	}
	if got, err := ExternalFiles(path); err != nil || !slices.Equal(got, f.ExternalFiles()) ||
		!slices.Equal(got, []string{filepath.Join(folder, "w")}) {
		t.Errorf("ExternalFiles(path) = %v, %v, f.ExternalFiles() = %v, want w", got, err, f.ExternalFiles())
	}
	if got := f.Tensors()[0].Bytes(); got != 8 {
		t.Errorf("Bytes() = %d, want 8", got)
	}
}

func TestBrokenFilesAreErrors(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "w"), make([]byte, 16), 0o644); err != nil {
		t.Fatal(err)
	}
	truncated := model(float32s("a.bias", []int{1}, 1))
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not an ONNX file: it holds no graph"},
		{"text", []byte("version https://"), "truncated, or not an ONNX file: a field is malformed"},
		{"truncated", truncated[:len(truncated)-1], "truncated, or not an ONNX file: it ends inside a field"},
		{"lying length", message{}.bytes(7, []byte("\x0a\xff\xff\xff\xff\x0f")),
			"truncated, or not an ONNX file: it ends inside a field"},
		{"name not UTF-8", model(float32s("\xff", []int{1}, 1)),
			"truncated, or not an ONNX file: initializer \"\": field 8 is not a UTF-8 string"},
		{"shape too large for its values", model(float32s("a.bias", []int{1000, 1000, 1000}, 1)),
			`initializer "a.bias": F32 of shape [1000 1000 1000] does not take the 4 bytes of its data`},
		{"negative shape", model(float32s("a.bias", []int{-1}, 1)), `initializer "a.bias": its shape is [-1]`},
		{"overflowing shape", model(float32s("a.bias", []int{1 << 40, 1 << 40}, 1)),
			`initializer "a.bias": its shape [1099511627776 1099511627776] is too large`},
		{"duplicate", model(float32s("a.bias", []int{1}, 1), float32s("a.bias", []int{1}, 1)),
			`duplicate initializer "a.bias"`},
		{"quantized", model(op("", "DynamicQuantizeLinear", nil, ""), op("", "MatMulInteger", nil, "")),
			"operator DynamicQuantizeLinear: a quantized graph is not read; export the model in float32\n" +
				"operator MatMulInteger: a quantized graph is not read; export the model in float32"},
		{"quantized by a linear operator", model(op("", "QLinearMatMul", nil, "")),
			"operator QLinearMatMul: a quantized graph is not read; export the model in float32"},
		{"fused", model(op("", "SkipLayerNormalization", nil, "", message{}.text(7, "com.microsoft"))),
			"operator com.microsoft.SkipLayerNormalization: a graph with fused operators is not read; export the " +
				"model without optimization"},
		{"fused and named twice", model(op("", "Attention", nil, "", message{}.text(7, "com.microsoft")),
			op("", "Attention", nil, "", message{}.text(7, "com.microsoft"))),
			"operator com.microsoft.Attention: a graph with fused operators is not read; export the model without " +
				"optimization"},
		{"scaled product", model(op("", "Gemm", []string{"x", "w"}, "", float("alpha", 0.5))),
			"operator Gemm: a product times alpha 0.5 is not read; want 1"},
		{"values outside the folder", model(externalTensor([]int{1}, "location", "../w")),
			`initializer "a.bias": its values are in "../w"; want a file in the folder of the .onnx file`},
		{"values at an absolute path", model(externalTensor([]int{1}, "location", "/etc/passwd")),
			`initializer "a.bias": its values are in "/etc/passwd"; want a file in the folder of the .onnx file`},
		{"values in no file", model(externalTensor([]int{1})),
			`truncated, or not an ONNX file: initializer "a.bias": its values are in another file, which is not named`},
		{"values in a missing file", model(externalTensor([]int{1}, "location", "v")),
			`initializer "a.bias": stat FOLDER/v: no such file or directory`},
		{"values in a folder", model(externalTensor([]int{1}, "location", ".")),
			`initializer "a.bias": FOLDER: truncated: it has`},
		{"values after the end", model(externalTensor([]int{1 << 40}, "location", "w")),
			`initializer "a.bias": FOLDER/w: truncated: it has 16 bytes, the values are at bytes 0 to 4398046511104`},
		{"values far after the end", model(externalTensor([]int{1}, "location", "w", "offset", "9223372036854775807")),
			`initializer "a.bias": FOLDER/w: truncated: it has 16 bytes`},
		{"negative offset", model(externalTensor([]int{1}, "location", "w", "offset", "-4")),
			`truncated, or not an ONNX file: initializer "a.bias": offset "-4" in another file`},
		{"length that is not a number", model(externalTensor([]int{1}, "location", "w", "length", "x")),
			`truncated, or not an ONNX file: initializer "a.bias": length "x" in another file`},
		{"length that is not the shape's", model(externalTensor([]int{1}, "location", "w", "length", "8")),
			`initializer "a.bias": its shape takes 4 bytes, but its length is 8 in "w"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := newFile(test.data, folder)
			want := strings.ReplaceAll(test.want, "FOLDER", folder)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("newFile: error\n %v, want\n %s", err, want)
			}
		})
	}
}

func TestAGraphOfEmptyPartsTakesLittleMemory(t *testing.T) {
	for _, test := range []struct {
		name  string
		field protowire.Number
		parts int
		most  uint64 // bytes
		want  string // error
	}{
		{"nodes", 1, 1_000_000, 160 << 20, ""},
		{"too many nodes", 1, 1_000_001, 1 << 20,
			"1000001 nodes; at most 1000000 are read: an encoder's graph has thousands"},
		{"too many initializers", 5, 1_000_001, 1 << 20,
			"1000001 initializers; at most 1000000 are read: an encoder's graph has thousands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := message{}.bytes(7, bytes.Repeat(message{}.bytes(test.field, nil), test.parts))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := newFile(data, t.TempDir())
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > test.most {
				t.Errorf("it took %d bytes, want at most %d", after.TotalAlloc-before.TotalAlloc, test.most)
			}
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("newFile: error %v, want %s", err, test.want)
			}
		})
	}
}

func TestErrorsOfOpenNameThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if want := path + ": not an ONNX file: it holds no graph"; err == nil || err.Error() != want {
		t.Errorf("Open: error %v, want %s", err, want)
	}
}

func FuzzNew(f *testing.F) {
	f.Add(model(float32s("w", []int{2, 1}, 1, 2), float32s("a.bias", []int{1}, 3),
		op("/a/MatMul", "MatMul", []string{"x", "w"}, "y"), op("/a/Add", "Add", []string{"y", "a.bias"}, "z"),
		op("", "Identity", []string{"a.bias"}, "b.bias"),
		op("", "Transpose", []string{"w"}, "t", integers("perm", 1, 0)),
		op("", "Gemm", []string{"x", "t", "a.bias"}, "v", integer("transB", 1), float("alpha", 1)),
		op("", "LayerNormalization", []string{"x", "a.bias", "a.bias"}, "u",
			message{}.entry(9, "pkg.torch.onnx.name_scopes", "['', 'n', 'o']"))))
	f.Add(model(externalTensor([]int{1}, "location", "w", "offset", "0", "length", "4")))
	f.Add(model(tensorOf("a.bias", 10, []int{2}, message{}.number(5, 0x3c00).number(5, 0xc000))))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := newFile(slices.Clone(data), folder)
		if err != nil {
			return
		}
		for _, p := range file.Tensors() {
			values, err := p.Floats()
			if err != nil {
				t.Fatalf("Floats of %q: %v", p.Name, err)
			}
			n := 1
			for _, d := range p.Shape {
				n *= d
			}
			if len(values) != n {
				t.Fatalf("%q has %d values and shape %v", p.Name, len(values), p.Shape)
			}
		}
	})
}

// message builds a Protocol Buffers message: the tests build their ONNX files with it.
type message []byte

func (m message) number(field protowire.Number, v int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m message) bytes(field protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), b)
}

func (m message) text(field protowire.Number, s ...string) message {
	for _, s := range s {
		m = m.bytes(field, []byte(s))
	}
	return m
}

func (m message) entry(field protowire.Number, key, value string) message {
	return m.bytes(field, message{}.text(1, key).text(2, value))
}

// model is a ModelProto of a graph's parts.
func model(parts ...message) []byte {
	var graph message
	for _, p := range parts {
		graph = append(graph, p...)
	}
	return message{}.number(1, 8).bytes(7, graph)
}

// op is a node as a part of a graph.
func op(name, operator string, inputs []string, output string, more ...message) message {
	n := message{}.text(1, inputs...).text(2, output).text(3, name).text(4, operator)
	for _, m := range more {
		n = append(n, m...)
	}
	return message{}.bytes(1, n)
}

// float32s is an initializer of type FLOAT in raw_data, as a part of a graph.
func float32s(name string, shape []int, values ...float32) message {
	return tensorOf(name, 1, shape, message{}.bytes(9, bytesOf(values)))
}

func tensorOf(name string, dtype int64, shape []int, data message) message {
	var m message
	for _, d := range shape {
		m = m.number(1, int64(d))
	}
	return message{}.bytes(5, append(m.number(2, dtype).text(8, name), data...))
}

func bytesOf(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// integer, float and integers are attributes as parts of a node.
func integer(name string, v int64) message {
	return message{}.bytes(5, message{}.text(1, name).number(3, v))
}

func float(name string, v float32) message {
	a := protowire.AppendTag(message{}.text(1, name), 2, protowire.Fixed32Type)
	return message{}.bytes(5, protowire.AppendFixed32(a, math.Float32bits(v)))
}

func integers(name string, v ...int64) message {
	var packed []byte
	for _, v := range v {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return message{}.bytes(5, message{}.text(1, name).bytes(8, packed))
}

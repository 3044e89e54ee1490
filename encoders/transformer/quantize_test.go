package transformer

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// quantized saves the model in a folder with int8 weights.
func quantized(t *testing.T, from string, keep ...int) string {
	t.Helper()
	dir := t.TempDir()
	if err := openFrozen(t, from, "all").quantized("", keep...)(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// statesIn returns the states of tokens, computed in a precision.
func statesIn(t *testing.T, e *encoder, precision nn.Precision) []float32 {
	t.Helper()
	tokens := pack(layoutText(0, 7), layoutText(1, 1), layoutText(2, 26), layoutText(3, 12))
	return slices.Clone(encodeAs(t, e, nn.NewPass(1), tokens, encoders.Mode{Precision: precision})[0])
}

// roundTables gives the tables of embeddings the values that they have as integers.
func roundTables(e *encoder) {
	for _, table := range []*nn.Param{e.embeddings.words, e.embeddings.positions, e.embeddings.types} {
		if table == nil {
			continue
		}
		width := table.Shape[1]
		rows := kernel.RoundRows(kernel.Dense(table.Data, width), table.Shape[0], width)
		table.Data = make([]float32, len(rows.Data))
		for i, q := range rows.Data {
			table.Data[i] = rows.Scales[i/width] * float32(q)
		}
	}
}

func TestAQuantizedModelComputesAsItsModelInInt8(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			exact := openFrozen(t, layoutModel(name), "all")
			e := openFrozen(t, quantized(t, layoutModel(name)), "all")
			defer e.close()
			floats := statesIn(t, exact, nn.Float32)
			roundTables(exact)
			want := statesIn(t, exact, nn.Int8)
			for _, precision := range []nn.Precision{nn.Float32, nn.Int8} { // of the pass, which decides nothing
				if !slices.Equal(statesIn(t, e, precision), want) {
					t.Errorf("in a pass of %v the states have other bits", precision)
				}
			}
			if d := relativeDistance(want, floats); !(d > 0 && d < 0.0225) { // 1.5 times the largest that was measured
				t.Errorf("the states are %v from those of float32", d)
			}
		})
	}
}

func TestLevelsOfAQuantizedModelThatAreKeptStayFloat32(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			exact := openFrozen(t, layoutModel(name), "all")
			var all []int
			for level := range exact.levels {
				all = append(all, level)
			}
			e := openFrozen(t, quantized(t, layoutModel(name), all...), "all")
			if !slices.Equal(statesIn(t, e, nn.Float32), statesIn(t, exact, nn.Float32)) {
				t.Error("with all levels kept the states have other bits")
			}
			equalParameters(t, e, exact)

			// one level
			file := filepath.Join(quantized(t, layoutModel(name), 1), "model.safetensors")
			types := map[string]string{}
			for _, p := range exact.parameters {
				types[p.in.name] = "F32"
				if (p.linear != nil || p.table) && p.level != 1 {
					types[p.in.name], types[scalesOf(p.in.name)] = "I8", "F32"
				}
			}
			for _, tensor := range readTensors(t, file) {
				if types[tensor.Name] != tensor.DType {
					t.Errorf("tensor %s has type %s, want %s", tensor.Name, tensor.DType, types[tensor.Name])
				}
				delete(types, tensor.Name)
			}
			if len(types) > 0 {
				t.Errorf("tensors %v are not in the file", types)
			}
			if d := openFrozen(t, filepath.Dir(file), "all").Describe(); d.Precision != nn.Int8 {
				t.Errorf("the precision is %v", d.Precision)
			}
		})
	}
}

func TestAQuantizedModelNeitherLearnsNorIsSaved(t *testing.T) {
	dir := quantized(t, tinyModel("bert"))
	for _, freeze := range []string{"none", "embeddings", "1"} {
		_, err := New(Options{}, encoders.Env{Model: dir, Freeze: freeze, Params: nn.NewParams(1).In("encoder")})
		if !errors.Is(err, encoders.ErrQuantized) || !strings.Contains(err.Error(), dir) {
			t.Errorf("freeze %s: %v", freeze, err)
		}
	}
	e := openFrozen(t, dir, "all")
	defer e.close()
	if err := e.save(&nn.Copies{})(t.TempDir()); !errors.Is(err, encoders.ErrQuantized) {
		t.Errorf("Save: %v", err)
	}
}

func TestAnAdapterIsFoldedIntoQuantizedWeights(t *testing.T) {
	open := func(lora encoders.LoRA, adapters ...string) (*encoder, nn.Params) {
		params := nn.NewParams(1)
		e, err := New(Options{}, encoders.Env{Model: layoutModel("mpnet"), Freeze: "none", LoRA: lora,
			Adapters: adapters, Params: params.In("encoder")})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range params.In("encoder").In("lora").All() {
			copy(w.Data, normal(uint64(i), len(w.Data)))
		}
		return e.(*encoder), params
	}
	lora := encoders.LoRA{Rank: 2, Alpha: 1, Targets: []string{"query", "up"}}
	whole, _ := open(lora)
	lora.PerTask = true
	byTask, _ := open(lora, "a")
	states := func(save func(string) error) []float32 {
		dir := t.TempDir()
		if err := save(dir); err != nil {
			t.Fatal(err)
		}
		return statesIn(t, openFrozen(t, dir, "all"), nn.Int8)
	}
	want := states(whole.quantized(""))
	if !slices.Equal(states(byTask.quantized("a")), want) {
		t.Error("the change of a task is not what it is for all")
	}
	if slices.Equal(states(byTask.quantized("")), want) {
		t.Error("the change has no effect")
	}
}

func TestTensorsOfNoQuantizedModelAreErrors(t *testing.T) {
	const query, words = "encoder.layer.0.attention.self.query.weight", "embeddings.word_embeddings.weight"
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	scale := func(row int, v float32) func(*safetensors.Tensor) {
		return func(x *safetensors.Tensor) { x.Data[row] = v }
	}
	type edit = func(*safetensors.Tensor)
	remove := edit(func(x *safetensors.Tensor) { *x = safetensors.Tensor{} })
	for _, c := range []struct {
		tensor string
		edit   edit
		want   string
	}{
		{query + "_scale", scale(3, nan), query + `_scale" holds NaN as scale of row 3; want 0 to `},
		{query + "_scale", scale(0, inf), `holds +Inf as scale of row 0`},
		{query + "_scale", scale(0, -1), `holds -1 as scale of row 0`},
		{query + "_scale", scale(0, math.MaxFloat32), `as scale of row 0`},
		{words + "_scale", scale(5, nan), words + `_scale" holds NaN as scale of row 5`},
		{query + "_scale", remove, query + `" has type I8, and there is no tensor "` + query + `_scale"`},
		{words + "_scale", remove, words + `" has type I8, and there is no tensor "` + words + `_scale"`},
		{query + "_scale", func(x *safetensors.Tensor) { x.Shape, x.Data = []int{1}, x.Data[:1] },
			"has type F32 and shape [1]; want F32 and ["},
		{query + "_scale", func(x *safetensors.Tensor) { x.DType, x.Raw = "F16", make([]byte, 2*len(x.Data)) },
			"has type F16 and shape ["},
		{query, func(x *safetensors.Tensor) { x.Data, x.Raw = make([]float32, len(x.Raw)), nil },
			query + `_scale" has scales of the tensor "` + query + `", whose type is F32 and not I8`},
		{query, func(x *safetensors.Tensor) { x.Raw[2] = 0x80 }, query + `" holds -128 as value 2; want -127 to 127`},
		{query, func(x *safetensors.Tensor) { x.Shape = []int{len(x.Raw)} }, query + `" has shape [`},
		{query, func(x *safetensors.Tensor) { x.DType = "U8" }, query + `" has type U8; F32, F16 and BF16 are read`},
		{query, remove, query + `" is missing`},
		{"embeddings.LayerNorm.weight", func(x *safetensors.Tensor) {
			x.DType, x.Raw = "I8", make([]byte, len(x.Data))
		}, `embeddings.LayerNorm.weight" has type I8; F32, F16 and BF16 are read`},
	} {
		dir := quantized(t, tinyModel("bert"))
		path := filepath.Join(dir, "model.safetensors")
		tensors := readTensors(t, path)
		at := slices.IndexFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == c.tensor })
		if c.edit(&tensors[at]); tensors[at].Name == "" {
			tensors = slices.Delete(tensors, at, at+1)
		}
		writeTensors(t, path, tensors)
		if got := openError(t, dir, "", encoders.Env{Freeze: "all"}); !strings.Contains(got, c.want) {
			t.Errorf("%s: error %s\nwant %s", c.tensor, got, c.want)
		}
	}
}

func TestIntegersOfWordsAreCheckedWhenTheyAreRead(t *testing.T) {
	dir := quantized(t, tinyModel("bert"))
	path := filepath.Join(dir, "model.safetensors")
	tensors := readTensors(t, path)
	at := slices.IndexFunc(tensors, func(x safetensors.Tensor) bool {
		return x.Name == "embeddings.word_embeddings.weight"
	})
	tensors[at].Raw[3*tensors[at].Shape[1]] = 0x80
	writeTensors(t, path, tensors)
	e := openFrozen(t, dir, "all")
	defer e.close()
	skipUnmapped(t, e)
	read := func(id int32) error {
		_, err := e.Encode(nn.NewPass(1), pack([]int32{id}), encoders.Mode{})
		return err
	}
	if err := read(2); err != nil {
		t.Error(err)
	}
	if err := read(3); err == nil || !strings.Contains(err.Error(), "holds -128 as value 0 of row 3; want -127 to") {
		t.Errorf("a word of -128: %v", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := read(2); err == nil || !strings.Contains(err.Error(), "was truncated while it was in use") {
		t.Errorf("a truncated file: %v", err)
	}
}

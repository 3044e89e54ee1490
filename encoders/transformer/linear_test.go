package transformer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

var allTargets = encoders.LoRA{Rank: 2, Alpha: 3,
	Targets: []string{"query", "key", "value", "output", "up", "down"}}

// changed returns a network with changes that are far from zero.
func changed(t *testing.T, o encoders.LoRA, freeze string) (*encoder, nn.Params) {
	t.Helper()
	e, params := network(t, tiny("bert"), freeze)
	if err := e.addLoRA(o, params.In("encoder").In("lora")); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 0))
	for _, w := range params.In("encoder").In("lora").All() {
		for i := range w.Data {
			w.Data[i] += float32(0.3 * r.NormFloat64())
		}
		w.Changed()
	}
	return e, params
}

var loraTexts = pack([]int32{1, 2, 3, 4}, []int32{5}, []int32{6, 7, 8, 9, 10})

func TestLoRAChangesNothingAtFirst(t *testing.T) {
	e, params := network(t, tiny("bert"), "none")
	want := slices.Clone(encode(t, e, nn.NewPass(1), loraTexts, nn.LastLayer)[0])
	if err := e.addLoRA(allTargets, params.In("encoder").In("lora")); err != nil {
		t.Fatal(err)
	}
	got := encode(t, e, nn.NewPass(1), loraTexts, nn.LastLayer)[0]
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-6) {
			t.Fatalf("state %d is %v, was %v", i, got[i], want[i])
		}
	}
	for _, w := range params.All() {
		if w.Learns() != strings.HasPrefix(w.Name, "encoder.lora.") {
			t.Errorf("parameter %s learns: %v", w.Name, w.Learns())
		}
	}
}

func TestLoRAsGradientsAgreeWithDifferences(t *testing.T) {
	e, params := changed(t, allTargets, "none")
	loss := func() float64 {
		sum := 0.0
		for i, v := range encode(t, e, training(1), loraTexts, nn.LastLayer)[0] {
			sum += float64(v) * math.Sin(float64(i))
		}
		return sum
	}
	into := sineGradients(t, e, training(1), params, "")
	for _, w := range params.In("encoder").In("lora").All() {
		got := into.Of(w)
		for i := 0; i < len(w.Data); i += 1 + len(w.Data)/7 {
			const h = 1e-2
			was := w.Data[i]
			at := func(v float32) float64 {
				w.Data[i] = v
				w.Changed()
				return loss()
			}
			want := (at(was+h) - at(was-h)) / (2 * h)
			at(was)
			if !(math.Abs(float64(got[i])-want) <= 1e-2*math.Max(1, math.Abs(want))) {
				t.Errorf("gradient of %s at %d is %v, differences say %v", w.Name, i, got[i], want)
			}
		}
	}
}

// merged returns the network that is equivalent to an encoder with LoRA: each target is W + α/r·A·B, by plain sums.
func merged(t *testing.T, e *encoder, o encoders.LoRA) *encoder {
	t.Helper()
	plain, _ := network(t, tiny("bert"), "none")
	for i := range plain.blocks {
		for _, name := range o.Targets {
			w := plain.blocks[i].target(name).weight
			change := e.blocks[i].target(name).lora
			in, out := w.Shape[0], w.Shape[1]
			for x := range in {
				for y := range out {
					sum := 0.0
					for r := range o.Rank {
						sum += float64(change.down.Data[x*o.Rank+r]) * float64(change.up.Data[r*out+y])
					}
					w.Data[x*out+y] += float32(o.Alpha / float64(o.Rank) * sum)
				}
			}
			w.Changed()
		}
	}
	return plain
}

func TestLoRAIsItsFormula(t *testing.T) {
	e, params := changed(t, allTargets, "none")
	p := training(1)
	for step := range 3 { // each evaluates with packed weights, after the previous step has changed them
		got := encode(t, e, nn.NewPass(1), loraTexts, nn.LastLayer)[0]
		want := encode(t, merged(t, e, allTargets), nn.NewPass(1), loraTexts, nn.LastLayer)[0]
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
				t.Fatalf("after %d steps state %d is %v, by the formula %v", step, i, got[i], want[i])
			}
		}
		descend(t, e, p, params)
	}
}

// sineGradients are those of the sum of the states, each times the sine of its number.
func sineGradients(t *testing.T, e *encoder, p *nn.Pass, params nn.Params, adapter string) nn.Gradients {
	t.Helper()
	states := encodeAs(t, e, p, loraTexts, encoders.Mode{Adapter: adapter})[0]
	at := make([]float32, len(states))
	for i := range at {
		at[i] = float32(math.Sin(float64(i)))
	}
	into := nn.NewGradients(params.All())
	e.backward(p, [][]float32{at}, into)
	return into
}

// descend takes a step of gradient descent by sineGradients.
func descend(t *testing.T, e *encoder, p *nn.Pass, params nn.Params) {
	t.Helper()
	p.Reset(1)
	into := sineGradients(t, e, p, params, "")
	for _, w := range params.All() {
		if w.Learns() {
			for i, d := range into.Of(w) {
				w.Data[i] -= 0.1 * d
			}
			w.Changed()
		}
	}
}

func TestLoRABeginsWithAAndLearnsBFirst(t *testing.T) {
	e, params := network(t, tiny("bert"), "none")
	if err := e.addLoRA(allTargets, params.In("encoder").In("lora")); err != nil {
		t.Fatal(err)
	}
	values := func() map[string][]float32 {
		all := map[string][]float32{}
		for _, w := range params.In("encoder").In("lora").All() {
			all[w.Name] = slices.Clone(w.Data)
		}
		return all
	}
	p, first := training(1), values()
	descend(t, e, p, params)
	second := values()
	descend(t, e, p, params)
	third := values()
	for name := range first {
		down := strings.HasSuffix(name, ".down")
		if begins := slices.ContainsFunc(first[name], func(v float32) bool { return v != 0 }); begins != down {
			t.Errorf("%s has values other than 0 at first: %v", name, begins)
		}
		if moved := !slices.Equal(first[name], second[name]); moved == down {
			t.Errorf("the first step moves %s: %v", name, moved)
		}
		if slices.Equal(second[name], third[name]) {
			t.Errorf("the second step does not move %s", name)
		}
	}
}

func TestLoRAIsSavedAsOneWeight(t *testing.T) {
	e, _ := changed(t, allTargets, "none")
	want := encode(t, e, nn.NewPass(1), loraTexts, nn.LastLayer)[0]
	opened := openModel(t, save(t, e))
	got := encode(t, opened, nn.NewPass(1), loraTexts, nn.LastLayer)[0]
	if !slices.Equal(got, want) {
		t.Error("saved and opened it gives other states")
	}
	for _, w := range opened.params.All() {
		if strings.Contains(w.Name, "lora") {
			t.Errorf("it has the parameter %s", w.Name)
		}
	}
}

func TestLoRALeavesFrozenLayersAlone(t *testing.T) {
	_, params := changed(t, encoders.LoRA{Rank: 1, Alpha: 1, Targets: []string{"value"}}, "1")
	var names []string
	for _, w := range params.In("encoder").In("lora").All() {
		names = append(names, w.Name)
	}
	if want := []string{"encoder.lora.1.value.down", "encoder.lora.1.value.up"}; !slices.Equal(names, want) {
		t.Errorf("parameters %v, want %v", names, want)
	}
}

func TestLoRAOptions(t *testing.T) {
	for _, c := range []struct {
		o      encoders.LoRA
		freeze string
		want   string
	}{
		{encoders.LoRA{Rank: 13, Alpha: 1, Targets: []string{"key"}}, "none",
			"r is 13; want a rank from 1 to the width, 12"},
		{encoders.LoRA{Rank: 1, Alpha: 1, Targets: []string{"keys"}}, "none",
			`targets: want query, key, value, output, up, down or gate, have "keys"`},
		{encoders.LoRA{Rank: 1, Alpha: 1, Targets: []string{"gate"}}, "none",
			`targets: the encoder has no "gate"; available: query, key, value, output, up, down`},
		{encoders.LoRA{Rank: 1, Alpha: 1}, "none", "targets is empty; available: query, key, value, output, up, down"},
		{encoders.LoRA{Rank: 1, Alpha: 1, Targets: []string{"key", "up", "key"}}, "none", `targets: duplicate "key"`},
		{allTargets, "2", "freeze leaves none of the 2 layers to change; want at most freeze: 1"},
	} {
		e, params := network(t, tiny("bert"), c.freeze)
		if err := e.addLoRA(c.o, params.In("lora")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

// A pass applies the adapter that it names, and passes gradients to that one alone.
func TestAPassNamesItsAdapter(t *testing.T) {
	o := allTargets
	e, params := network(t, tiny("bert"), "none")
	base := slices.Clone(encode(t, e, nn.NewPass(1), loraTexts, nn.LastLayer)[0])
	o.PerTask = true
	if err := e.addLoRA(o, params.In("encoder").In("lora"), "a", "b"); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 0))
	for _, w := range params.In("encoder").In("lora").All() {
		for i := range w.Data {
			w.Data[i] += float32(0.3 * r.NormFloat64())
		}
		w.Changed()
	}

	for _, name := range []string{"a", "b", "a", ""} {
		// an encoder with that change alone
		want := base
		if name != "" {
			single, of := network(t, tiny("bert"), "none")
			if err := single.addLoRA(allTargets, of.In("encoder").In("lora")); err != nil {
				t.Fatal(err)
			}
			own := encoders.AdapterParams(params.In("encoder"), name).All()
			for i, w := range of.In("encoder").In("lora").All() {
				copy(w.Data, own[i].Data)
				w.Changed()
			}
			want = slices.Clone(encode(t, single, nn.NewPass(1), loraTexts, nn.LastLayer)[0])
		}
		for _, p := range []*nn.Pass{nn.NewPass(1), training(1)} {
			if p.Training {
				into := sineGradients(t, e, p, params, name)
				for _, w := range params.In("encoder").In("lora").All() {
					own := name != "" && strings.HasPrefix(w.Name, "encoder.lora."+name+".")
					moved := slices.ContainsFunc(into.Of(w), func(v float32) bool { return v != 0 })
					if moved != own {
						t.Errorf("adapter %q: %s has a gradient: %v", name, w.Name, moved)
					}
				}
				continue
			}
			got := encodeAs(t, e, p, loraTexts, encoders.Mode{Adapter: name})[0]
			if !slices.Equal(got, want) {
				t.Errorf("adapter %q: states differ from those of an encoder with that change alone", name)
			}
		}
	}
}

// What is saved is W as other programs read it, [out in], with W = base + α/r·B·A of the A [r in] and B [out r] beside
// it, under the names that PEFT gives them: the merge_and_unload of peft 0.21.2 gives the bits of a saved W.
func TestLoRAIsSavedAsPEFTReadsIt(t *testing.T) {
	for layout, names := range map[string][2]string{
		"bert":       {"encoder.layer.1.attention.self.query", "encoder.layer.1.output.dense"},
		"distilbert": {"transformer.layer.1.attention.q_lin", "transformer.layer.1.ffn.lin2"},
	} {
		o := encoders.LoRA{Rank: 2, Alpha: 3, Targets: []string{"query", "down"}}
		e, params := network(t, tiny(layout), "1")
		base := byName(t, filepath.Join(save(t, e), "model.safetensors"))
		if err := e.addLoRA(o, params.In("encoder").In("lora")); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 0))
		for _, w := range params.In("encoder").In("lora").All() {
			for i := range w.Data {
				w.Data[i] = float32(r.NormFloat64())
			}
			w.Changed()
		}
		folder := save(t, e)
		merged := byName(t, filepath.Join(folder, "model.safetensors"))
		changes := byName(t, filepath.Join(folder, "lora", "adapter_model.safetensors"))
		var config struct {
			Rank    int      `json:"r"`
			Alpha   float64  `json:"lora_alpha"`
			Targets []string `json:"target_modules"`
		}
		text := content(t, filepath.Join(folder, "lora", "adapter_config.json"))
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if config.Rank != 2 || config.Alpha != 3 || !slices.Equal(config.Targets, names[:]) || len(changes) != 4 {
			t.Errorf("%s: %d tensors with %s", layout, len(changes), text)
		}
		for _, name := range names {
			a := changes["base_model.model."+name+".lora_A.weight"]
			b := changes["base_model.model."+name+".lora_B.weight"]
			w, before := merged[name+".weight"], base[name+".weight"]
			out, in := w.Shape[0], w.Shape[1]
			if !slices.Equal(a.Shape, []int{2, in}) || !slices.Equal(b.Shape, []int{out, 2}) {
				t.Fatalf("%s: A %v and B %v for a weight %v", name, a.Shape, b.Shape, w.Shape)
			}
			for i := range w.Data {
				row, column, sum := i/in, i%in, 0.0
				for k := range 2 {
					sum += float64(b.Data[2*row+k]) * float64(a.Data[k*in+column])
				}
				if want := float64(before.Data[i]) + 3.0/2*sum; !(math.Abs(float64(w.Data[i])-want) <= 1e-5) {
					t.Fatalf("%s: value %d of the merged weight is %v, want %v", name, i, w.Data[i], want)
				}
			}
		}
	}
}

// Where a file has several weights in one, PEFT sees one layer: its A has theirs one below the other, its B blocks of
// theirs.
func TestLoRAOfFusedWeightsIsSavedAsOfOne(t *testing.T) {
	o := encoders.LoRA{Rank: 2, Alpha: 3, Targets: []string{"query", "value", "gate"}}
	e, params := network(t, tiny("modernbert"), "1")
	base := byName(t, filepath.Join(save(t, e), "model.safetensors"))
	if err := e.addLoRA(o, params.In("encoder").In("lora")); err != nil {
		t.Fatal(err)
	}
	for i, w := range params.In("encoder").In("lora").All() {
		copy(w.Data, normal(uint64(i), len(w.Data)))
		w.Changed()
	}
	folder := save(t, e)
	merged := byName(t, filepath.Join(folder, "model.safetensors"))
	changes := byName(t, filepath.Join(folder, "lora", "adapter_model.safetensors"))
	var config peftConfig
	text := content(t, filepath.Join(folder, "lora", "adapter_config.json"))
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	names := []string{"layers.1.attn.Wqkv", "layers.1.mlp.Wi"}
	if !slices.Equal(config.Targets, names) || len(changes) != 4 || len(config.Ranks) != 1 ||
		config.Ranks[names[0]] != 4 || config.Alphas[names[0]] != 6 {
		t.Errorf("%d tensors with %+v", len(changes), config)
	}
	for _, name := range names {
		a, b := changes["base_model.model."+name+".lora_A.weight"], changes["base_model.model."+name+".lora_B.weight"]
		w, before := merged[name+".weight"], base[name+".weight"]
		in, rank := w.Shape[1], a.Shape[0]
		if !slices.Equal(a.Shape, []int{rank, in}) || !slices.Equal(b.Shape, []int{w.Shape[0], rank}) {
			t.Fatalf("%s: A %v and B %v for a weight %v", name, a.Shape, b.Shape, w.Shape)
		}
		changed := false
		for i := range w.Data {
			row, column, sum := i/in, i%in, 0.0
			for k := range rank {
				sum += float64(b.Data[rank*row+k]) * float64(a.Data[k*in+column])
			}
			if want := float64(before.Data[i]) + 3.0/2*sum; !(math.Abs(float64(w.Data[i])-want) <= 1e-5) {
				t.Fatalf("%s: value %d of the merged weight is %v, want %v", name, i, w.Data[i], want)
			}
			changed = changed || sum != 0
		}
		if !changed {
			t.Errorf("%s: A and B change nothing", name)
		}
	}
}

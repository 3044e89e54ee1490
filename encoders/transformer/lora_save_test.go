package transformer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
)

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

package config

import (
	"os"
	"strings"
	"testing"
)

func TestFreeze(t *testing.T) {
	for _, c := range []struct {
		set, freeze string
		unfreeze    float64
	}{
		{"model.dropout=0.1", "none", 0},
		{"model.freeze=2", "2", 0},
		{"model.freeze=all", "all", 0},
		{"model.freeze.unfreeze.every=0.5", "none", 0.5},
		{"model.freeze={unfreeze: {}}", "none", 1},
		{"model.freeze={always: embeddings, unfreeze: {every: 2}}", "embeddings", 2},
	} {
		e, err := Read(t.Context(), scratchFile(t, "", ""), []string{c.set})
		if err != nil {
			t.Fatal(err)
		}
		if m := e.Model; m.Freeze.Always != c.freeze || m.Freeze.Unfreeze.Every != c.unfreeze {
			t.Errorf("%s: %+v, want %q and %v", c.set, m.Freeze, c.freeze, c.unfreeze)
		}
		var text strings.Builder
		if err := e.Write(&text, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		again, err := decode(t.Context(), "again.yaml", []byte(text.String()), nil, false)
		if err != nil || again.Model.Freeze != e.Model.Freeze {
			t.Errorf("%s: written as %q, %v", c.set, text.String(), err)
		}
	}
}

// defaultSizes are all options of the encoder transformer with their defaults.
const defaultSizes = "layers: 4, width: 256, heads: 4, feed_forward: 1024, max_positions: 512, initializer_range: 0.02"

const sizedByBase = `: encoder "transformer": its sizes are the base model's; leave out the keys beside type`

// Sizes are those of the run, also where they are the defaults.
func TestSizesBesideABaseRunAreMistakes(t *testing.T) {
	for _, c := range []struct{ encoder, set, place string }{
		{"{type: transformer, layers: 3}", "", "exp.yaml:1:63"},
		{"{layers: 4}", "", "exp.yaml:1:44"},
		{"{type: transformer, " + defaultSizes + "}", "", "exp.yaml:1:63"},
		{"{type: transformer}", "model.encoder.layers=4", "argument set model.encoder.layers=4"},
	} {
		baseFiles(t)
		var sets []string
		if c.set != "" {
			sets = append(sets, c.set)
		}
		_, err := grown(t, "{base_model: run, encoder: "+c.encoder+"}", "", sets...)
		if err == nil || !strings.Contains(err.Error(), c.place+sizedByBase) {
			t.Errorf("%s %s: error %v, want one at %s", c.encoder, c.set, err, c.place)
		}
	}
}

// The sizes of an encoder beside a base model are not in the file of a run.
func TestTheFileOfARunHasNoSizesBesideABaseModel(t *testing.T) {
	baseFiles(t)
	var text strings.Builder
	if err := mustGrow(t, "{base_model: run, encoder: transformer}", "").Write(&text, "grown"); err != nil {
		t.Fatal(err)
	}
	const encoder = "  encoder:\n    type: transformer\n"
	if !strings.Contains(text.String(), encoder+"  fusion:") {
		t.Fatalf("no encoder of a type alone in\n%s", &text)
	}

	if err := os.Mkdir("grown", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("grown/metrics.jsonl", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("grown/experiment.yaml", []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"model.dropout=0.2":      "",
		"model.encoder.layers=4": "argument set model.encoder.layers=4" + sizedByBase,
	} {
		_, err := Read(t.Context(), "grown/experiment.yaml", []string{set})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
}

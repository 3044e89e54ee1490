package config

import (
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
		e, err := Read(scratchFile(t, "", ""), []string{c.set})
		if err != nil {
			t.Fatal(err)
		}
		if m := e.Model; m.Freeze != c.freeze || m.Unfreeze != c.unfreeze {
			t.Errorf("%s: %q and every %v, want %q and %v", c.set, m.Freeze, m.Unfreeze, c.freeze, c.unfreeze)
		}
		var text strings.Builder
		if err := e.Write(&text, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		again, err := decode("again.yaml", []byte(text.String()), nil, false)
		if err != nil || again.Model.Freeze != c.freeze || again.Model.Unfreeze != c.unfreeze {
			t.Errorf("%s: written as %q, %v", c.set, text.String(), err)
		}
	}
}

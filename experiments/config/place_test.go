package config

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/plugin"
)

func TestPlaceOfAKey(t *testing.T) {
	const set = "training.batch_size=9"
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	e := mustRead(t, file, set)
	for key, want := range map[string]plugin.Place{
		"seed":                               {File: file, Line: 3, Col: 7},
		"tokenizer.max_length":               {File: file, Line: 9, Col: 25},
		"tokenizer.type":                     {File: file, Line: 9, Col: 12}, // the section that lacks it
		"tasks.intent.data.split.dev":        {File: file, Line: 13, Col: 11},
		"tasks.intent.heads.urgency.dropout": {File: file, Line: 17, Col: 81},
		"training.batch_size":                {File: "--set " + set},
		"logging.service":                    {File: file, Line: 2, Col: 1},
		"tasks.nobody.data":                  {File: file, Line: 11, Col: 3},
	} {
		if got := e.Place(key); got != want {
			t.Errorf("Place(%q) = %v, want %v", key, got, want)
		}
	}
	if got, want := (&Experiment{Path: file}).Place("seed"), (plugin.Place{File: file}); got != want {
		t.Errorf("of an experiment that was not read: %v, want %v", got, want)
	}
}

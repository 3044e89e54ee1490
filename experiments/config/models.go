package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// LocalModels lists the names that base_model may have for models on this machine, the smallest first: folders below
// $JENGA_MODELS, and models in the Hugging Face cache. It lists those whose weights and tokenizer jenga reads, as far
// as their files' names and config.json tell: its model_type is one of types.
func LocalModels(types []string) []string {
	sizes := map[string]int64{}
	add := func(name string) {
		if folder := findLocal(name); folder != "" {
			if size := modelSize(folder, types); size > 0 {
				sizes[name] = size
			}
		}
	}
	if dir := os.Getenv("JENGA_MODELS"); dir != "" {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			add(e.Name())
		}
	}
	for _, name := range hubcache.Names() {
		add(name)
	}

	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	return names
}

// modelSize returns the size of a folder's weights in bytes; 0 if it has no weights, no tokenizer, or a model_type that
// is none of types.
func modelSize(folder string, types []string) int64 {
	var config struct {
		Type string `json:"model_type"`
	}
	err := jsonfile.Read(filepath.Join(folder, "config.json"), jsonfile.MaxConfig, &config)
	if err != nil || !slices.Contains(types, config.Type) || !corpus.HasTokenizer(folder) {
		return 0
	}
	weights, err := os.Stat(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		return 0
	}
	return weights.Size()
}

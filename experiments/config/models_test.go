package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLocalModelsAreThoseThatJengaReadsSmallestFirst(t *testing.T) {
	hub, models := t.TempDir(), t.TempDir()
	t.Setenv("HF_HUB_CACHE", hub)
	t.Setenv("JENGA_MODELS", models)
	put := func(folder, kind string, bytes int, files ...string) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		content := map[string]string{"config.json": `{"model_type": "` + kind + `"}`, "vocab.txt": "a\n",
			"model.safetensors": string(make([]byte, bytes))}
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content[name]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	cache := func(name, kind string, bytes int, files ...string) {
		t.Helper()
		put(filepath.Join(hub, name, "snapshots", "abc"), kind, bytes, files...)
		put(filepath.Join(hub, name, "refs"), "", 0)
		if err := os.WriteFile(filepath.Join(hub, name, "refs", "main"), []byte("abc"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"config.json", "vocab.txt", "model.safetensors"}
	cache("models--org--medium-size", "bert", 20, all...)
	cache("models--small", "distilbert", 10, all...)
	cache("models--org--byte-pairs", "roberta", 5, all...)
	cache("models--org--half", "bert", 5, all[:2]...)
	put(filepath.Join(models, "large"), "bert", 30, all...)
	put(filepath.Join(models, "notes"), "", 0)

	want := []string{"small", "org/medium-size", "large"}
	if got := LocalModels([]string{"bert", "distilbert"}); !slices.Equal(got, want) {
		t.Errorf("LocalModels() = %v, want %v", got, want)
	}
}

// A name that init finds is one that base_model finds, wherever the variables of huggingface_hub put the cache.
func TestLocalModelsAreInTheCacheThatBaseModelSearches(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home) // on Windows
	snapshot := filepath.Join(home, "cache", "models--small", "snapshots", "abc")
	refs := filepath.Join(home, "cache", "models--small", "refs")
	for path, content := range map[string]string{
		filepath.Join(snapshot, "config.json"):       `{"model_type": "bert"}`,
		filepath.Join(snapshot, "vocab.txt"):         "a\n",
		filepath.Join(snapshot, "model.safetensors"): "weights",
		filepath.Join(refs, "main"):                  "abc",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HF_HUB_CACHE": "~/cache", "HUGGINGFACE_HUB_CACHE": filepath.Join(home, "cache"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("JENGA_MODELS", "")
			t.Setenv("HF_HOME", "")
			t.Setenv("HF_HUB_CACHE", "")
			t.Setenv("HUGGINGFACE_HUB_CACHE", "")
			t.Setenv(name, value)
			if got := LocalModels([]string{"bert", "distilbert"}); !slices.Equal(got, []string{"small"}) {
				t.Errorf("LocalModels() = %v, want [small]", got)
			}
		})
	}
}

package hub

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

const (
	maxTextFile = 64 << 20 // bytes of a config, a tokenizer or an index: the most that their readers accept
	maxWeights  = 64 << 30 // bytes of one file of weights
	maxShards   = 1000
)

const (
	configFile = "config.json"
	singleFile = "model.safetensors"
	indexFile  = singleFile + ".index.json"
	graphFile  = "model.onnx"
)

// tokenizerFiles are the files from which tokenizers are made, here or in transformers.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json",
	"added_tokens.json",
}

// file is a file of a model to download.
type file struct {
	name  string // on the hub: a path with slashes
	alias string // a second name in the snapshot, "" for none
	limit int64  // bytes at most
}

// choose returns the files of a model to download, out of the names of all. Of sharded weights it returns the index
// alone.
func choose(m hubcache.Model, names []string, onnx bool) ([]file, error) {
	var files []file
	for _, name := range append([]string{configFile}, tokenizerFiles...) {
		if slices.Contains(names, name) {
			files = append(files, file{name: name, limit: maxTextFile})
		}
	}
	if len(files) == 0 || files[0].name != configFile {
		return nil, fmt.Errorf("%s has no %s: it is no model of transformers", m, configFile)
	}
	if onnx {
		graph, err := chooseGraph(m, names)
		return append(files, graph...), err
	}
	switch {
	case slices.Contains(names, singleFile):
		return append(files, file{name: singleFile, limit: maxWeights}), nil
	case slices.Contains(names, indexFile):
		return append(files, file{name: indexFile, limit: maxTextFile}), nil
	}
	return nil, noWeights(m, names)
}

// chooseGraph returns the files of an ONNX graph: that of the model's folder, else that of the folder onnx, which gets
// a second name beside the config and the tokenizer, where readers look for it. A graph of more than 2 GB has its
// tensors in a second file.
func chooseGraph(m hubcache.Model, names []string) ([]file, error) {
	for _, folder := range []string{"", "onnx"} {
		if !slices.Contains(names, path.Join(folder, graphFile)) {
			continue
		}
		var files []file
		for _, base := range []string{graphFile, graphFile + "_data", graphFile + ".data"} {
			name := path.Join(folder, base)
			if !slices.Contains(names, name) {
				continue
			}
			f := file{name: name, limit: maxWeights}
			if name != base {
				f.alias = base
			}
			files = append(files, f)
		}
		return files, nil
	}
	text := ""
	if hasSafetensors(names) {
		text = "; without --onnx its safetensors are downloaded"
	}
	return nil, fmt.Errorf("%s has no %s and no onnx/%s%s", m, graphFile, graphFile, text)
}

func hasSafetensors(names []string) bool {
	return slices.Contains(names, singleFile) || slices.Contains(names, indexFile)
}

// noWeights returns the error for a model without safetensors.
func noWeights(m hubcache.Model, names []string) error {
	graph := ""
	if slices.Contains(names, graphFile) || slices.Contains(names, "onnx/"+graphFile) {
		graph = "; --onnx downloads its ONNX graph"
	}
	pickle := slices.IndexFunc(names, func(name string) bool {
		return slices.Contains([]string{".bin", ".pt", ".pth", ".pkl", ".ckpt"}, strings.ToLower(path.Ext(name)))
	})
	if pickle < 0 {
		return fmt.Errorf("%s has no %s and no %s%s", m, singleFile, indexFile, graph)
	}
	return fmt.Errorf("%s has no safetensors, only pickles such as %q, which are not downloaded because they can run "+
		"code%s; a pull request of the model often has safetensors: %s@refs/pr/1; or in Python, transformers' "+
		"AutoModel.from_pretrained(%q).save_pretrained(FOLDER) writes them", m, names[pickle], graph, m.Name, m.Name)
}

// shards returns the files of sharded weights that an index, the file at path, names: files of the model, in the
// folder of the index.
func shards(path string, names []string) ([]file, error) {
	var index struct {
		Map map[string]string `json:"weight_map"` // tensor to file
	}
	if err := jsonfile.Read(path, maxTextFile, &index); err != nil {
		return nil, err
	}
	var files []file
	for _, name := range slices.Compact(slices.Sorted(maps.Values(index.Map))) {
		if strings.Contains(name, "/") || !strings.HasSuffix(name, ".safetensors") || hubcache.CheckFile(name) != nil {
			return nil, fmt.Errorf("%s: weight_map names %.200q; want a .safetensors file beside the index", path, name)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s: weight_map names %q, which the model does not have", path, name)
		}
		files = append(files, file{name: name, limit: maxWeights})
	}
	if len(files) == 0 || len(files) > maxShards {
		return nil, fmt.Errorf("%s: weight_map names %d files; want 1 to %d", path, len(files), maxShards)
	}
	return files, nil
}

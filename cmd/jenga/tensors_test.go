package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// tensorRow is a row of a table of tensors in docs/checkpoints.md: `types` | `name` | `[shape]` | meaning.
var tensorRow = regexp.MustCompile("(?m)^\\| ([`a-z_, ]+) \\| `([^`]+)` \\| `\\[([^`]+)\\]` \\|")

// layerNumber is the number of a layer in the name of a tensor.
var layerNumber = regexp.MustCompile(`(^|\.)\d+\.`)

// layerOfLoRA is the name of a layer in that of a tensor of LoRA.
var layerOfLoRA = regexp.MustCompile(`^(base_model\.model)\..+\.(lora_[AB]\.weight)$`)

// tensorPage are the tables of tensors: the dimensions of each tensor by part and name, and which of them were found.
type tensorPage struct {
	shapes map[[2]string][]string
	found  map[[2]string]bool
}

func readTensorPage(t *testing.T) *tensorPage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "checkpoints.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := &tensorPage{map[[2]string][]string{}, map[[2]string]bool{}}
	for _, row := range tensorRow.FindAllStringSubmatch(string(text), -1) {
		for part := range strings.SplitSeq(row[1], ", ") {
			page.shapes[[2]string{strings.Trim(part, "`"), row[2]}] = strings.Fields(row[3])
		}
	}
	root := nn.NewParams(1)
	for _, at := range []nn.Params{multitask.HeadParams(root, "TASK", "HEAD"), multitask.FusionParams(root)} {
		if !strings.Contains(string(text), "`"+at.Path()+".`") {
			t.Errorf("docs/checkpoints.md does not say that tensors are below %s", at.Path())
		}
	}
	return page
}

// check compares a tensor of a part with the page. A letter may be one of several sizes.
func (p *tensorPage) check(t *testing.T, part, name string, shape []int, sizes map[string][]int) {
	t.Helper()
	name = layerNumber.ReplaceAllString(name, "${1}i.")
	key := [2]string{part, name}
	dimensions, listed := p.shapes[key]
	if !listed {
		t.Errorf("%s: docs/checkpoints.md does not have the tensor %s %v", part, name, shape)
		return
	}
	p.found[key] = true
	fits := len(dimensions) == len(shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = slices.Contains(sizesOf(dimensions[i], sizes), shape[i])
	}
	if !fits {
		t.Errorf("%s: tensor %s has the shape %v; docs/checkpoints.md has %v of %v", part, name, shape, dimensions,
			sizes)
	}
}

// sizesOf returns what a dimension such as D, 4H or 1 may be.
func sizesOf(dimension string, sizes map[string][]int) []int {
	letters := strings.TrimLeft(dimension, "0123456789")
	factor, err := strconv.Atoi(strings.TrimSuffix(dimension, letters))
	if err != nil {
		factor = 1
	}
	if letters == "" {
		return []int{factor}
	}
	var all []int
	for _, size := range sizes[letters] {
		all = append(all, factor*size)
	}
	return all
}

// checkFile compares the tensors of a file with the page.
func (p *tensorPage) checkFile(t *testing.T, part, path string, sizes map[string][]int) {
	t.Helper()
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tensor := range file.Tensors() {
		name := tensor.Name
		if part == "lora" {
			name = layerOfLoRA.ReplaceAllString(name, "$1.LAYER.$2")
		}
		p.check(t, part, name, tensor.Shape, sizes)
	}
}

// TestTensorsPage compares the tables of docs/checkpoints.md with the tensors of every part, in all its variants.
func TestTensorsPage(t *testing.T) {
	page := readTensorPage(t)
	checkHeads(t, page)
	checkFusions(t, page)
	checkEncoders(t, page)
	for key := range page.shapes {
		if !page.found[key] {
			t.Errorf("docs/checkpoints.md has the tensor %s of %s, which no part has", key[1], key[0])
		}
	}
}

// headVariants are options of heads by which they have other tensors; a head refuses those that it does not have.
var headVariants = []string{"", "pool: attention", "class_weights: balanced", "pos_weight: balanced",
	"lens_per_head: true", "{lstm_layers: 0, pool: attention}", "{lstm_hidden: 4}", "{hidden: 5}", "range: [0, 1]"}

func checkHeads(t *testing.T, page *tensorPage) {
	for _, name := range heads.Registry().Names() {
		built := 0
		for _, options := range headVariants {
			choice, err := heads.Registry().FromString(name, options)
			if err != nil {
				continue
			}
			for _, kind := range outputs.Kinds() {
				params := nn.NewParams(1)
				env := heads.Env{Task: "task", Name: "head", Output: kind, Labels: []string{"O", "B-x", "I-x"},
					Width: 12, Training: heads.Training{Units: 7, Counts: []int{3, 2, 2}, Mean: 0.9, Deviation: 0.8},
					Attention: heads.Attention{Layers: 2, Heads: 1}, Params: params, Mask: 1,
					Words: nn.NewParams(2).Normal("words", 1, 11, 12), Lenses: []heads.Lenses{{Name: "x", Count: 1}}}
				if _, err := choice.Build(env); err != nil {
					continue
				}
				built++
				for _, w := range params.All() {
					page.check(t, name, w.Name, w.Shape, headSizes(name, options))
				}
			}
		}
		if built == 0 {
			t.Errorf("head %s cannot be made", name)
		}
	}
}

// headSizes returns the sizes of a head of these options over states of 12 features.
func headSizes(name, options string) map[string][]int {
	hidden := map[string]int{"focus": 256, "mlp": 12, "reconstruction": 12 / 8}[name] // by default
	if _, given, found := strings.Cut(options, "hidden: "); found {
		hidden = int(given[0] - '0')
	}
	sizes := map[string][]int{"D": {12}, "V": {11}, "L": {3}, "O": {3, 1}, "H": {hidden}, "W": {2 * hidden}, "P": {12},
		"I": {12, 2 * hidden}, "Z": {1, 4}, "F": {5*2 + 2}}
	if strings.Contains(options, "lstm_layers: 0") {
		sizes["W"] = []int{12}
	}
	if name == "focus" {
		sizes["P"] = sizes["W"]
	}
	return sizes
}

func checkFusions(t *testing.T, page *tensorPage) {
	for _, name := range fusion.Registry().Names() {
		for options, hidden := range map[string]int{"": 0, "scale: gated": 0, "hidden_size: 5": 5, "size: 5": 5} {
			choice, err := fusion.Registry().FromString(name, options)
			if err != nil {
				continue
			}
			params := nn.NewParams(1)
			env := fusion.Env{Tasks: []string{"TASK"}, Width: 12, Layers: 3, Params: params}
			if _, err := choice.Build(env); err != nil {
				t.Fatal(err)
			}
			if hidden == 0 {
				hidden = map[string]int{"adapter": 64, "attention": 12, "concat": 12}[name]
			}
			for _, w := range params.All() {
				page.check(t, name, w.Name, w.Shape, map[string][]int{"D": {12}, "H": {hidden}, "K": {3}})
			}
		}
	}
}

func checkEncoders(t *testing.T, page *tensorPage) {
	states := filepath.Join("..", "..", "encoders", "transformer", "testdata", "states")
	sizes := map[string][]int{"D": {12}, "X": {20}, "M": {7}, "Y": {2}, "V": {11}, "H": {4}, "E": {6}, "I": {6, 8},
		"r": {3}, "in": {12, 20}, "out": {12, 20}}
	all := encoders.LoRA{Rank: 3, Alpha: 1, Targets: []string{"query", "key", "value", "output", "up", "down"}}
	const small = "layers: 2, width: 12, heads: 2, feed_forward: 20, max_positions: 7"
	for _, c := range []struct {
		encoder, options string
		env              encoders.Env
		part             string
		sizes            map[string][]int
	}{
		{"bilstm", "{embedding: 6, hidden: 4}", encoders.Env{Vocabulary: 11}, "bilstm", sizes},
		{"transformer", "{" + small + "}", encoders.Env{Vocabulary: 11}, "bert", sizes},
		{"transformer", "{" + small + "}", encoders.Env{Vocabulary: 11, LoRA: all}, "bert", sizes},
		// of scripts/fixtures/states.py
		{"transformer", "", encoders.Env{Model: filepath.Join(states, "distilbert"), LoRA: all}, "distilbert",
			map[string][]int{"D": {10}, "X": {14}, "M": {12}, "V": {30}}},
	} {
		choice, err := encoders.Registry().FromString(c.encoder, c.options)
		if err != nil {
			t.Fatal(err)
		}
		c.env.Params = nn.NewParams(1)
		encoder, err := choice.Build(c.env)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := encoder.Describe().Save(nil)(folder); err != nil {
			t.Fatal(err)
		}
		page.checkFile(t, c.part, filepath.Join(folder, "model.safetensors"), c.sizes)
		if c.env.LoRA.Rank > 0 && c.part == "bert" {
			page.checkFile(t, "lora", filepath.Join(folder, "lora", "adapter_model.safetensors"), c.sizes)
		}
	}

	all.PerTask = true
	checkAdapters(t, page, "{"+small+"}", all, sizes)
}

// checkAdapters checks the parameters of an adapter of a transformer, which are those of its file.
func checkAdapters(t *testing.T, page *tensorPage, options string, lora encoders.LoRA, sizes map[string][]int) {
	params := nn.NewParams(1)
	choice, err := encoders.Registry().FromString("transformer", options)
	if err != nil {
		t.Fatal(err)
	}
	env := encoders.Env{Vocabulary: 11, LoRA: lora, Adapters: []string{"a"}, Params: params}
	if _, err := choice.Build(env); err != nil {
		t.Fatal(err)
	}
	at := encoders.AdapterParams(params, "a")
	for _, w := range at.All() {
		name := strings.TrimPrefix(w.Name, at.Path()+".")
		for _, target := range lora.Targets {
			name = strings.Replace(name, "."+target+".", ".query.", 1)
		}
		page.check(t, "adapters", name, w.Shape, sizes)
	}
}

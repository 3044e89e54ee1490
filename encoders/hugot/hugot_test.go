package hugot

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
)

// texts makes texts of the given lengths, as one batch.
func texts(lengths ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for number, length := range lengths {
		for i := range length {
			tokens.IDs = append(tokens.IDs, int32((number*7919+i*104729)%30522))
			tokens.Rows.Segment = append(tokens.Rows.Segment, 0)
		}
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
	}
	return tokens
}

func states(t *testing.T, e encoders.Encoder, tokens corpus.Tokens) []float32 {
	t.Helper()
	got, err := e.Encode(nn.NewPass(1), tokens, encoders.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func TestStatesAreThoseOfTheTransformer(t *testing.T) {
	model := filepath.Join(shared.Dir(t), "models", "distil-l6")
	e, err := New(Options{Backend: "go"}, encoders.Env{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := transformer.New(transformer.Options{}, encoders.Env{Model: model, Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Describe().Width != ours.Describe().Width {
		t.Fatalf("Width = %d, want %d", e.Describe().Width, ours.Describe().Width)
	}
	files := []string{filepath.Join(model, "config.json"), filepath.Join(model, "model.onnx")}
	if got := e.Describe().Files; !slices.Equal(got, files) {
		t.Errorf("Files are %v, want %v", got, files)
	}
	tokens := texts(1, 6, 3, 6)
	got, want := states(t, e, tokens), states(t, ours, tokens)
	if len(got) != len(want) {
		t.Fatalf("%d states, want %d", len(got), len(want))
	}
	largest := 0.0
	for i := range want {
		d := math.Abs(float64(got[i] - want[i]))
		if math.IsNaN(d) {
			t.Fatalf("state %d is %v, want %v", i, got[i], want[i])
		}
		largest = max(largest, d)
	}
	if largest > 1e-4 {
		t.Errorf("a state is %.3g from the transformer's, want at most 1e-4", largest)
	} else {
		t.Logf("states are at most %.3g from the transformer's", largest)
	}

	t.Run("alone the same bits as in a batch", func(t *testing.T) {
		for b := range tokens.Rows.Texts() {
			lo, hi := tokens.Rows.Starts[b], tokens.Rows.Starts[b+1]
			alone := corpus.Tokens{IDs: tokens.IDs[lo:hi],
				Rows: nn.Rows{Starts: []int{0, hi - lo}, Segment: tokens.Rows.Segment[lo:hi]}}
			if !slices.Equal(states(t, e, alone), got[lo*e.Describe().Width:hi*e.Describe().Width]) {
				t.Errorf("text %d has other states alone", b+1)
			}
		}
	})
	t.Run("what cannot be encoded is an error", func(t *testing.T) {
		bad := texts(2, 3)
		bad.IDs[3] = 30522
		for _, test := range []struct {
			tokens corpus.Tokens
			layers nn.LayerSet
			want   string
		}{
			{texts(2, 513), nn.LastLayer, "text 2 of the batch has 513 tokens; the encoder takes 512"},
			{bad, nn.LastLayer, "text 2 of the batch: token id 30522 is outside the encoder's vocabulary of 30522"},
			{texts(2), nn.AllLayers, filepath.Join(model, "model.onnx") +
				": hugot has the states of the last layer only"},
		} {
			_, err := e.Encode(nn.NewPass(1), test.tokens, encoders.Mode{Layers: test.layers})
			if err == nil || err.Error() != test.want {
				t.Errorf("Encode gives the error %v, want %s", err, test.want)
			}
		}
	})
}

func TestErrorsOfOpeningNameTheFile(t *testing.T) {
	tests := []struct {
		name   string
		config string
		graph  string
		option Options
		env    encoders.Env
		want   string // FILE and FOLDER stand for the paths
	}{
		{name: "no weights", option: Options{"go"},
			want: "it has no weights of its own; name an .onnx file as base_model"},
		{name: "unknown backend", option: Options{"xla"}, want: `backend: want go, have "xla"`},
		{name: "some layers frozen", option: Options{"go"}, env: encoders.Env{Model: "FILE", Freeze: "2"},
			want: `freeze: "2": all of it is frozen; leave freeze out, or set it to "all"`},
		{name: "no config", option: Options{"go"}, env: encoders.Env{Model: "FILE"},
			want: "FILE: no config.json beside it, which gives vocab_size and max_position_embeddings"},
		{name: "no vocabulary", config: `{}`, option: Options{"go"}, env: encoders.Env{Model: "FILE"},
			want: "FOLDER/config.json: vocab_size is 0; want at least 1"},
		{name: "vocabulary that is no number", config: "{\n\"vocab_size\": \"9\"}", option: Options{"go"},
			env:  encoders.Env{Model: "FILE"},
			want: "FOLDER/config.json:2: vocab_size is a string; want a whole number"},
		{name: "no positions", config: `{"vocab_size": 9}`, option: Options{"go"}, env: encoders.Env{Model: "FILE"},
			want: "FOLDER/config.json: max_position_embeddings is 0; want at least 1"},
		{name: "too many tokens", config: `{"vocab_size": 9, "max_position_embeddings": 9}`, option: Options{"go"},
			env:  encoders.Env{Model: "FOLDER", Vocabulary: 10},
			want: "FOLDER/config.json: vocab_size is 9, but the tokenizer has 10 tokens"},
		{name: "too long", config: `{"vocab_size": 9, "max_position_embeddings": 9}`, option: Options{"go"},
			env:  encoders.Env{Model: "FOLDER", MaxLength: 10},
			want: "FOLDER/config.json: max_position_embeddings is 9, but max_length is 10"},
		{name: "no graph", config: `{"vocab_size": 9, "max_position_embeddings": 9}`, graph: "\n\x7f",
			option: Options{"go"},
			env:    encoders.Env{Model: "FILE"}, want: "FILE: "},
		{name: "empty graph", config: `{"vocab_size": 9, "max_position_embeddings": 9}`, graph: "\x3a\x00",
			option: Options{"go"},
			env:    encoders.Env{Model: "FILE"}, want: "FILE: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			file := filepath.Join(folder, "model.onnx")
			paths := strings.NewReplacer("FILE", file, "FOLDER", folder)
			if err := os.WriteFile(file, []byte(test.graph), 0o644); err != nil {
				t.Fatal(err)
			}
			if test.config != "" {
				if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(test.config), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			test.env.Model = paths.Replace(test.env.Model)
			want := paths.Replace(test.want)
			_, err := encoders.Registry().Build("hugot", test.option, test.env)
			if err == nil || err.Error() != want && !(test.graph != "" && strings.HasPrefix(err.Error(), want)) {
				t.Errorf("New gives the error\n %v, want\n %s", err, want)
			}
		})
	}
}

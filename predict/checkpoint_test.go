package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/nn"
	"google.golang.org/protobuf/encoding/protowire"
)

// frozenExperiment writes the small experiment with a frozen encoder in a folder of its own, base.
func frozenExperiment(t *testing.T) (path, base string) {
	t.Helper()
	path = sample.Small(t, "")
	trained := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, trained, "training.num_epochs=2")
	base = filepath.Join(t.TempDir(), "base")
	if err := os.CopyFS(base, os.DirFS(filepath.Join(trained, runfolder.BestDir, runfolder.EncoderDir))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	based := strings.Replace(string(text),
		"encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}",
		"base_model: "+base+"\n  freeze: all", 1)
	based = strings.Replace(based, ", train: {vocab_size: 200}", "", 1)
	if err := os.WriteFile(path, []byte(based), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, base
}

func TestAFrozenEncoderIsNotCopied(t *testing.T) {
	path, _ := frozenExperiment(t)
	home := t.TempDir()
	target, link := filepath.Join(home, "deep", "down"), filepath.Join(home, "link")
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	_, done := trainSmall(t, path, filepath.Join(link, "run"))
	for _, name := range []string{"link/run", "link/run/best", "link/run/last", "link/run/tasks/team",
		"link/run/tasks/things", "deep/down/run"} {
		folder := filepath.Join(home, name)
		if runfolder.Exists(filepath.Join(folder, runfolder.EncoderDir)) {
			t.Errorf("%s has a copy of the frozen encoder", name)
		}
		run, err := OpenRun(t.Context(), folder)
		if err != nil {
			t.Errorf("Open(%s): %v", name, err)
			continue
		}
		if name != "link/run" {
			continue
		}
		if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
			t.Fatal(err)
		}
		metrics, err := run.Evaluate(context.Background(), config.Dev, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := report.Metrics(metrics)["eval_overall"], done.Value; got != want {
			t.Errorf("eval_overall = %v, want %v", got, want)
		}
	}
}

// A flipped bit changed predictions, and nothing said so.
func TestADamagedCheckpointDoesNotOpen(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	best := filepath.Join(folder, runfolder.BestDir)
	for name := range sample.Files(t, best) {
		if err := runfolder.Link(filepath.Join(folder, runfolder.LastDir), best); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(best, name)
		remove(t, path) // it may be a link to the last's
		sample.Write(t, path, sample.Files(t, filepath.Join(folder, runfolder.LastDir))[name])
		flip(t, path)
		_, opened := OpenRun(t.Context(), folder)
		_, _, embedded := OpenEncoder(t.Context(), folder,
			encoders.Env{Freeze: "all", Params: nn.NewParams(1).In("encoder")})
		_, tokenized := OpenTokenizer(t.Context(), folder)
		encoder := filepath.Join(best, runfolder.EncoderDir) // as a base model
		_, _, based := OpenEncoder(t.Context(), encoder,
			encoders.Env{Freeze: "all", Params: nn.NewParams(1).In("encoder")})
		_, read := config.Read(t.Context(), sample.Small(t, ""),
			[]string{"model.base_model=" + encoder, "model.encoder=null"})
		if _, mistake, ok := strings.Cut(fmt.Sprint(read), "model: base_model: "); ok {
			read = errors.New(mistake)
		}
		for command, err := range map[string]error{
			"Open": opened, "OpenEncoder": embedded, "OpenTokenizer": tokenized, "OpenEncoder of best/encoder": based,
			"config.Read": read,
		} {
			if err == nil || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("%s with a flipped bit in %s = %v", command, name, err)
			}
		}
	}
}

func TestACheckpointWithoutChecksumsIsIncomplete(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ChecksumsFile)
	remove(t, path)
	want := path + ": no such file: the checkpoint is incomplete; restore the file from a copy, or train again"
	if _, err := OpenRun(t.Context(), folder); err == nil || !strings.HasPrefix(err.Error(), want+"\n") {
		t.Errorf("Open = %v, want %s", err, want)
	}
}

func TestAFrozenEncodersSHA256IsCheckedByEvalAlone(t *testing.T) {
	path, _ := frozenExperiment(t)
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	for name, test := range map[string]struct {
		key                string
		opens, checks, old bool
	}{
		"as it was trained": {"", true, true, false},
		"another CRC-32C":   {"crc32c", false, false, false},
		"another SHA-256":   {"sha256", true, false, false},
		"no CRC-32C":        {"", false, false, true},
	} {
		best, last := filepath.Join(folder, runfolder.BestDir), filepath.Join(folder, runfolder.LastDir)
		if err := runfolder.Link(last, best); err != nil {
			t.Fatal(err)
		}
		editEncoder(t, folder, func(encoder map[string]any) {
			if test.key != "" {
				encoder[test.key].(map[string]any)["model.safetensors"] = strings.Repeat("0", 8)
			}
			if test.old {
				delete(encoder, "crc32c")
			}
		})
		run, err := OpenRun(t.Context(), folder)
		if (err == nil) != test.opens {
			t.Errorf("%s: Open = %v", name, err)
		}
		if err != nil {
			continue
		}
		if err := run.CheckEncoder(t.Context()); (err == nil) != test.checks {
			t.Errorf("%s: CheckEncoder = %v", name, err)
		}
	}
}

func TestAFrozenEncoderMustBeTheOneOfTraining(t *testing.T) {
	path, base := frozenExperiment(t)
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")

	flip(t, filepath.Join(base, "model.safetensors"))
	_, err := OpenRun(t.Context(), folder)
	if err == nil || !strings.Contains(err.Error(), "is not the one it was trained with") {
		t.Errorf("with other weights Open = %v", err)
	}
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(t.Context(), folder); err == nil ||
		!strings.Contains(err.Error(), "the frozen encoder it was trained with is not found in "+base+
			"; restore it there") {
		t.Errorf("without the encoder Open = %v", err)
	}
}

func TestAFrozenEncodersSumsAreOfTheFilesThatAreRead(t *testing.T) {
	weights := []string{"model.safetensors", "model.onnx", "model.onnx.data"}
	for _, test := range []struct {
		name string
		base []string // of weights
		edit func(t *testing.T, base string)
		want string // BASE is the base model's folder; "": the run opens
	}{
		{"external values of a graph change", weights[1:],
			func(t *testing.T, base string) { flip(t, filepath.Join(base, "model.onnx.data")) },
			"its frozen encoder's file BASE/model.onnx.data is not the one it was trained with"},
		{"external values of a graph are removed", weights[1:],
			func(t *testing.T, base string) { remove(t, filepath.Join(base, "model.onnx.data")) },
			"its frozen encoder's file BASE/model.onnx.data does not exist"},
		{"weights that take precedence over a graph are added", weights[1:], func(t *testing.T, base string) {
			sample.Write(t, filepath.Join(base, "model.safetensors"), sample.Files(t, base)["spare"])
		}, "its frozen encoder is read from BASE/model.safetensors, which it was not trained with"},
		{"a tokenizer that takes precedence over a vocabulary is removed", weights[:1],
			func(t *testing.T, base string) { remove(t, filepath.Join(base, "tokenizer.json")) },
			"its frozen encoder's file BASE/tokenizer.json does not exist"},
		{"a folder stands for a file", weights[:1], func(t *testing.T, base string) {
			remove(t, filepath.Join(base, "tokenizer.json"))
			os.Mkdir(filepath.Join(base, "tokenizer.json"), 0o755) // else the error is another
		}, "its frozen encoder's files: BASE/tokenizer.json: a folder; want a regular file"},
		{"other files change", weights[:1], func(t *testing.T,
			base string) {
			sample.Write(t, filepath.Join(base, "notes.txt"), "more")
		}, ""},
		{"a graph that is not read is removed", weights,
			func(t *testing.T, base string) { remove(t, filepath.Join(base, "model.onnx")) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, base := frozenExperiment(t)
			writeGraph(t, base)
			sample.Write(t, filepath.Join(base, "spare"), sample.Files(t, base)["model.safetensors"])
			sample.Write(t, filepath.Join(base, "notes.txt"), "some")
			for _, name := range weights {
				if !slices.Contains(test.base, name) {
					remove(t, filepath.Join(base, name))
				}
			}
			folder := filepath.Join(t.TempDir(), "run")
			trainSmall(t, path, folder, "training.num_epochs=1")
			if _, err := OpenRun(t.Context(), folder); err != nil {
				t.Fatalf("unchanged: Open = %v", err)
			}

			test.edit(t, base)
			want := strings.ReplaceAll(test.want, "BASE", base)
			_, opened := OpenRun(t.Context(), folder)
			_, _, embedded := OpenEncoder(t.Context(), folder,
				encoders.Env{Freeze: "all", Params: nn.NewParams(1).In("encoder")})
			for command, err := range map[string]error{"Open": opened, "OpenEncoder": embedded} {
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s = %v, want %q", command, err, want)
				}
			}
		})
	}
}

// editSums changes the sums of a frozen encoder's files in the best model of a run.
func editSums(t *testing.T, folder string, edit func(sums map[string]any)) {
	t.Helper()
	editEncoder(t, folder, func(encoder map[string]any) {
		for _, key := range []string{"sha256", "crc32c"} {
			edit(encoder[key].(map[string]any))
		}
	})
}

// editEncoder changes the location of the encoder in the best model of a run.
func editEncoder(t *testing.T, folder string, edit func(encoder map[string]any)) {
	t.Helper()
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ModelFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var about map[string]any
	if err := json.Unmarshal(text, &about); err != nil {
		t.Fatal(err)
	}
	edit(about["encoder"].(map[string]any))
	if text, err = json.Marshal(about); err != nil {
		t.Fatal(err)
	}
	remove(t, path) // it may be a link to the last's
	sample.Write(t, path, string(text))
	if err := runfolder.WriteChecksums(t.Context(), filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
}

func TestSumsOfAHostileCheckpoint(t *testing.T) {
	path, base := frozenExperiment(t)
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	if err := os.Mkdir(filepath.Join(base, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"../../dev/zero": `file "../../dev/zero" is out of its folder`,
		"sub": "sub: a folder; want a regular file"} {
		editSums(t, folder, func(sums map[string]any) { sums[name] = "0" })
		if _, err := OpenRun(t.Context(), folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
		editSums(t, folder, func(sums map[string]any) { delete(sums, name) })
	}
}

func TestAFrozenEncoderThatIsReadFromAFileWithoutASumDoesNotOpen(t *testing.T) {
	path, base := frozenExperiment(t)
	writeGraph(t, base)
	remove(t, filepath.Join(base, "model.safetensors"))
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	editEncoder(t, folder, func(encoder map[string]any) {
		delete(encoder["sha256"].(map[string]any), "model.onnx.data")
	})
	want := filepath.Join(base, "model.onnx.data") + ", which it was not trained with"
	if _, err := OpenRun(t.Context(), folder); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("Open = %v, want %s", err, want)
	}
}

// writeGraph writes the weights of a folder's model.safetensors as an ONNX graph with external values.
func writeGraph(t *testing.T, folder string) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := func(to []byte, field protowire.Number, text string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
	}
	number := func(to []byte, field protowire.Number, n int) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), uint64(n))
	}
	entry := func(to []byte, key, value string) []byte {
		return text(to, 13, string(text(text(nil, 1, key), 2, value)))
	}
	var graph, values []byte
	for _, info := range f.Tensors() {
		raw, err := f.Raw(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		var tensor []byte
		for _, d := range info.Shape {
			tensor = number(tensor, 1, d)
		}
		tensor = text(number(tensor, 2, 1), 8, info.Name) // 1: float32
		tensor = entry(entry(tensor, "location", "model.onnx.data"), "offset", strconv.Itoa(len(values)))
		graph = text(graph, 5, string(number(tensor, 14, 1)))
		values = append(values, raw...)
	}
	sample.Write(t, filepath.Join(folder, "model.onnx"), string(text(nil, 7, string(graph))))
	sample.Write(t, filepath.Join(folder, "model.onnx.data"), string(values))
}

// flip changes the last bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	sample.Write(t, path, string(data))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorInAModelFileHasItsPlace(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ModelFile)
	sample.Write(t, path, "{\n\"format\": \"1\"}")
	if err := runfolder.WriteChecksums(t.Context(), filepath.Dir(path)); err != nil { // else the file is damaged
		t.Fatal(err)
	}
	_, err := OpenRun(t.Context(), folder)
	if err == nil || err.Error() != path+":2: format is a string; want a whole number" {
		t.Errorf("Open = %v", err)
	}
}

func TestACheckpointOpensWithinItsRun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	for _, name := range []string{"best", "last", "tasks/team"} {
		t.Chdir(filepath.Join(folder, name))
		if _, err := OpenRun(t.Context(), "."); err != nil {
			t.Errorf("Open within %s: %v", name, err)
		}
	}

	// a kill between the two renames of replace
	last := filepath.Join(folder, runfolder.LastDir)
	if err := os.Rename(last, last+runfolder.OldSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(t.Context(), last); err != nil {
		t.Errorf("Open after a kill: %v", err)
	}

	// an experiment file further up belongs to another run
	alone := filepath.Join(folder, "some", "where", "alone")
	if err := os.CopyFS(alone, os.DirFS(filepath.Join(folder, runfolder.BestDir))); err != nil {
		t.Fatal(err)
	}
	want := "a model, but no experiment.yaml above it"
	if _, err := OpenRun(t.Context(), alone); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open of a model without a run = %v", err)
	}
}

// The weights of a run may be on a disk that answers slowly: whoever opens it can leave.
func TestOpeningARunEndsWithItsContext(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	if err := os.Truncate(filepath.Join(folder, runfolder.BestDir, runfolder.TensorsFile), 1<<40); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(ctx context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := Open(ctx, folder, Options{})
			return err
		},
		"OpenEmbedder": func(ctx context.Context) error {
			_, err := OpenEmbedder(ctx, folder, 0, "")
			return err
		},
		"OpenTokenizer": func(ctx context.Context) error {
			_, err := OpenTokenizer(ctx, filepath.Join(folder, runfolder.BestDir, runfolder.EncoderDir))
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		begun := time.Now()
		err := open(ctx)
		if !errors.Is(err, context.Canceled) || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %v, want the context's error at once", name, err, time.Since(begun))
		}
		var damage *runfolder.Damage
		if errors.As(err, &damage) {
			t.Errorf("%s: %v, want no damage", name, err)
		}
	}
}

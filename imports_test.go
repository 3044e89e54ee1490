package jenga

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/jenga-nlp/jenga/"

// layers are the packages from the lowest up: a package imports only from layers below its own. A package's
// subfolders belong to its layer, but for those that have one of their own.
var layers = [][]string{
	{"internal/kernel", "internal/files", "internal/shared",
		"internal/suggest", "internal/printable", "internal/hubcache", "internal/hub",
		"internal/tokenizer", "internal/bytereader",
		"internal/calibration", "internal/floats", "internal/queue"},
	{"internal/collective"},
	{"nn"},
	{"internal/safetensors", "internal/mpi", "internal/cuda"},
	{"internal/onnx"},
	{"corpus"},
	{"outputs"},
	{"plugin"},
	{"encoders", "fusion", "heads", "tasks"},
	{"multitask"},
	{"multitask/samplers"},
	{"multitask/snapshots"},
	{"multitask/weightings"},
	{"multitask/updates"},
	{"multitask/train"},
	{"experiments/runfolder", "internal/sample"},
	{"experiments/report"},
	{"experiments/events"},
	{"experiments/guess"},
	{"experiments/config"},
	{"experiments/memory"},
	{"experiments/dataset"},
	{"experiments/model", "experiments/inputs"},
	{"experiments/checkpoint"},
	{"experiments/resume", "experiments/othertexts"},
	{"experiments/teach"},
	{"experiments/run"},
	{"internal/trained"},
	{"predict"},
	{"experiments/merge", "experiments/quantize", "experiments/subset", "experiments/serve", "experiments/calibrate"},
	{"experiments"},
	{"internal/bench"},
	{"parttest"},
	{"docs"},
	{"cmd/cli"},
	{"cmd/jenga"},
}

// only lists the packages that may import a module, by the prefix of its path.
var only = map[string][]string{
	"gorgonia.org/":                   {"nn"},
	"gopkg.in/yaml.v3":                {"plugin"},
	"github.com/daulet/tokenizers":    {"internal/tokenizer"},
	"github.com/parquet-go/":          {"corpus"},
	"github.com/knights-analytics/":   {"encoders/hugot"},
	"github.com/schollz/progressbar/": {"cmd/cli"},
	"github.com/spf13/":               {"cmd/cli"}, // cobra and pflag
	"golang.org/x/text/":              {"corpus", "internal/tokenizer"},
	"github.com/prometheus/":          {"experiments/serve"},
	"github.com/ebitengine/purego":    {"internal/mpi", "internal/cuda"},
	"github.com/chromedp/":            {"test files"}, // and no package
}

// importsOf returns what each package imports, by its folder.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			files[pkg] = append(files[pkg], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A program that only predicts does not link training.
func TestPredictLinksNoTraining(t *testing.T) {
	files, linked := importsOf(t), map[string]bool{}
	reached("predict", files, linked)
	for _, name := range []string{"multitask/train", "experiments/run", "experiments/resume", "experiments/events"} {
		if files[name] == nil || linked[name] {
			t.Errorf("predict imports %s by way of others, or there is no such package", name)
		}
	}
}

func TestPackagesImportOnlyFromBelow(t *testing.T) {
	files := importsOf(t)
	if len(files) < len(layers) {
		t.Fatalf("found %d packages, want at least %d", len(files), len(layers))
	}

	for pkg, imports := range files {
		own := layerOf(pkg)
		for _, name := range imports {
			for prefix, may := range only {
				if strings.HasPrefix(name, prefix) &&
					!slices.ContainsFunc(may, func(m string) bool { return within(pkg, m) }) {
					t.Errorf("%s imports %s, which is for %s alone", pkg, name, strings.Join(may, ", "))
				}
			}
			below, ours := strings.CutPrefix(name, module)
			if !ours || own < 0 {
				continue
			}
			switch other := layerOf(below); {
			case other < 0:
				t.Errorf("%s imports %s, which has no layer", pkg, below)
			case other > own, other == own && root(pkg) != root(below) && own > 0:
				t.Errorf("%s imports %s, which does not lie below it", pkg, below)
			}
		}
	}
}

// reached adds a package of ours, and all that it imports by way of others, to a set.
func reached(pkg string, files map[string][]string, into map[string]bool) {
	if into[pkg] {
		return
	}
	into[pkg] = true
	for _, name := range files[pkg] {
		if below, ours := strings.CutPrefix(name, module); ours {
			reached(below, files, into)
		}
	}
}

// The table of packages lists every package.
func TestTheTableListsEveryPackage(t *testing.T) {
	architecture := fileText(t, "docs/architecture.md")
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if pkg == "." || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if !regexp.MustCompile(`(?m)(^|[ ;])` + pkg + `($|[ ,;])`).MatchString(architecture) {
			t.Errorf("docs/architecture.md does not list %s", pkg)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// layerOf returns the layer of a package: the one that names it, else that of the nearest folder above it; -1 for none.
func layerOf(pkg string) int {
	for at := pkg; at != "."; at = path.Dir(at) {
		if n := slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, at) }); n >= 0 {
			return n
		}
	}
	return -1
}

// within reports whether pkg is folder or lies in it.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func root(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Where caches of tests may keep states.
const (
	inMemory = 1 << 30 // bytes: all of them
	mixed    = 2 << 10 // a few texts
)

// disk is a file that counts its calls, and that can be full or fail.
type disk struct {
	*os.File
	room         int64 // bytes it takes
	short        bool  // reads give less than was written
	read, closed int
}

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > d.room {
		return 0, errors.New("disk: no room")
	}
	return d.File.WriteAt(b, at)
}

func (d *disk) ReadAt(b []byte, at int64) (int, error) {
	d.read++
	if d.short {
		n, _ := d.File.ReadAt(b[:len(b)-1], at)
		return n, errors.New("disk: cut")
	}
	return d.File.ReadAt(b, at)
}

func (d *disk) Close() error { d.closed++; return d.File.Close() }

// opened makes the disk's file.
func (d *disk) opened(t *testing.T) func() (multitask.CacheFile, error) {
	return func() (multitask.CacheFile, error) {
		if d.File != nil {
			t.Error("a second file is opened")
		}
		var err error
		d.File, err = os.Create(filepath.Join(t.TempDir(), "states"))
		return d, err
	}
}

// cached is the result of training a frozen model with a cache.
type cached struct {
	texts       int // that were encoded
	values      map[string][]float32
	evaluations []Evaluation
	warnings    []string
	err         error
}

func trainCached(t *testing.T, m *multitask.Model, memory int64, open func() (multitask.CacheFile, error)) cached {
	t.Helper()
	data := smallData(m, 12)
	data[0].Dev = smallData(m, 15)[0].Train // other texts than those of training
	data[1].Dev = data[0].Dev[:0]
	counted := &counting{Encoder: m.Encoder}
	m.Encoder = counted
	plan := smallPlan()
	plan.Epochs, plan.CacheMemory, plan.CacheFile = 3, memory, open
	var c cached
	c.err = trainOn(context.Background(), m, data, plan, func(event Event) error {
		switch v := event.(type) {
		case Evaluation:
			c.evaluations = append(c.evaluations, v)
		case Warning:
			c.warnings = append(c.warnings, v.Text)
		}
		return nil
	})
	c.texts, c.values = counted.texts, values(m)
	return c
}

// layered is smallModel, frozen, with a fusion that reads the states of all layers.
func layered(t *testing.T) *multitask.Model {
	m := smallModel(t, "all", 0.1)
	m.Fusion = everyLayer{m.Fusion}
	return m
}

type everyLayer struct{ fusion.Fusion }

func (everyLayer) Describe() fusion.Description { return fusion.Description{Layers: nn.AllLayers} }

// Fuse takes the states of the first layer for one task, of the second for the others.
func (f everyLayer) Fuse(p *nn.Pass, shared nn.Hidden, task string) nn.Hidden {
	shared.States = shared.Layers[1]
	if task == "tags" {
		shared.States = shared.Layers[0]
	}
	return f.Fusion.Fuse(p, shared, task)
}

func TestATextIsEncodedOnceWhereverItsStatesAreKept(t *testing.T) {
	for name, model := range map[string]func(t *testing.T) *multitask.Model{
		"last layer": func(t *testing.T) *multitask.Model { return smallModel(t, "all", 0.1) },
		"all layers": layered,
	} {
		var want map[string][]float32
		var loss float64
		for _, test := range []struct {
			name   string
			memory int64
			file   bool
			texts  int // that are encoded in three epochs and evaluations of 24 and 15 texts
		}{
			{"memory", inMemory, false, 24 + 15},
			{"file", 0, true, 24 + 15},
			{"both", mixed, true, 24 + 15},
			{"nothing", 0, false, 3 * (24 + 15)},
		} {
			t.Run(name+" in "+test.name, func(t *testing.T) {
				file := &disk{room: inMemory}
				var open func() (multitask.CacheFile, error)
				if test.file {
					open = file.opened(t)
				}
				got := trainCached(t, model(t), test.memory, open)
				if got.err != nil || len(got.warnings) > 0 || len(got.evaluations) != 3 {
					t.Fatalf("Train = %v, warnings %q, %d evaluations", got.err, got.warnings, len(got.evaluations))
				}
				if got.texts != test.texts {
					t.Errorf("%d texts were encoded, want %d", got.texts, test.texts)
				}
				if test.file && (file.read == 0 || file.closed != 1) {
					t.Errorf("the file was read %d times and closed %d times", file.read, file.closed)
				}
				last := got.evaluations[2].Groups[0].Tasks[0].Heads[0].Loss.Sum
				if want == nil {
					want, loss = got.values, last
				}
				for name := range want {
					if !slices.Equal(got.values[name], want[name]) {
						t.Errorf("%s has other bits than with all states in memory", name)
					}
				}
				if last != loss {
					t.Errorf("dev's loss is %v, with all states in memory %v", last, loss)
				}
			})
		}
	}
}

func TestTrainingGoesOnWithoutAFileThatCannotBeWritten(t *testing.T) {
	want := trainCached(t, smallModel(t, "all", 0.1), inMemory, nil)
	for _, test := range []struct {
		name string
		room int64 // of the disk, in bytes; 0: the file cannot be opened
	}{
		{"no file", 0},
		{"full at once", 10},
		{"full later", 5000},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := &disk{room: test.room}
			open := file.opened(t)
			if test.room == 0 {
				open = func() (multitask.CacheFile, error) { return nil, errors.New("disk: none") }
			}
			got := trainCached(t, smallModel(t, "all", 0.1), mixed, open)
			if got.err != nil || len(got.evaluations) != 3 {
				t.Fatalf("Train = %v after %d evaluations", got.err, len(got.evaluations))
			}
			if len(got.warnings) != 1 || !strings.HasPrefix(got.warnings[0], "disk: no") ||
				!strings.Contains(got.warnings[0], "training.cache_memory") {
				t.Errorf("warnings %q, want one that begins with the error of the disk and names what would help",
					got.warnings)
			}
			if got.texts <= want.texts || got.texts >= 3*want.texts {
				t.Errorf("%d texts were encoded, want more than %d, each once, and less than %d, each three times",
					got.texts, want.texts, 3*want.texts)
			}
			for name := range want.values {
				if !slices.Equal(got.values[name], want.values[name]) {
					t.Errorf("%s has other bits than with all states in memory", name)
				}
			}
			if test.room > 0 && file.closed != 1 {
				t.Errorf("the file was closed %d times: what it holds fills the disk", file.closed)
			}
		})
	}
}

func TestStatesThatCannotBeReadAreAnError(t *testing.T) {
	file := &disk{room: inMemory, short: true}
	got := trainCached(t, smallModel(t, "all", 0.1), 0, file.opened(t))
	if got.err == nil || !strings.Contains(got.err.Error(), "states of a frozen encoder: disk: cut") {
		t.Errorf("Train = %v, want the error of the disk", got.err)
	}
	if file.closed != 1 {
		t.Errorf("the file was closed %d times", file.closed)
	}
}

func TestAnInterruptedTrainingClosesItsFile(t *testing.T) {
	m, file := smallModel(t, "all", 0.1), &disk{room: inMemory}
	plan := smallPlan()
	plan.CacheMemory, plan.CacheFile = 0, file.opened(t)
	ctx, interrupt := context.WithCancel(context.Background())
	err := trainOn(ctx, m, smallData(m, 12), plan, func(Event) error { interrupt(); return nil })
	if !errors.Is(err, context.Canceled) || file.closed != 1 {
		t.Errorf("Train = %v, the file was closed %d times", err, file.closed)
	}
}

func TestABatchOfKeptAndNewTextsHasTheStatesOfEach(t *testing.T) {
	for _, memory := range []int64{inMemory, mixed, 0} {
		for name, m := range map[string]*multitask.Model{"the last layer": smallModel(t, "all", 0),
			"all layers": layered(t)} {
			data := smallData(m, 9)[0].Train
			batch := corpus.Pack(data)
			pass := nn.NewPass(1)
			layers, err := multitask.Cached{Model: m}.Encode(pass, &m.Groups[0], batch)
			if err != nil {
				t.Fatal(err)
			}
			var want [][]float32 // [T D] of each layer
			for _, states := range layers {
				want = append(want, slices.Clone(states))
			}

			file := &disk{room: inMemory}
			cached := multitask.Cached{Model: m, Cache: multitask.NewCache(m.Encoder, memory/4, file.opened(t))}
			for _, part := range [][]*corpus.Example{data[2:4], data[6:7], data} {
				pass.Reset(1)
				layers, err = cached.Encode(pass, &m.Groups[0], corpus.Pack(part))
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.EqualFunc(layers, want, slices.Equal[[]float32]) {
				t.Errorf("%s with %d bytes of memory: the states of a batch, some of whose texts are kept, are others",
					name, memory)
			}
			cached.Cache.Close()
		}
	}
}

package plugin

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFields(t *testing.T) {
	want := []Field{
		{"dropout", "a number in [0, 1)", "0.1", "share of leaves that fall"},
		{"soil", "sand, clay or peat", "clay", ""},
		{"size", "a whole number of at least 1", "3", ""},
		{"names", "a list", "[a]", ""},
		{"water.litres", "a number above 0", "1.0", ""},
		{"water.rain", "true or false", "false", ""},
		{"hours", "a whole number of at most 24", "8", ""},
	}
	if got := pots().Fields("big"); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := pots().Fields("small"); len(got) != 0 {
		t.Errorf("a part without options has %+v", got)
	}
}

// Options that no file could set are a programming error, found when the program starts.
func TestRegisterPanics(t *testing.T) {
	for _, test := range []struct {
		rule     string
		register func(r *Registry[string, *pot])
		want     string
	}{
		{"the name is taken", register("big", struct{}{}), `two parts of kind pot are named "big"`},
		{"options are not a struct", register("x", 3), "options of type int, want a struct"},
		{"an option has no tag", register("x", struct{ Size int }{}),
			"Size must be exported and have a yaml tag in snake_case"},
		{"an option is not exported", register("x", struct {
			size int `yaml:"size"`
		}{}), "size must be exported"},
		{"a key is not in snake_case", register("x", struct {
			Size int `yaml:"Size"`
		}{}), "Size must be exported"},
		{"two options have one key", register("x", struct {
			A int `yaml:"size"`
			B int `yaml:"size"`
		}{}), `are named "size"`},
		{"an option has a type unknown to YAML", register("x", struct {
			Size *int `yaml:"size"`
		}{}), "has type *int, which no file can set"},
		{"a range is malformed", register("x", struct {
			Size int `yaml:"size" range:"0-1"`
		}{}), `range "0-1", want one like [0,1)`},
		{"a range ends in text", register("x", struct {
			Size int `yaml:"size" range:"[0,one)"`
		}{}), `range "[0,one)"`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "plugin: ") ||
					!strings.Contains(text, test.want) {
					t.Errorf("panics with %q, want plugin: …%s…", text, test.want)
				}
			}()
			test.register(pots())
		})
	}
}

func register[O any](name string, defaults O) func(*Registry[string, *pot]) {
	return func(r *Registry[string, *pot]) {
		Register(r, name, defaults, func(O, string) (*pot, error) { return nil, nil })
	}
}

func TestChoosePanicsOnAnOptionThatIsTaken(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || text != `plugin: pot "big" has an option "size", which is taken` {
			t.Errorf("panics with %q", text)
		}
	}()
	var mistakes Mistakes
	pots().Choose(Parse("f", []byte("{type: big}"), &mistakes), "", []string{"size"}, &mistakes)
}

func TestBuild(t *testing.T) {
	r := pots()
	c, err := r.FromString("big", "size: 4")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Build("window"); err != nil || p.size != 40 {
		t.Errorf("Build = %+v, %v; want size 40", p, err)
	}
	_, err = c.Build("")
	var mistake *Mistake
	if want := `options:1:1: pot "big": want a place to stand`; !errors.As(err, &mistake) || err.Error() != want {
		t.Errorf("Build: %v, want %s", err, want)
	}
	for options, want := range map[string]string{
		"sise: 4": `options:1:1: pot "big" has no option "sise"; did you mean "size"? it takes dropout, hours, names, size, soil, water`,
		"4":       `options:1:1: want options as a mapping, have 4`,
		"[":       `options:1: not YAML: did not find expected node content`,
	} {
		if _, err := r.FromString("big", options); err == nil || err.Error() != want {
			t.Errorf("FromString(%q): %v, want %s", options, err, want)
		}
	}
	if _, err := r.FromString("bik", ""); err == nil ||
		err.Error() != `no pot "bik"; did you mean "big"? available: big, small` {
		t.Errorf("FromString of an unknown part: %v", err)
	}
}

// YAML 1.1 requires a dot before an exponent.
func TestNumbersAreWrittenWithADot(t *testing.T) {
	for value, want := range map[float64]string{2e-5: "2.0e-05", 1: "1.0", 0.25: "0.25", 1.5e300: "1.5e+300",
		-1: "-1.0"} {
		var mistakes Mistakes
		s := SectionOf(value)
		var back struct {
			V float64 `yaml:"v"`
		}
		Parse("f", []byte("v: "+s.Text), &mistakes).Decode("f", &back, &mistakes)
		if s.Text != want || back.V != value || !mistakes.Empty() {
			t.Errorf("%v is written %s and read %v; want %s", value, s.Text, back.V, want)
		}
	}
}

func TestMaps(t *testing.T) {
	type maps struct {
		Names map[int]string     `yaml:"names"`
		Sizes map[string]float32 `yaml:"sizes" range:"[0,)"`
	}
	var got maps
	var mistakes Mistakes
	file := "{names: {10: ten, 2: two}, sizes: {a: 1}}"
	Parse("f", []byte(file), &mistakes).Decode("shop", &got, &mistakes)
	if want := (maps{map[int]string{2: "two", 10: "ten"}, map[string]float32{"a": 1}}); !reflect.DeepEqual(got, want) ||
		!mistakes.Empty() {
		t.Errorf("%s reads %+v, %v", file, got, mistakes.Err())
	}
	if text, want := inline(SectionOf(got)), "names:\n  2: two\n  10: ten\nsizes:\n  a: 1.0"; text != want {
		t.Errorf("written as\n%s\nwant\n%s", text, want)
	}
	Parse("f", []byte("{names: {two: 2}, sizes: {a: -1, b: []}}"), &mistakes).Decode("shop", &got, &mistakes)
	want := "f:1:10: shop: names: want whole numbers as keys, have \"two\"\n" +
		"f:1:30: shop: sizes: a: want a number of at least 0, have -1\n" +
		"f:1:37: shop: sizes: b: want a number of at least 0, have a list"
	if mistakes.Err().Error() != want {
		t.Errorf("got\n%v\nwant\n%s", mistakes.Err(), want)
	}
}

func TestOmitempty(t *testing.T) {
	type options struct {
		Layers int      `yaml:"layers,omitempty"`
		Path   *Section `yaml:"path,omitempty"`
		Labels []string `yaml:"labels,omitempty"`
		Width  int      `yaml:"width"`
	}
	if got, want := inline(SectionOf(options{})), "width: 0"; got != want {
		t.Errorf("SectionOf = %q, want %q", got, want)
	}
	all := SectionOf(options{Layers: 2, Path: SectionOf("a"), Labels: []string{}, Width: 3})
	if got, want := inline(all), "layers: 2\npath: a\nlabels: []\nwidth: 3"; got != want {
		t.Errorf("SectionOf = %q, want %q", got, want)
	}
	all.Remove("path", "width")
	if got, want := inline(all), "layers: 2\nlabels: []"; got != want {
		t.Errorf("without two keys = %q, want %q", got, want)
	}
	if got, want := KeysOf(options{}), []string{"layers", "path", "labels", "width"}; !slices.Equal(got, want) {
		t.Errorf("KeysOf = %q, want %q", got, want)
	}
}

func TestUnlistedOptionsAreReadButNotListed(t *testing.T) {
	type options struct {
		Layers int    `yaml:"layers"`
		Device string `yaml:"device" listed:"no"`
	}
	if got, want := KeysOf(options{}), []string{"layers"}; !slices.Equal(got, want) {
		t.Errorf("KeysOf = %q, want %q", got, want)
	}
	var mistakes Mistakes
	section := Parse("exp.yaml", []byte("device: cpu\nlayer: 2\n"), &mistakes)
	var got options
	section.Decode("model", &got, &mistakes)
	const want = `exp.yaml:2:1: model has no option "layer"; it takes layers`
	if err := mistakes.Err(); err == nil || err.Error() != want || got.Device != "cpu" {
		t.Errorf("read %+v, %v, want device cpu and the error %s", got, err, want)
	}
}

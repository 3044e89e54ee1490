package plugin

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFields(t *testing.T) {
	want := []Field{
		{"dropout", "a number in [0, 1)", "0.1", "fraction of leaves that fall", ""},
		{"soil", "sand, clay or peat", "clay", "", ""},
		{"size", "a whole number of at least 1", "3", "", ""},
		{"names", "a list", "[a]", "", ""},
		{"water.litres", "a number above 0", "1.0", "", ""},
		{"water.rain", "true or false", "false", "", ""},
		{"hours", "a whole number of at most 24", "8", "", ""},
	}
	got := pots().Fields("big")
	if of := got[5].Source; of != "github.com/jenga-nlp/jenga/plugin.water.Rain" {
		t.Errorf("water.rain is declared by %s", of)
	}
	if got = unsourced(got); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := pots().Fields("small"); len(got) != 0 {
		t.Errorf("a part without options has %+v", got)
	}
}

// unsourced returns fields without their places in the source.
func unsourced(fields []Field) []Field {
	for i := range fields {
		fields[i].Source = ""
	}
	return fields
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

// The tags takes and default replace what the type and the registered value say; no value has no text.
func TestFieldsOfTags(t *testing.T) {
	type options struct {
		Path    *Section       `yaml:"path" takes:"a path"`
		Any     *Section       `yaml:"any"`
		Name    string         `yaml:"name"`
		Scale   []float64      `yaml:"scale" range:"[0,)"`
		Layers  []int          `yaml:"layers"`
		Targets []string       `yaml:"targets" choice:"query|key"`
		Ends    []float64      `yaml:"ends" takes:"[LEAST, MOST]"`
		Of      map[string]int `yaml:"of"`
		Size    int            `yaml:"size" range:"[1,)" default:"(8 or 9)"`
		Labels  int            `yaml:"labels" range:"[1,)" default:""`
	}
	want := []Field{
		{"path", "a path", "", "", ""},
		{"any", "a value", "", "", ""},
		{"name", "text", "", "", ""},
		{"scale", "a list of numbers of at least 0", "", "", ""},
		{"layers", "a list of whole numbers", "[1, 2]", "", ""},
		{"targets", "a list of query or key", "[key]", "", ""},
		{"ends", "[LEAST, MOST]", "[0.0, 1.0]", "", ""},
		{"of", "a mapping", "", "", ""},
		{"size", "a whole number of at least 1", "(8 or 9)", "", ""},
		{"labels", "a whole number of at least 1", "", "", ""},
	}
	defaults := options{Layers: []int{1, 2}, Targets: []string{"key"}, Ends: []float64{0, 1}, Size: 8}
	if got := unsourced(FieldsOf("", defaults)); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// vase has an option of each kind with limits.
type vase struct {
	potOptions `yaml:",inline"`
	Soils      []string           `yaml:"soils" choice:"sand|clay"`
	Weights    map[string]float64 `yaml:"weights" range:"[0,)"`
	Waters     []water            `yaml:"waters"`
	Balance    Factors            `yaml:"balance" choice:"none|even" range:"[0,10]"`
	Costs      Factors            `yaml:"costs" choice:"none" range:"[0,)" one:"no"`
	Any        *Section           `yaml:"any"`
}

func soundVase() vase {
	return vase{
		potOptions: potOptions{Dropout: 0.5, Soil: "clay", Size: 1, Water: water{Litres: 1}, light: light{24}},
		Soils:      []string{"sand", "clay"},
		Weights:    map[string]float64{"a": 0, "b": 1},
		Waters:     []water{{Litres: 2}, {Rain: true}}, // a file that omits litres gives 0 here too
		Balance:    Factors{One: 2},
		Costs:      Factors{Each: map[string]float64{"a": 1}},
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*vase)
	}{
		{"", func(*vase) {}},
		{"", func(v *vase) { v.Balance, v.Costs = Factors{Word: "even"}, Factors{Word: "none"} }},
		{"", func(v *vase) { v.Any = &Section{Kind: Text, Text: "x"} }},
		{"dropout: want a number in [0, 1), have 1", func(v *vase) { v.Dropout = 1 }},
		{"dropout: want a number in [0, 1), have -0.5", func(v *vase) { v.Dropout = -0.5 }},
		{"dropout: want a number in [0, 1), have NaN", func(v *vase) { v.Dropout = math.NaN() }},
		{"water: litres: want a number above 0, have +Inf", func(v *vase) { v.Water.Litres = float32(math.Inf(1)) }},
		{"water: litres: want a number above 0, have 0", func(v *vase) { v.Water.Litres = 0 }},
		{`soil: want sand, clay or peat, have "mud"`, func(v *vase) { v.Soil = "mud" }},
		{`soil: want sand, clay or peat, have ""`, func(v *vase) { v.Soil = "" }},
		{"size: want a whole number of at least 1, have 0", func(v *vase) { v.Size = 0 }},
		{"hours: want a whole number of at most 24, have 25", func(v *vase) { v.Hours = 25 }},
		{`soils: want sand or clay, have "peat"`, func(v *vase) { v.Soils = []string{"clay", "peat"} }},
		{"weights: b: want a number of at least 0, have -1",
			func(v *vase) { v.Weights = map[string]float64{"a": 1, "b": -1} }},
		{"waters: litres: want a number above 0, have -1", func(v *vase) { v.Waters = []water{{Litres: -1}} }},
		{`balance: want none or even, a number in (0, 10] or {NAME: a number in [0, 10]}, have "odd"`,
			func(v *vase) { v.Balance = Factors{Word: "odd"} }},
		{"balance: want none or even, a number in (0, 10] or {NAME: a number in [0, 10]}, have 0",
			func(v *vase) { v.Balance = Factors{} }},
		{"balance: a: want a number in [0, 10], have 11",
			func(v *vase) { v.Balance = Factors{Each: map[string]float64{"a": 11}} }},
		{"costs: want none or {NAME: a number of at least 0}, have 2", func(v *vase) { v.Costs = Factors{One: 2} }},
		{"dropout: want a number in [0, 1), have 1\nsize: want a whole number of at least 1, have 0",
			func(v *vase) { v.Dropout, v.Size = 1, 0 }},
	} {
		v := soundVase()
		test.change(&v)
		got := ""
		if err := Check(v); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("Check = %s\n want %s", got, test.want)
		}
	}
}

// Build accepts the result of Choose, and checks all options.
func TestARegistryChecksOptions(t *testing.T) {
	r := NewRegistry[string, int]("pot")
	type options struct {
		Size int    `yaml:"size" range:"[1,9]"`
		Soil string `yaml:"soil" choice:"sand|clay"`
	}
	// a size must be named
	Register(r, "big", options{Size: 0, Soil: ""}, func(o options, _ string) (int, error) { return o.Size, nil })
	c, err := r.FromString("big", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Build("here"); err != nil {
		t.Errorf("the defaults: %v", err)
	}

	c.Options, c.Place = options{Size: 10}, Place{File: "f", Line: 1, Col: 2}
	const want = `f:1:2: pot "big": size: want a whole number in [1, 9], have 10`
	if _, err := c.Build("here"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}

	defer func() {
		if got, _ := recover().(string); !strings.HasPrefix(got, `plugin: pot "big" with options of type struct {}`) {
			t.Errorf("other options panic with %q", got)
		}
	}()
	_, _ = r.Build("big", struct{}{}, "here")
}

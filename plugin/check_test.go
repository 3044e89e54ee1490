package plugin

import (
	"math"
	"strings"
	"testing"
)

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

	c.Options, c.Place = options{Size: 10}, Place{"f", 1, 2}
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

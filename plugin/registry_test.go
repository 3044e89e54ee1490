package plugin

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

type pot struct{ size int }

type potOptions struct {
	Dropout float64  `yaml:"dropout" range:"[0,1)" doc:"fraction of leaves that fall"`
	Soil    string   `yaml:"soil" choice:"sand|clay|peat"`
	Size    int      `yaml:"size" range:"[1,)"`
	Names   []string `yaml:"names"`
	Water   water    `yaml:"water"`
	light   `yaml:",inline"`
}

type water struct {
	Litres float32 `yaml:"litres" range:"(0,)"`
	Rain   bool    `yaml:"rain"`
}

type light struct {
	Hours uint8 `yaml:"hours" range:"[,24]"`
}

func pots() *Registry[string, *pot] {
	r := NewRegistry[string, *pot]("pot")
	defaults := potOptions{Dropout: 0.1, Soil: "clay", Size: 3, Names: []string{"a"}, Water: water{Litres: 1},
		light: light{8}}
	Register(r, "big", defaults, func(o potOptions, env string) (*pot, error) {
		if env == "" {
			return nil, errors.New("want a place to stand")
		}
		return &pot{o.Size * 10}, nil
	})
	Register(r, "small", struct{}{}, func(struct{}, string) (*pot, error) { return &pot{1}, nil })
	r.Alias("large", "big")
	r.Alias("huge", "giant")
	return r
}

func TestChoose(t *testing.T) {
	full := potOptions{Dropout: 0.5, Soil: "peat", Size: 16, Names: []string{"x", "2", "true"},
		Water: water{Litres: 2, Rain: true}, light: light{24}}
	some := potOptions{Dropout: 0.1, Soil: "clay", Size: 7, Names: []string{"a"}, Water: water{Litres: 0.5},
		light: light{8}}
	defaults := potOptions{Dropout: 0.1, Soil: "clay", Size: 3, Names: []string{"a"}, Water: water{Litres: 1},
		light: light{8}}
	for _, test := range []struct {
		rule, file string
		want       potOptions
	}{
		{"every option is read", "{type: big, dropout: 5e-1, soil: peat, size: 0x10, names: [x, 2, true], water: " +
			"{litres: 2, rain: yes}, hours: 24}", full},
		{"absent and null options keep their default", "{type: big, size: 7, soil: null, water: {litres: .5}}", some},
		{"a name alone chooses the part", "big", defaults},
		{"an alias chooses the part", "large", defaults},
		{"null is the missing part", "~", defaults},
		{"a mapping without a type is the missing part", "{size: 3}", defaults},
		{"keys in beside are ignored", "{owner: me, type: big}", defaults},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var mistakes Mistakes
			r := pots()
			c := r.Choose(Parse("f", []byte(test.file), &mistakes), "big", []string{"owner"}, &mistakes)
			if err := mistakes.Err(); err != nil {
				t.Fatal(err)
			}
			if c.Type != "big" || !reflect.DeepEqual(c.Options, test.want) {
				t.Errorf("%s is %s %+v, want %+v", test.file, c.Type, c.Options, test.want)
			}
			written, err := r.FromString("big", strings.TrimPrefix(inline(c.Section()), "type: big\n"))
			if err != nil || !reflect.DeepEqual(written.Options, test.want) {
				t.Errorf("written as %q it reads %+v, %v", inline(c.Section()), written.Options, err)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	const takes = "dropout, hours, names, size, soil, water"
	for _, test := range []struct{ file, want string }{
		{"bigg", `f:1:1: no pot "bigg"; did you mean "big"? available: big, small`},
		{"huge", `f:1:1: no pot "huge"; available: big, small`},
		{"[big]", `f:1:1: pot: want a type or a mapping, have a list`},
		{"type: [big]", `f:1:7: type of pot: want a name, have a list`},
		{"owner: me", `f:1:1: pot without a type; available: big, small`},
		{"{type: big, sise: 3}", `f:1:13: pot "big" has no option "sise"; did you mean "size"? it takes ` + takes},
		{"{type: big, owne: 3}", `f:1:13: pot "big" has no option "owne"; did you mean "owner"? it takes ` + takes},
		{"{type: big, water: {liters: 3}}", `f:1:21: pot "big": water has no option "liters"; it takes litres, rain`},
		{"{type: small, x: 3}", `f:1:15: pot "small" has no option "x"; it takes none but owner, type`},
		{"{type: big, dropout: 1}", `f:1:22: pot "big": dropout: want a number in [0, 1), have 1`},
		{"{type: big, dropout: .nan}", `f:1:22: pot "big": dropout: want a number in [0, 1), have .nan`},
		{"{type: big, size: 0}", `f:1:19: pot "big": size: want a whole number of at least 1, have 0`},
		{"{type: big, size: 1.5}", `f:1:19: pot "big": size: want a whole number of at least 1, have 1.5`},
		{"{type: big, size: 99999999999999999999}",
			`f:1:19: pot "big": size: want a whole number of at least 1, have 99999999999999999999`},
		{"{type: big, size: '3'}", `f:1:19: pot "big": size: want a whole number of at least 1, have text "3"`},
		{"{type: big, hours: 25}", `f:1:20: pot "big": hours: want a whole number of at most 24, have 25`},
		{"{type: big, hours: -1}", `f:1:20: pot "big": hours: want a whole number of at most 24, have -1`},
		{"{type: big, soil: mud}", `f:1:19: pot "big": soil: want sand, clay or peat, have "mud"`},
		{"{type: big, soil: {}}", `f:1:19: pot "big": soil: want sand, clay or peat, have a mapping`},
		{"{type: big, names: x}", `f:1:20: pot "big": names: want a list, have text "x"`},
		{"{type: big, names: [x, ~]}", `f:1:24: pot "big": names: want text, have nothing`},
		{"{type: big, water: 1}", `f:1:20: pot "big": water: want a mapping, have 1`},
		{"{type: big, water: {litres: 0, rain: 1}}",
			"f:1:29: pot \"big\": water: litres: want a number above 0, have 0\n" +
				`f:1:38: pot "big": water: rain: want true or false, have 1`},
	} {
		var mistakes Mistakes
		pots().Choose(Parse("f", []byte(test.file), &mistakes), "", []string{"owner"}, &mistakes)
		if err := mistakes.Err(); err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.file, err, test.want)
		}
	}
}

func TestTheDefaultOfARegistry(t *testing.T) {
	r := NewRegistry[int, int]("part")
	if got := r.Default(); got != "" {
		t.Errorf("Default = %q before one is set", got)
	}
	r.SetDefault("a")
	if got := r.Default(); got != "a" {
		t.Errorf("Default = %q, want a", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second default does not panic")
		}
	}()
	r.SetDefault("b")
}

// garden is a section with a part and with a word for true or false.
type garden struct {
	Wet bool                 `yaml:"soil" choice:"dry|wet"`
	Pot Choice[string, *pot] `yaml:"pot"`
}

func TestASectionHasPartsAndWords(t *testing.T) {
	r := pots()
	r.SetDefault("small")
	for _, c := range []struct{ file, want, written, mistake string }{
		{"{}", "dry small", "soil: dry, pot.type: small", ""},
		{"{soil: wet, pot: big}", "wet big", "soil: wet, pot.type: big, pot.dropout: 0.1, pot.soil: clay, " +
			"pot.size: 3, pot.names.1: a, pot.water.litres: 1.0, pot.water.rain: false, pot.hours: 8", ""},
		{"{soil: dry, pot: {type: small}}", "dry small", "soil: dry, pot.type: small", ""},
		{"{soil: wett, pot: ~}", "dry small", "", `f:1:8: garden: soil: want dry or wet, have "wett"`},
		{"{pot: {type: big, size: 0}}", "dry big", "",
			`f:1:25: pot "big": size: want a whole number of at least 1, have 0`},
		{"7", "dry small", "", "f:1:1: garden: want a mapping, have 7"},
	} {
		t.Run(c.file, func(t *testing.T) {
			var mistakes Mistakes
			g := garden{Pot: r.Unset()}
			Parse("f", []byte(c.file), &mistakes).Decode("garden", &g, &mistakes)
			word := map[bool]string{false: "dry", true: "wet"}[g.Wet]
			if got := word + " " + g.Pot.Type; got != c.want {
				t.Errorf("read as %s, want %s", got, c.want)
			}
			if err := mistakes.Err(); c.mistake != "" {
				if err == nil || err.Error() != c.mistake {
					t.Errorf("got %v, want %s", err, c.mistake)
				}
				if inPart := strings.Contains(c.mistake, "pot "); g.Pot.Mistaken() != inPart {
					t.Errorf("the choice is mistaken: %v, want %v", g.Pot.Mistaken(), inPart)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, v := range SectionOf(g).Values() {
				texts = append(texts, v.Key+": "+v.Text)
			}
			if got := strings.Join(texts, ", "); got != c.written {
				t.Errorf("values %s, want %s", got, c.written)
			}
		})
	}

	fields := FieldsOf("", garden{Pot: r.Unset()})
	if got := fields[0].Type + ", " + fields[0].Default; got != "dry or wet, dry" {
		t.Errorf("the word is described as %s", got)
	}
	if got := fields[1].Type + ", " + fields[1].Default; got != "a type or {type: …}, small" {
		t.Errorf("the part is described as %s", got)
	}
}

func TestValuesOfLists(t *testing.T) {
	var mistakes Mistakes
	s := Parse("f", []byte("tasks: [{name: b, x: [1, [2]]}, {name: a}]\nlist: [{name: c}, 3]\nnone: []"), &mistakes)
	var texts []string
	for _, v := range s.Values() {
		texts = append(texts, v.Key+"="+v.Text)
	}
	want := "tasks.b.name=b tasks.b.x.1=1 tasks.b.x.2.1=2 tasks.a.name=a tasks=b, a list.1.name=c list.2=3"
	if got := strings.Join(texts, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

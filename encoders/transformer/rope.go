package transformer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ropesFile is rope_parameters of a config.json: an object for each type of layers. For models whose layers have one
// type, transformers 5 writes the keys of ropeFile in its place; it refuses them for ModernBERT.
type ropesFile struct {
	Global ropeFile `json:"full_attention"`
	Local  ropeFile `json:"sliding_attention"`

	others []string // keys that are not the two above, in order
}

// ropeFile has the rotary positions of layers. A missing key has transformers' default.
type ropeFile struct {
	Type    *string  `json:"rope_type,omitempty"`
	OldType *string  `json:"type,omitempty"` // transformers reads it where there is no rope_type
	Base    *float64 `json:"rope_theta,omitempty"`
}

// newRopeFile returns the rotary positions of a base.
func newRopeFile(base float64) ropeFile {
	kind := ropeType
	return ropeFile{Type: &kind, Base: &base}
}

const (
	globalLayer = "full_attention"
	localLayer  = "sliding_attention"

	ropeType = "default" // the one that is supported
)

// setOthers sets the keys of rope_parameters that have no meaning; data is config.json, which has been parsed.
func (f *ropesFile) setOthers(data []byte) {
	var file struct {
		Rope map[string]json.RawMessage `json:"rope_parameters"`
	}
	_ = json.Unmarshal(data, &file)
	for _, key := range slices.Sorted(maps.Keys(file.Rope)) {
		if key != globalLayer && key != localLayer {
			f.others = append(f.others, key)
		}
	}
}

// refuse returns the values that no network can have, but bases.
func (f ropesFile) refuse() (refused []error) {
	if len(f.others) > 0 {
		refused = append(refused, fmt.Errorf("rope_parameters has %s; want the keys %s and %s, each with rope_type "+
			"and rope_theta", strings.Join(f.others, ", "), globalLayer, localLayer))
	}
	check := func(layer, key string, value *string) {
		if value != nil && *value != ropeType {
			refused = append(refused, fmt.Errorf("rope_parameters.%s.%s %q is not supported; %q is", layer, key,
				*value, ropeType))
		}
	}
	check(globalLayer, "rope_type", f.Global.Type)
	check(globalLayer, "type", f.Global.OldType)
	check(localLayer, "rope_type", f.Local.Type)
	check(localLayer, "type", f.Local.OldType)
	return refused
}

// bases returns the bases of rotary positions in global and in local layers, under the keys that have them.
func (f modernbertFile) bases() (global, local number) {
	global = number{"global_rope_theta", f.GlobalBase}
	local = global
	if f.LocalBase != nil {
		local = number{"local_rope_theta", *f.LocalBase}
	}
	if base := f.Rope.Global.Base; base != nil {
		global = number{"rope_parameters." + globalLayer + ".rope_theta", *base}
	}
	if base := f.Rope.Local.Base; base != nil {
		local = number{"rope_parameters." + localLayer + ".rope_theta", *base}
	}
	return global, local
}

// refuseBases returns errors of bases that no rotary positions can have.
func (f modernbertFile) refuseBases() (refused []error) {
	global, local := f.bases()
	for _, base := range slices.Compact([]number{global, local}) {
		if !isBase(base.value) {
			refused = append(refused, fmt.Errorf("%s is %v; want a number from 1 to 1e12, such as 10000", base.key,
				base.value))
		}
	}
	return refused
}

// isBase reports whether rotary positions can have a base.
func isBase(value float64) bool { return value >= 1 && value <= 1e12 }

// defaultWindow is transformers' default of local_attention.
const defaultWindow = 128

// windowTokens returns the number of tokens of a window, half of them at each side.
func (f modernbertFile) windowTokens() int {
	switch {
	case f.Local != nil:
		return *f.Local
	case f.Sliding != nil:
		return 2 * *f.Sliding
	}
	return defaultWindow
}

// refuseWindow returns an error of a window that no network can have.
func (f modernbertFile) refuseWindow() []error {
	switch {
	case f.Local != nil && (*f.Local < 2 || *f.Local > maxSize):
		return []error{fmt.Errorf("local_attention is %d; want 2 to %d", *f.Local, maxSize)}
	case f.Sliding != nil && (*f.Sliding < 1 || *f.Sliding > maxSize/2):
		return []error{fmt.Errorf("sliding_window is %d; want 1 to %d", *f.Sliding, maxSize/2)}
	case f.Sliding != nil && *f.Sliding != f.windowTokens()/2:
		return []error{fmt.Errorf("sliding_window is %d, but local_attention is %d; want a local_attention of twice "+
			"sliding_window", *f.Sliding, *f.Local)}
	}
	return nil
}

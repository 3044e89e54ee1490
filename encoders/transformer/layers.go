package transformer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// A network may be made of some layers of a model, as a student that is to be trained further (Sanh et al. 2019,
// "DistilBERT, a distilled version of BERT", section 2). Its other parts are the model's.

// choose returns c with the layers of c that have these numbers, in their order, and sets what keys, those of c's
// config.json, have of them.
func (c config) choose(layers []int, keys map[string]json.RawMessage) (config, error) {
	if len(layers) > c.Layers {
		return c, badLayers("%s are listed: the model has %d", plugin.Count(len(layers), "layer"), c.Layers)
	}
	chosen := c
	chosen.Layers, chosen.All, chosen.Chosen, chosen.Local = len(layers), c.Layers, slices.Clone(layers), map[int]bool{}
	for i, number := range layers {
		if number < 0 || number >= c.Layers {
			return c, badLayers("there is no layer %d: the model has %s, numbered from 0 to %d", number,
				plugin.Count(c.Layers, "layer"), c.Layers-1)
		}
		if c.Local[number] {
			chosen.Local[i] = true
		}
	}
	if err := c.checkChosen(chosen); err != nil {
		return c, err
	}

	// config.json
	for _, k := range chosen.layout.keys(&chosen).keys {
		if k.value != any(&chosen.Layers) && !k.each {
			continue
		}
		if k.old { // another key says the same
			delete(keys, k.name)
			continue
		}
		value, err := json.Marshal(reflect.ValueOf(k.value).Elem().Interface())
		if err != nil {
			return c, err
		}
		keys[k.name] = value
		if _, has := keys[k.alias]; has {
			keys[k.alias] = value
		}
	}
	return chosen, nil
}

// checkChosen returns an error if a layer of c that was chosen has other parts than a layer at its new place: the first
// layer of ModernBERT has no norm before attention.
func (c config) checkChosen(chosen config) error {
	was, is := partsOfLayers(c), partsOfLayers(chosen)
	for i, number := range chosen.Chosen {
		if !slices.Equal(was[number], is[i]) {
			return badLayers("layer %d of the model has other parts than a %s encoder has in layer %d: want layer 0 "+
				"first", number, c.layout.name, i)
		}
	}
	return nil
}

// partsOfLayers returns the names of the parameters of each layer, below the layer's, sorted.
func partsOfLayers(c config) [][]string {
	all := make([][]string, c.Layers)
	for _, p := range parametersOf(c) {
		if p.level > 0 && strings.HasPrefix(p.name, layersHere) {
			_, name, _ := strings.Cut(strings.TrimPrefix(p.name, layersHere), ".")
			all[p.level-1] = append(all[p.level-1], name)
		}
	}
	for _, names := range all {
		slices.Sort(names)
	}
	return all
}

func badLayers(format string, args ...any) error {
	return encoders.BadOption("encoder.layers", "encoder: layers: %s", fmt.Sprintf(format, args...))
}

// nameInFile returns the name that a parameter of c has in the model's files, without a prefix.
func (c config) nameInFile(p parameter) string {
	here := ""
	if p.level > 0 {
		here = c.layout.layers + strconv.Itoa(p.level-1) + "."
	}
	if rest, ok := strings.CutPrefix(p.in.name, here); ok && here != "" && c.Chosen != nil {
		return c.layout.layers + strconv.Itoa(c.Chosen[p.level-1]) + "." + rest
	}
	return p.in.name
}

// layerOf returns the number of the layer that a tensor of a file is of, by its name.
func (c config) layerOf(name, prefix string) (number int, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix+c.layout.layers)
	if !ok {
		return 0, false
	}
	text, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= 0 && number < 1<<20
}

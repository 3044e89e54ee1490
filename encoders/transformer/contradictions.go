package transformer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkLayers returns an error for weights of another number of layers than config.json has.
func (w *weights) checkLayers(c config, prefix string) error {
	layers := 0
	for name := range w.tensors {
		rest, ok := strings.CutPrefix(name, prefix+c.layout().layers)
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < 1<<20 {
			layers = max(layers, i+1)
		}
	}
	if layers > 0 && layers != c.Layers {
		return fmt.Errorf("%s: the weights have %d layers, but config.json has %d; want the config.json of these "+
			"weights", w.path, layers, c.Layers)
	}
	return nil
}

// addBiases adds to wrong the biases in the file of parts that have none by config.json: without them the network would
// be another one.
func (w *weights) addBiases(found map[string]matched, wrong *mistakes) {
	names := make([]string, 0, len(found))
	files := map[string]bool{}
	for name, t := range found {
		names, files[t.Name] = append(names, name), true
	}
	slices.Sort(names)
	for _, name := range names {
		part, ok := strings.CutSuffix(found[name].Name, ".weight")
		if !ok {
			continue
		}
		if t, ok := w.tensors[part+".bias"]; ok && !files[t.Name] {
			files[t.Name] = true
			wrong.add(t.file, t.Name, "is a bias of a part that has none by config.json")
		}
	}
}

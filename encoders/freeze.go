package encoders

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/nn"
)

// Lowest returns the lowest of an encoder's levels with a parameter that learns, or one above them all: the embeddings
// are level 0.
func Lowest(levels [][]*nn.Param, learns func(*nn.Param) bool) int {
	for i, level := range levels {
		if slices.ContainsFunc(level, learns) {
			return i
		}
	}
	return len(levels)
}

// FrozenLevels returns how many levels of an encoder stay as they are, of its embeddings and the layers above, by what
// Site.Freeze says.
func FrozenLevels(freeze string, layers int) (int, error) {
	switch freeze {
	case "", "none":
		return 0, nil
	case "embeddings":
		return 1, nil
	case "all":
		return layers + 1, nil
	}
	n, err := strconv.Atoi(freeze)
	if err != nil || n < 0 || n > layers {
		return 0, fmt.Errorf("freeze: %q is not known; there is none, embeddings, all, and a number of layers from 0 to %d",
			freeze, layers)
	}
	return n + 1, nil
}

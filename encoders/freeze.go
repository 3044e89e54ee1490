package encoders

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// What of an encoder Env.Freeze may name besides a number of layers.
const (
	FreezeNone       = "none"       // all of it learns
	FreezeEmbeddings = "embeddings" // the layers learn
	FreezeAll        = "all"        // nothing learns
)

// FreezeWords lists the words that Env.Freeze may be.
func FreezeWords() []string { return []string{FreezeNone, FreezeEmbeddings, FreezeAll} }

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
// Env.Freeze says.
func FrozenLevels(freeze string, layers int) (int, error) {
	switch freeze {
	case "", FreezeNone:
		return 0, nil
	case FreezeEmbeddings:
		return 1, nil
	case FreezeAll:
		return layers + 1, nil
	}
	n, err := strconv.Atoi(freeze)
	if err != nil || n < 0 || n > layers {
		return 0, fmt.Errorf("freeze: %q is not known; there is %s, and a number of layers from 0 to %d", freeze,
			strings.Join(FreezeWords(), ", "), layers)
	}
	return n + 1, nil
}

package encoders

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// The values of Env.Freeze besides a number of layers.
const (
	FreezeNone       = "none"       // everything learns
	FreezeEmbeddings = "embeddings" // the layers learn
	FreezeAll        = "all"        // nothing learns
)

// FreezeWords lists the values of Env.Freeze that are words.
func FreezeWords() []string { return []string{FreezeNone, FreezeEmbeddings, FreezeAll} }

// LowestLearning returns the lowest of an encoder's levels that has a parameter that learns, or len(levels) if there is
// none. The embeddings are level 0.
func LowestLearning(levels [][]*nn.Param, learns func(*nn.Param) bool) int {
	for i, level := range levels {
		if slices.ContainsFunc(level, learns) {
			return i
		}
	}
	return len(levels)
}

// FrozenLevels returns how many of an encoder's levels, the embeddings and the layers above them, Env.Freeze freezes.
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
		return 0, BadOption("freeze", "freeze: %q is not known; available: %s, and a number of layers from 0 to %d",
			freeze, strings.Join(FreezeWords(), ", "), layers)
	}
	return n + 1, nil
}

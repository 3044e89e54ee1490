package encoders

import (
	"fmt"
	"strconv"
)

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
		return 0, fmt.Errorf("freeze: %q is not known; there is none, embeddings, all, and a number of layers from 0 to %d", freeze, layers)
	}
	return n + 1, nil
}

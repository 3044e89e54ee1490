package transformer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/regular"
)

// The largest values in a config.json. The first two are in the tags of Options, too.
const (
	maxLayers = 1 << 10
	maxSize   = 1 << 24 // of every other number
	maxTypes  = 128
)

// minTokens is the length of the longest text that every network takes: a token and two special ones.
const minTokens = 3

// readConfig reads a model's config.json. It returns the network's configuration, and all keys unchanged.
func readConfig(path string) (config, map[string]json.RawMessage, error) {
	data, err := regular.ReadFile(path, jsonfile.MaxConfig)
	if err != nil {
		return config{}, nil, err
	}
	var keys map[string]json.RawMessage
	var kind struct {
		Type *string `json:"model_type"`
	}
	if err := jsonfile.Unmarshal(path, data, &keys); err != nil {
		return config{}, nil, err
	}
	if err := jsonfile.Unmarshal(path, data, &kind); err != nil {
		return config{}, nil, err
	}
	if kind.Type == nil {
		return config{}, nil, fmt.Errorf("%s: no model_type; supported: %s", path, layoutNames())
	}
	l := findLayout(*kind.Type)
	if l == nil {
		return config{}, nil, errUnsupported(path, *kind.Type)
	}

	c, refused, err := l.read(path, data)
	if err != nil {
		return config{}, nil, err
	}
	if len(refused) == 0 {
		if err := c.check(); err != nil {
			refused = append(refused, err)
		}
	}
	for i := range refused {
		refused[i] = fmt.Errorf("%s: %w", path, refused[i])
	}
	return c, keys, errors.Join(refused...)
}

type size struct {
	key        string
	value, max int
}

func refuseSizes(sizes []size) (refused []error) {
	for _, s := range sizes {
		if s.value < 1 || s.value > s.max {
			refused = append(refused, fmt.Errorf("%s is %d; want 1 to %d", s.key, s.value, s.max))
		}
	}
	return refused
}

// refuseActivation returns an error of an activation other than the exact GELU.
func refuseActivation(key, value string) []error {
	if value == "gelu" {
		return nil
	}
	return []error{fmt.Errorf("%s %q is not supported; \"gelu\" is", key, value)}
}

// refuseEpsilon returns an error of a norms' epsilon that divides by zero.
func refuseEpsilon(key string, value float64) []error {
	if value > 0 {
		return nil
	}
	return []error{fmt.Errorf("%s is %v; want a number above 0", key, value)}
}

type number struct {
	key   string
	value float64
}

func refuseNumbers(widthKey string, width int, headsKey string, heads int, dropouts []number) (refused []error) {
	if heads > 0 && width%heads != 0 {
		refused = append(refused, fmt.Errorf("%s %d is not a multiple of %s %d", widthKey, width, headsKey, heads))
	}
	for _, d := range dropouts {
		if d.value < 0 || d.value >= 1 {
			refused = append(refused, fmt.Errorf("%s is %v; want a rate in [0, 1)", d.key, d.value))
		}
	}
	return refused
}

// Package snapshots has what a training keeps to go on later with the same bytes, and its file.
//
// A snapshot and the training that goes on from it are compared by Settings: keys with values, such as seed: 7, which
// the training makes of its plan, its model and its data. A value is text, and names no type of Go. What differs is a
// list of Differences, in the order of the training's settings: where there are any, other bytes would follow, and the
// caller decides whether it goes on all the same.
package snapshots

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime/debug"
	"slices"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/nn"
)

// Snapshot is all that a training needs to continue with the same bytes: parameters and the optimizer's state, the
// state of sampler and weighting, random streams, and the progress. It does not hold the active rows of tables, nor a
// frozen encoder's states: both follow from the rest.
type Snapshot struct {
	Settings  []Setting       `json:"of"` // of model, data and plan
	Progress  json.RawMessage `json:"progress"`
	Sampler   []byte          `json:"sampler,omitempty"`
	Weighting []byte          `json:"weighting,omitempty"`
	Losses    []byte          `json:"losses"` // usual losses of the heads
	// Built are checksums of the parameters without gradients before training, by their names.
	Built    map[string]string `json:"built,omitempty"`
	Attached []byte            `json:"attached,omitempty"` // by the caller
	Kinds    []Kind            `json:"-"`
}

// Kind is the parameters of one kind, such as those of the model, with what the optimizer keeps of them.
type Kind struct {
	Name   string
	Params []nn.ParamState
}

// Setting is a setting that must be the same in a snapshot and in the training that goes on from it.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Of    What   `json:"what,omitempty"`
}

// What is what a Setting is of.
type What int

// What settings are of.
const (
	OfPlan  What = iota // the plan or the model
	OfSteps             // the number of updates, which follows from the plan and the data
	OfData              // the examples of a group of tasks
)

// Value returns the value of a key, "" if there is none.
func Value(settings []Setting, key string) string {
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return ""
	}
	return settings[i].Value
}

// Difference is a setting of which a training has another value than a snapshot.
type Difference struct {
	Key      string
	Was, Now string // in the snapshot, in the training; "": it has no such setting
	Of       What
}

// Differences returns the settings that were, and are now, of other values, in the order of those that are now.
func Differences(were, are []Setting) []Difference {
	var all []Difference
	for _, now := range are {
		if was := Value(were, now.Key); was != now.Value {
			all = append(all, Difference{now.Key, was, now.Value, now.Of})
		}
	}
	for _, was := range were { // those that are no more
		gone := !slices.ContainsFunc(are, func(s Setting) bool { return s.Key == was.Key })
		if gone && was.Value != "" {
			all = append(all, Difference{was.Key, was.Value, "", was.Of})
		}
	}
	return all
}

// Sum returns a checksum of the values of parameters, which may be those of a file: reading them is a fault if
// the file was truncated.
func Sum(params []*nn.Param) (sum string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if _, fault := r.(interface{ Addr() uintptr }); fault {
			err = errors.New("their file was truncated")
		} else if r != nil {
			panic(r)
		}
	}()
	crc, room := uint32(0), make([]byte, 1<<16)
	for _, w := range params {
		for part := range slices.Chunk(w.Data, len(room)/4) {
			for i, v := range part {
				binary.LittleEndian.PutUint32(room[4*i:], math.Float32bits(v))
			}
			crc = crc32.Update(crc, files.CRC32C, room[:4*len(part)])
		}
	}
	return fmt.Sprintf("%08x", crc), nil
}

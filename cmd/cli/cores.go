package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// place is where a process runs.
type place struct {
	Host  string `json:"host"`
	Cores []int  `json:"cores"` // that it may run on; nil: that is not known
}

// here returns the place of this process.
func here() place {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return place{host, affinity()}
}

// sharesCores reports whether processes at two places may run on the same core.
func (p place) sharesCores(other place) bool {
	return p.Host == other.Host && (p.Cores == nil || other.Cores == nil ||
		slices.ContainsFunc(p.Cores, func(core int) bool { return slices.Contains(other.Cores, core) }))
}

// encode returns the text that decodePlaces reads.
func (p place) encode() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("cli: %v", err))
	}
	return text
}

func decodePlaces(texts [][]byte) ([]place, error) {
	all := make([]place, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("the place of rank %d: %w", rank, err)
		}
	}
	return all, nil
}

// forMessages is the number of goroutines that run beside the kernels at once: the library's, and those that wait for
// messages.
const forMessages = 3

// divideCores makes this process use its cores divided by the number of processes that share them, or as many threads
// as --threads says, 0 without it.
func divideCores(threads, sharing int) {
	if threads == 0 { // GOMAXPROCS follows the affinity mask and the limits of a container
		kernel.SetThreads(max(1, runtime.GOMAXPROCS(0)/sharing))
	}
	// messages do not wait until kernels leave a processor
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), kernel.Threads()+forMessages))
}

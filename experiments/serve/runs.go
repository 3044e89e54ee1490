package serve

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

// liveRun is a run that is served. Its model may be replaced.
type liveRun struct {
	name, folder string
	explains     slots

	mu     sync.RWMutex
	used   *used
	closed bool
}

// used is a model, and the requests that use it.
type used struct {
	*predict.Model
	requests sync.WaitGroup
}

// openRuns opens the runs in folders, each under the folder's name.
func openRuns(folders []string, o predict.Options) (runs []*liveRun, err error) {
	for _, folder := range folders {
		name := filepath.Base(filepath.Clean(folder))
		if name == "." || name == string(filepath.Separator) {
			if whole, absErr := filepath.Abs(folder); absErr == nil {
				name = filepath.Base(whole)
			}
		}
		r := &liveRun{name: name, folder: folder, explains: newSlots(maxExplanations, o.MaxWaiting)}
		if at := slices.IndexFunc(runs, func(other *liveRun) bool { return other.name == name }); at >= 0 {
			err = fmt.Errorf("%s and %s: both runs are called %q; name a symbolic link "+
				"of another name in place of one", runs[at].folder, folder,
				name)
		} else {
			_, err = r.open(o)
		}
		if err != nil {
			return nil, errors.Join(err, closeRuns(runs))
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// open opens the run's folder, in place of the model that is open, nil for the first, which the caller closes.
func (r *liveRun) open(o predict.Options) (before *used, err error) {
	m, err := predict.Open(r.folder, o)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.used = r.used, &used{Model: m}
	return before, nil
}

// close closes the model once the requests that use it have ended.
func (u *used) close() error {
	u.requests.Wait()
	return u.Model.Close()
}

// use returns the run's model. The caller calls done in the end. After closeRuns, as in a request that outlived the
// server's timeout, the model answers nothing.
func (r *liveRun) use() (m *predict.Model, done func()) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return r.used.Model, func() {}
	}
	r.used.requests.Add(1)
	return r.used.Model, r.used.requests.Done
}

func closeRuns(runs []*liveRun) error {
	var all []error
	for _, r := range runs {
		r.mu.Lock()
		u := r.used
		r.closed = true
		r.mu.Unlock()
		all = append(all, u.close())
	}
	return errors.Join(all...)
}

// find returns the run with a name, the only one for "". Its errors are those of a request.
func find(runs []*liveRun, name string) (*liveRun, error) {
	if name == "" && len(runs) == 1 {
		return runs[0], nil
	}
	var names []string
	for _, r := range runs {
		if r.name == name {
			return r, nil
		}
		names = append(names, r.name)
	}
	if name == "" {
		return nil, mistake(http.StatusBadRequest, "several runs are served; want run: %s", strings.Join(names, " or "))
	}
	return nil, mistake(http.StatusNotFound, "no run %q%s", name, nearest(name, names))
}

// nearest returns what to write in place of a name, among names.
func nearest(name string, names []string) string {
	if similar, ok := suggest.Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", similar)
	}
	return "; want " + strings.Join(names, ", ")
}

package serve

import (
	"errors"
	"net/http"
)

// Errors of a reload while another goes on, and after Close.
var (
	errReloading = errors.New("the runs are being opened again")
	errEnds      = errors.New("the server ends")
)

// Reload opens all runs again, which may have been trained further, and returns when the models before are closed.
// Requests at that time are answered by the one or the other model. A run that cannot be opened is still served as it
// was. While another reload goes on, Reload waits for its end: that one may have opened what was there before.
func (s *Server) Reload() error {
	s.reload.Lock()
	defer s.reload.Unlock()
	return s.openAgain()
}

// openAgain is Reload. The caller has locked it.
func (s *Server) openAgain() error {
	if s.closed {
		return errEnds
	}
	var all []error
	for _, r := range s.runs {
		before, err := r.open(s.options.Model)
		if err != nil {
			s.options.Log.Error("a run cannot be opened again, and is served as it was", "run", r.name, "error", err)
			all = append(all, err)
			continue
		}
		s.options.Log.Info("a run was opened again", "run", r.name)
		s.warn(r)
		if err := before.close(); err != nil {
			s.options.Log.Error("the model before cannot be closed", "run", r.name, "error", err)
		}
	}
	return errors.Join(all...)
}

// warn writes what a user of a run should know to the log.
func (s *Server) warn(r *liveRun) {
	m, done := r.use()
	defer done()
	for _, warning := range m.Warnings() {
		s.options.Log.Warn("a run has a warning", "run", r.name, "warning", warning)
	}
}

// reloadNow answers POST /v1/reload.
func (s *Server) reloadNow(*http.Request) (any, error) {
	if !s.reload.TryLock() {
		return nil, mistake(http.StatusConflict, "%w", errReloading)
	}
	defer s.reload.Unlock()
	if err := s.openAgain(); err != nil {
		return nil, mistake(http.StatusConflict, "%w", err)
	}
	return s.tasks(nil)
}

package predict

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// closing is an encoder that counts the calls of Close, which return err.
type closing struct {
	encoders.Encoder
	closed int
	err    error
}

func (c *closing) Describe() encoders.Description {
	d := c.Encoder.Describe()
	d.Close = func() error {
		c.closed++
		return c.err
	}
	return d
}

// unclosed is an encoder that holds nothing to be released.
type unclosed struct{ encoders.Encoder }

func (e unclosed) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Close = nil
	return d
}

func TestCloseClosesTheEncoder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	opened, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	embedder, err := OpenEmbedder(t.Context(), folder, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opened.Close(), embedder.Close()); err != nil {
		t.Fatal(err)
	}

	holding := &closing{Encoder: opened.Model.Encoder, err: errors.New("still read")}
	opened.Model.Encoder, embedder.encoder = holding, holding
	for n, closeIt := range []func() error{opened.Close, embedder.Close} {
		if err := closeIt(); err != holding.err || holding.closed != n+1 {
			t.Errorf("Close = %v after %d calls of the encoder's, want its error after %d", err, holding.closed, n+1)
		}
	}
	opened.Model.Encoder = unclosed{holding}
	if err := opened.Close(); err != nil || holding.closed != 2 {
		t.Errorf("Close of a run whose encoder has no Close = %v", err)
	}
}

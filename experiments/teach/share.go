package teach

import (
	"errors"
	"io"
	"os"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/collective"
)

// shareBytes is how many bytes of a file the first process sends at once.
const shareBytes = 16 << 20

// share sends a file of the first of several processes, which has it open, or err, to the others. They return a
// temporary file with its content, which is deleted when it is closed.
func share(ranks *collective.Group, f *os.File, err error) (*os.File, error) {
	rank, _ := ranks.Rank()
	text := ""
	if err != nil {
		text = err.Error()
	}
	texts, gathered := collective.Gather(ranks, text)
	switch {
	case gathered != nil:
		return nil, errors.Join(err, gathered)
	case texts[0] != "" && rank == 0:
		return nil, err
	case texts[0] != "":
		return nil, errors.New("the first process: " + texts[0])
	}
	if rank > 0 {
		if f, err = os.CreateTemp("", runfolder.StatesPattern); err == nil {
			os.Remove(f.Name()) // where the system allows it, it is deleted even if the program is killed
		}
	}
	for at := int64(0); ; at += shareBytes {
		var chunk []byte
		if rank == 0 && err == nil {
			chunk = make([]byte, shareBytes)
			n, failed := f.ReadAt(chunk, at)
			if chunk = chunk[:n]; failed != nil && failed != io.EOF {
				err = failed
			}
		}
		chunks, failed := ranks.AllGather(chunk)
		if failed != nil {
			return f, errors.Join(err, failed)
		}
		if rank > 0 && err == nil {
			_, err = f.WriteAt(chunks[0], at)
		}
		if len(chunks[0]) < shareBytes {
			return f, err
		}
	}
}

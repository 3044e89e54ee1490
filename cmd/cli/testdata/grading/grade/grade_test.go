package grade

import (
	"testing"

	"github.com/jenga-nlp/jenga/parttest"
)

func TestKind(t *testing.T) { parttest.Output(t, Kind) }

func TestHead(t *testing.T) { parttest.Head(t, "thresholds", "dropout: 0.2") }

func TestTask(t *testing.T) { parttest.Task(t, "grading", "") }

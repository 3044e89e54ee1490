package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jenga-nlp/jenga/plugin"
)

func TestErrorsOfLibrariesNameFlags(t *testing.T) {
	force, base := plugin.Argument("force"), plugin.Argument("base")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("as it is"), "as it is"},
		{fmt.Errorf("runs/a holds a run: %w replaces it", force), "runs/a holds a run: --force replaces it"},
		{usageError{fmt.Errorf("%w: none; %w", base, errors.Join(errors.New("a"), fmt.Errorf("b: %w", force)))},
			"--base: none; a\nb: --force"},
		{withFlags(fmt.Errorf("%w: once", force)), "--force: once"},
	} {
		got := withFlags(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("withFlags(%v) = %v, want %s", c.err, got, c.want)
		}
	}
}

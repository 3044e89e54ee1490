package runfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSplitsIsBounded(t *testing.T) {
	run := t.TempDir()
	line := `{"tasks":["a"],"split":"dev","file":"a.csv","lines":[2,3]}` + "\n"
	path := filepath.Join(run, SplitsFile)
	if err := os.WriteFile(path, []byte(line+line), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(most int64) { maxSplits = most }(maxSplits)
	for most, want := range map[int64]string{int64(2 * len(line)): "", int64(len(line)): path + ": it has more than "} {
		records := 0
		maxSplits = most
		err := ReadSplits(run, func(line SplitLine) error {
			for range line.Records() {
				records++
			}
			return nil
		})
		if want == "" && (err != nil || records != 4) ||
			want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("of at most %d bytes: %d records, %v; want %q", most, records, err, want)
		}
	}
}

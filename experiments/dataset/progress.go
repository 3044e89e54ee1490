package dataset

// Progress is how far a pass over streamed training data has come.
type Progress struct {
	Pass     string // what it reads
	Done, Of int    // examples, or KiB of the file where their number is not known
}

// Watch receives the progress of passes over streamed training data. Its error ends the pass.
type Watch func(Progress) error

// progressEvery is how many examples a pass reads between two reports.
const progressEvery = 1000

// begin begins a pass.
func (d *Dataset) begin(pass string) { d.pass = pass }

// progressed reports after example number n that the pass has come so far.
func (d *Dataset) progressed(n, done, of int) error {
	if d.watch == nil || n%progressEvery != 0 && done != of {
		return nil
	}
	return d.watch(Progress{d.pass, done, of})
}

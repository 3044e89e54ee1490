// Package parttest checks parts: whoever writes a head, a fusion, a task, an encoder or a kind of outputs tests it by
// one line.
//
//	func TestMaxPool(t *testing.T) { parttest.Head(t, "max_pool", "dropout: 0.2") }
//
// A part is found by the name it is registered under; its options are written as in an experiment file. Each rule that
// a part has to keep is a subtest that is named after it. The data is made up: a few short texts whose hidden states
// tell their labels, so that a part that can learn does so in a second; an encoder reads texts of arbitrary tokens.
package parttest

// Package parttest checks parts: the author of a head, a fusion, a task, an encoder, a sampler, a weighting or a kind
// of outputs tests it with one line.
//
//	func TestMaxPool(t *testing.T) { parttest.Head(t, "max_pool", "dropout: 0.2") }
//
// A part is found by the name it is registered under; its options are written as in an experiment file. Each rule that
// a part has to keep is a subtest named after it. The data is synthetic: a few short texts whose hidden states signal
// their labels, so that a part that can learn does so in a second; an encoder reads texts of arbitrary tokens. Samplers
// and weightings choose and weigh without a model.
package parttest

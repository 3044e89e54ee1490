// Package experiments holds the experiment files that come with jenga. Its subpackages read, train and open such files.
package experiments

import "embed"

// Shipped holds the experiment files that come with jenga, and the notes that the quickstart and claims.yaml train on.
//
//go:embed *.yaml claims/*.jsonl claims/*.jsonl.gz claims/*/*.jsonl.gz
var Shipped embed.FS

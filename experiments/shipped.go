package experiments

import "embed"

// Shipped holds the experiment files that come with jenga, and the notes that the quickstart trains on.
//
//go:embed *.yaml claims/*.jsonl
var Shipped embed.FS

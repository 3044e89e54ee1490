//go:build !unix

package cli

import "os"

// hangup is the signal that reloads a server: there is none.
var hangup os.Signal

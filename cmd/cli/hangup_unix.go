//go:build unix

package cli

import (
	"os"
	"syscall"
)

// hangup is the signal that reloads a server.
var hangup os.Signal = syscall.SIGHUP

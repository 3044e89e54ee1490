//go:build !mpi || !(linux || darwin) || !(amd64 || arm64)

package mpi

import "os"

// Built reports whether the program can use an MPI library.
const Built = false

// Start returns ErrNotBuilt.
func Start() (World, error) { return nil, ErrNotBuilt }

// Exit ends the process.
func Exit(status int) { os.Exit(status) }

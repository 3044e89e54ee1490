//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"compress/gzip"
	"embed"
	"io"
	"path"
	"slices"
	"strings"
)

// ptx has the kernels, compiled for an architecture by NVRTC: a file of a folder for each of kernels.
//
//go:embed ptx
var ptx embed.FS

// oldestDriver is the version of CUDA that a driver must support to compile the files of ptx, as cuDriverGetVersion
// returns it. They are PTX 8.2, of CUDA 12.2.
const oldestDriver = 12020

// The folders of ptx. Code of sm_80 runs on all GPUs of compute capability 8.0 and later, that of sm_90a on 9.0 alone.
const (
	ampere = "sm_80"
	hopper = "sm_90a"
)

// readModule returns the PTX of a file of kernels.
func readModule(file string) ([]byte, error) {
	f, err := ptx.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// moduleFiles lists the files of the kernels for a compute capability, one for each file of kernels.
func moduleFiles(major, minor int) []string {
	folders := []string{ampere}
	if major == 9 && minor == 0 {
		folders = []string{hopper, ampere}
	}
	var files, names []string
	for _, folder := range folders {
		entries, err := ptx.ReadDir(path.Join("ptx", folder))
		if err != nil {
			continue // no kernel has code of this architecture
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasSuffix(name, ".ptx.gz") && !slices.Contains(names, name) {
				names = append(names, name)
				files = append(files, path.Join("ptx", folder, name))
			}
		}
	}
	return files
}

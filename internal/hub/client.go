// Package hub downloads models of the Hugging Face hub into the cache of huggingface_hub (package hubcache). It takes
// nothing that the server states on trust: lengths and checksums are compared, sizes are bounded, and names of files
// stay in the cache. Pickles, which run code when they are opened, are never downloaded.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

// Event is a step of a download.
type Event struct {
	File       string // the file that is downloaded
	Done, Size int64  // bytes of it
	Note       string // a line for the user, such as that a request is repeated; the other fields are empty
}

// Client downloads models from one hub into one cache.
type Client struct {
	endpoint *url.URL
	token    string // "" for none
	root     string // folder of the cache
	report   func(Event)
	http     *http.Client

	// replaced in tests
	wait  func(ctx context.Context, d time.Duration) error
	stall time.Duration // a response that sends nothing for so long is given up
	write func(f *os.File, data []byte) (int, error)
}

const (
	defaultEndpoint = "https://huggingface.co"
	stallTimeout    = time.Minute
	connectTimeout  = 30 * time.Second
)

// New returns a client for the hub, token and cache that the variables of huggingface_hub name: HF_ENDPOINT, HF_TOKEN
// or the file of the token, HF_HOME and HF_HUB_CACHE. report receives the steps of downloads.
func New(report func(Event)) (*Client, error) {
	for _, name := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		if isTrue(os.Getenv(name)) {
			return nil, fmt.Errorf("%s=%s forbids downloads; unset it", name, os.Getenv(name))
		}
	}
	endpoint, err := endpointOf(os.Getenv("HF_ENDPOINT"))
	if err != nil {
		return nil, err
	}
	root, err := hubcache.Root()
	if err != nil {
		return nil, err
	}
	token, err := findToken()
	if err != nil {
		return nil, err
	}

	c := &Client{endpoint: endpoint, token: token, root: root, report: report,
		wait: hubcache.Wait, stall: stallTimeout, write: (*os.File).Write}
	c.http = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
			return connection{conn, c}, err
		},
		TLSHandshakeTimeout: connectTimeout, MaxResponseHeaderBytes: 1 << 20,
	}}
	return c, nil
}

// isTrue reports whether a variable is set to one of the words that huggingface_hub takes for true.
func isTrue(text string) bool {
	switch strings.ToUpper(text) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// endpointOf returns the address of the hub that text, HF_ENDPOINT, states.
func endpointOf(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(cmp.Or(text, defaultEndpoint), "/"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("HF_ENDPOINT=%q: want the address of a hub, such as %s", text, defaultEndpoint)
	}
	return u, nil
}

// findToken returns the user's token for the hub, "" if there is none: HF_TOKEN, else the content of the file
// HF_TOKEN_PATH, which is token in [hubcache.Home] by default.
func findToken() (string, error) {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if token := strings.TrimSpace(os.Getenv(name)); token != "" {
			return token, checkToken(name, token)
		}
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home, err := hubcache.Home()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, "token")
	}
	if isTrue(os.Getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return "", nil
	}
	const maxToken = 4 << 10
	text, err := files.ReadFile(path, maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	return token, checkToken(path, token)
}

// checkToken returns an error if a token has characters that a header cannot hold. The error does not repeat the token.
func checkToken(from, token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s: a token has no blanks and none but ASCII characters; want one such as hf_…", from)
	}
	return nil
}

// note reports a line for the user.
func (c *Client) note(format string, args ...any) {
	c.report(Event{Note: fmt.Sprintf(format, args...)})
}

// Pulled is a model that is in the cache.
type Pulled struct {
	Folder string // of its files
	Commit string
	Files  int
	Bytes  int64
}

// Pull downloads config, weights and tokenizer of a model into the cache: its safetensors, or with onnx its ONNX graph.
// Files that the cache has are not downloaded again. The revision refers to the new files once all are complete.
func (c *Client) Pull(ctx context.Context, m hubcache.Model, onnx bool) (Pulled, error) {
	commit, names, err := c.contents(ctx, m)
	if err != nil {
		return Pulled{}, err
	}
	files, err := choose(m, names, onnx)
	if err != nil {
		return Pulled{}, err
	}
	repo := hubcache.NewRepo(c.root, m.Name)
	blobs, err := c.fetchAll(ctx, repo, m, commit, files)
	if err != nil {
		return Pulled{}, err
	}

	// the weights that an index names
	if last := blobs[len(blobs)-1]; last.name == indexFile {
		parts, err := shards(repo.Blob(last.etag), names)
		if err != nil {
			return Pulled{}, err
		}
		more, err := c.fetchAll(ctx, repo, m, commit, parts)
		if err != nil {
			return Pulled{}, err
		}
		blobs = append(blobs, more...)
	}

	done := Pulled{Folder: repo.Snapshot(commit), Commit: commit, Files: len(blobs)}
	for _, b := range blobs {
		done.Bytes += b.size
		for _, name := range []string{b.name, b.alias} {
			if name == "" {
				continue
			}
			if err := repo.Link(commit, name, b.etag); err != nil {
				return Pulled{}, err
			}
		}
	}
	done.Folder, err = filepath.Abs(done.Folder)
	return done, errors.Join(err, repo.SetCommit(m.Revision, commit))
}

// fetchAll downloads files into the cache unless they are there already.
func (c *Client) fetchAll(ctx context.Context, repo hubcache.Repo, m hubcache.Model, commit string, files []file) (
	[]blob, error) {
	blobs := make([]blob, len(files))
	for i, f := range files {
		escaped := (&url.URL{Path: f.name}).EscapedPath()
		address := c.address(m.Name, "resolve", commit, escaped)
		b, err := c.stat(ctx, address, f)
		if err == nil {
			err = c.download(ctx, repo, b)
		}
		if err != nil {
			return nil, c.explainAccess(m, err)
		}
		blobs[i] = b
	}
	return blobs, nil
}

package hub

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"

	"github.com/jenga-nlp/jenga/internal/hubcache"
)

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

// fetchAll downloads files of a commit.
func (c *Client) fetchAll(ctx context.Context, repo hubcache.Repo, m hubcache.Model, commit string, files []file) (
	[]blob, error) {
	blobs := make([]blob, len(files))
	for i, f := range files {
		escaped := (&url.URL{Path: f.name}).EscapedPath()
		address := c.address(m.Name, "resolve", commit, escaped)
		b, err := c.fetch(ctx, repo, address, f)
		if err != nil {
			return nil, c.explainAccess(m, err)
		}
		blobs[i] = b
	}
	return blobs, nil
}

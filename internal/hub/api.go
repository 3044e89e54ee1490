package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

const (
	maxList     = 16 << 20 // bytes of a response of the API
	maxFiles    = 100_000  // in a model's list
	listTimeout = 2 * time.Minute
)

// contents are what the hub states about a revision of a model.
type contents struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name string `json:"rfilename"`
	} `json:"siblings"`
}

// contents returns the commit of a revision and the names of its files.
func (c *Client) contents(ctx context.Context, m hubcache.Model) (commit string, names []string, err error) {
	var found contents
	err = c.getJSON(ctx, c.address("api", "models", m.Name, "revision", url.PathEscape(m.Revision)), &found)
	if err != nil {
		return "", nil, c.explain(ctx, m, err)
	}
	host := c.endpoint.Host
	switch {
	case !hubcache.IsCommit(found.Commit):
		return "", nil, fmt.Errorf("%s: the commit of %s is %.100q; want a hash of 40 digits", host, m, found.Commit)
	case hubcache.IsCommit(m.Revision) && m.Revision != found.Commit:
		return "", nil, fmt.Errorf("%s: the commit of %s is %s, another one", host, m, found.Commit)
	case len(found.Files) > maxFiles:
		return "", nil, fmt.Errorf("%s: %s has %d files; at most %d are read", host, m, len(found.Files), maxFiles)
	}
	for _, file := range found.Files {
		if err := hubcache.CheckFile(file.Name); err != nil {
			return "", nil, fmt.Errorf("%s: a file of %s: %w", host, m, err)
		}
		names = append(names, file.Name)
	}
	return found.Commit, names, nil
}

// address returns an address on the hub. The parts are escaped where they need it, but for slashes.
func (c *Client) address(parts ...string) string {
	return c.endpoint.String() + "/" + strings.Join(parts, "/")
}

// getJSON reads the object at an address of the API.
func (c *Client) getJSON(ctx context.Context, address string, into any) error {
	return c.retry(ctx, func() error {
		limited, cancel := context.WithTimeoutCause(ctx, listTimeout, errStalled)
		defer cancel()
		r, err := c.send(limited, http.MethodGet, address, nil, true)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if err := c.checkStatus(r); err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(r.Body, maxList+1))
		if err != nil {
			return requestError(limited, r.Request.URL, err)
		}
		if len(data) > maxList {
			return fmt.Errorf("%s: more than %d bytes, which is the most that is read", address, maxList)
		}
		return files.UnmarshalJSON(address, data, into)
	})
}

// explain returns the error for a model whose contents the hub does not give, with what would work.
func (c *Client) explain(ctx context.Context, m hubcache.Model, err error) error {
	var status statusError
	if !errors.As(err, &status) {
		return err
	}
	switch code := status.Header.Get("X-Error-Code"); {
	case code == "RevisionNotFound":
		return c.unknownRevision(ctx, m)
	case code != gated && status.StatusCode == http.StatusUnauthorized && c.token == "":
		// the hub's response for names that do not exist, too
		return fmt.Errorf("%s has no public model %q; set HF_TOKEN if it is a private one%s", c.endpoint.Host, m.Name,
			similar(m.Name))
	case status.StatusCode == http.StatusNotFound && m.Revision != hubcache.DefaultRevision && code != "RepoNotFound":
		return fmt.Errorf("%s has no model %q, or no revision %q of it%s", c.endpoint.Host, m.Name, m.Revision,
			similar(m.Name))
	case status.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s has no model %q%s", c.endpoint.Host, m.Name, similar(m.Name))
	}
	return c.explainAccess(m, err)
}

// gated is the hub's code for a model whose terms the user has not accepted. Its list of files may be public.
const gated = "GatedRepo"

// explainAccess returns the error for a model or a file of it to which the hub gives no access, with what would work.
func (c *Client) explainAccess(m hubcache.Model, err error) error {
	var status statusError
	if !errors.As(err, &status) || !c.isHub(status.Request.URL) {
		return err
	}
	refused := status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden
	switch code := status.Header.Get("X-Error-Code"); {
	case code == gated && c.token == "":
		return fmt.Errorf("%s is only for users who accepted its terms: accept them at %s, and set HF_TOKEN", m.Name,
			c.address(m.Name))
	case code == gated:
		return fmt.Errorf("%s is only for users who accepted its terms; the token's user can do so at %s", m.Name,
			c.address(m.Name))
	case refused && c.token == "":
		return fmt.Errorf("%w: %s is not public; set HF_TOKEN", err, m.Name)
	case refused:
		return fmt.Errorf("%w: no access to %s; check HF_TOKEN, or the file of the token, and the name%s", err, m.Name,
			similar(m.Name))
	}
	return err
}

// usualModels are encoders that jenga reads, for suggestions.
var usualModels = []string{
	"distilbert-base-uncased", "distilbert-base-cased", "distilbert-base-multilingual-cased", "bert-base-uncased",
	"bert-base-cased", "bert-large-uncased", "bert-large-cased", "bert-base-multilingual-cased",
	"distilbert/distilbert-base-uncased", "google-bert/bert-base-uncased", "google-bert/bert-base-cased",
	"sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L12-v2",
	"microsoft/MiniLM-L12-H384-uncased",
}

// similar returns the end of an error: the model whose name is like an unknown one, if there is one.
func similar(name string) string {
	if found, ok := suggest.Nearest(name, usualModels); ok && found != name {
		return fmt.Sprintf("; did you mean %q?", found)
	}
	return ""
}

// unknownRevision returns the error for a revision that a model does not have, with those it has.
func (c *Client) unknownRevision(ctx context.Context, m hubcache.Model) error {
	text := fmt.Sprintf("%s has no revision %q", m.Name, m.Revision)
	type ref struct {
		Name string `json:"name"`
	}
	var refs struct {
		Branches []ref `json:"branches"`
		Tags     []ref `json:"tags"`
	}
	if err := c.getJSON(ctx, c.address("api", "models", m.Name, "refs"), &refs); err != nil {
		return errors.New(text)
	}
	var names []string
	for _, r := range append(refs.Branches, refs.Tags...) {
		if one, err := hubcache.Parse(m.Name + "@" + r.Name); err == nil {
			names = append(names, one.Revision)
		}
	}
	slices.Sort(names)
	between := "; "
	if found, ok := suggest.Nearest(m.Revision, names); ok {
		text, between = fmt.Sprintf("%s; did you mean %q?", text, found), " "
	}
	const shown = 10
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	if len(names) > 0 {
		text += between + "available: " + strings.Join(names, ", ")
	}
	return errors.New(text)
}

const (
	maxTextFile = 64 << 20 // bytes of a config, a tokenizer or an index: the most that their readers accept
	maxWeights  = 64 << 30 // bytes of one file of weights
	maxShards   = 1000
)

const (
	configFile = "config.json"
	singleFile = "model.safetensors"
	indexFile  = singleFile + ".index.json"
	graphFile  = "model.onnx"
)

// tokenizerFiles are the files from which tokenizers are made, here or in transformers.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json",
	"added_tokens.json",
}

// file is a file of a model to download.
type file struct {
	name  string // on the hub: a path with slashes
	alias string // a second name in the snapshot, "" for none
	limit int64  // bytes at most
}

// choose returns the files of a model to download, out of the names of all. Of sharded weights it returns the index
// alone.
func choose(m hubcache.Model, names []string, onnx bool) ([]file, error) {
	var files []file
	for _, name := range append([]string{configFile}, tokenizerFiles...) {
		if slices.Contains(names, name) {
			files = append(files, file{name: name, limit: maxTextFile})
		}
	}
	if len(files) == 0 || files[0].name != configFile {
		return nil, fmt.Errorf("%s has no %s: it is no model of transformers", m, configFile)
	}
	if onnx {
		graph, err := chooseGraph(m, names)
		return append(files, graph...), err
	}
	switch {
	case slices.Contains(names, singleFile):
		return append(files, file{name: singleFile, limit: maxWeights}), nil
	case slices.Contains(names, indexFile):
		return append(files, file{name: indexFile, limit: maxTextFile}), nil
	}
	return nil, noWeights(m, names)
}

// chooseGraph returns the files of an ONNX graph: that of the model's folder, else that of the folder onnx, which gets
// a second name beside the config and the tokenizer, where readers look for it. A graph of more than 2 GB has its
// tensors in a second file.
func chooseGraph(m hubcache.Model, names []string) ([]file, error) {
	for _, folder := range []string{"", "onnx"} {
		if !slices.Contains(names, path.Join(folder, graphFile)) {
			continue
		}
		var files []file
		for _, base := range []string{graphFile, graphFile + "_data", graphFile + ".data"} {
			name := path.Join(folder, base)
			if !slices.Contains(names, name) {
				continue
			}
			f := file{name: name, limit: maxWeights}
			if name != base {
				f.alias = base
			}
			files = append(files, f)
		}
		return files, nil
	}
	err := fmt.Errorf("%s has no %s and no onnx/%s", m, graphFile, graphFile)
	if slices.Contains(names, singleFile) || slices.Contains(names, indexFile) {
		return nil, fmt.Errorf("%w; %w", err, ErrHasSafetensors)
	}
	return nil, err
}

// Errors of Pull for a model whose weights have the other format than the one that is asked for.
var (
	ErrHasSafetensors = errors.New("it has safetensors")
	ErrHasGraph       = errors.New("it has an ONNX graph")
)

// noWeights returns the error for a model without safetensors, by the names of its files.
func noWeights(m hubcache.Model, names []string) error {
	err := fmt.Errorf("%s has no %s and no %s", m, singleFile, indexFile)
	pickle := slices.IndexFunc(names, func(name string) bool {
		return slices.Contains([]string{".bin", ".pt", ".pth", ".pkl", ".ckpt"}, strings.ToLower(path.Ext(name)))
	})
	if pickle >= 0 {
		err = fmt.Errorf("%s has no safetensors, only pickles such as %q, which are not downloaded because they can run "+
			"code; a pull request of the model often has safetensors: %s@refs/pr/1; or in Python, transformers' "+
			"AutoModel.from_pretrained(%q).save_pretrained(FOLDER) writes them", m, names[pickle], m.Name, m.Name)
	}
	if slices.Contains(names, graphFile) || slices.Contains(names, "onnx/"+graphFile) {
		return fmt.Errorf("%w; %w", err, ErrHasGraph)
	}
	return err
}

// shards returns the files of sharded weights that an index, the file at path, names: files of the model, in the
// folder of the index.
func shards(path string, names []string) ([]file, error) {
	var index struct {
		Map map[string]string `json:"weight_map"` // tensor to file
	}
	if err := files.ReadJSON(path, maxTextFile, &index); err != nil {
		return nil, err
	}
	var files []file
	for _, name := range slices.Compact(slices.Sorted(maps.Values(index.Map))) {
		if strings.Contains(name, "/") || !strings.HasSuffix(name, ".safetensors") || hubcache.CheckFile(name) != nil {
			return nil, fmt.Errorf("%s: weight_map names %.200q; want a .safetensors file beside the index", path, name)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s: weight_map names %q, which the model does not have", path, name)
		}
		files = append(files, file{name: name, limit: maxWeights})
	}
	if len(files) == 0 || len(files) > maxShards {
		return nil, fmt.Errorf("%s: weight_map names %d files; want 1 to %d", path, len(files), maxShards)
	}
	return files, nil
}

package hub

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

func TestClientFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		env, file string // variables, and the content of the token's file
		token     string
		want      string // the error
	}{
		{"", "", "", ""},
		{"", "hf_file\n", "hf_file", ""},
		{"HF_TOKEN=hf_variable", "hf_file", "hf_variable", ""},
		{"HUGGING_FACE_HUB_TOKEN=hf_old", "hf_file", "hf_old", ""},
		{"HF_HUB_DISABLE_IMPLICIT_TOKEN=1", "hf_file", "", ""},
		{"HF_TOKEN_PATH=/no/such/file", "hf_file", "", ""},
		{"", "hf_a\nhf_b", "", "TOKEN: a token has no blanks and none but ASCII characters; want one such as hf_…"},
		{"HF_HUB_OFFLINE=1", "", "", "HF_HUB_OFFLINE=1 forbids downloads; unset it"},
		{"TRANSFORMERS_OFFLINE=yes", "", "", "TRANSFORMERS_OFFLINE=yes forbids downloads; unset it"},
		{"HF_HUB_OFFLINE=0", "", "", ""},
		{"HF_ENDPOINT=hub.example.com", "", "",
			`HF_ENDPOINT="hub.example.com": want the address of a hub, such as https://huggingface.co`},
		{"HF_ENDPOINT=file:///etc", "", "",
			`HF_ENDPOINT="file:///etc": want the address of a hub, such as https://huggingface.co`},
	} {
		t.Run(c.env+" "+c.file, func(t *testing.T) {
			hubtest.New(t, nil)
			for setting := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			path := filepath.Join(os.Getenv("HF_HOME"), "token")
			if c.file != "" {
				if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			client, err := New(nil)
			if c.want == "" {
				if err != nil || client.token != c.token {
					t.Fatalf("%+v, %v; want the token %q", client, err, c.token)
				}
				return
			}
			if err == nil || strings.ReplaceAll(err.Error(), path, "TOKEN") != c.want {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
	t.Run("the default hub", func(t *testing.T) {
		t.Setenv("HF_ENDPOINT", "")
		if u, err := endpointOf(""); err != nil || u.String() != "https://huggingface.co" {
			t.Errorf("%v, %v", u, err)
		}
	})
}

// What another attempt would not change is not tried again.
func TestErrorsThatStay(t *testing.T) {
	at := &url.URL{Host: "hub.example.com"}
	for err, want := range map[error]string{
		&net.DNSError{IsNotFound: true}: "hub.example.com: host not found; want a network, or a proxy in HTTPS_PROXY; " +
			"a folder with the files of the model that another machine has downloaded may be base_model too",
		&tls.CertificateVerificationError{Err: errors.New("expired")}: "hub.example.com: tls: failed to verify " +
			"certificate: expired",
	} {
		got := requestError(t.Context(), at, &url.Error{Op: "Get", URL: "https://hub.example.com/x", Err: err})
		if _, again := errors.AsType[*temporary](got); again || got.Error() != want {
			t.Errorf("the error is %v, temporary: %v; want %s", got, again, want)
		}
	}
	got := requestError(t.Context(), at, &net.DNSError{IsTimeout: true})
	if _, again := errors.AsType[*temporary](got); !again {
		t.Errorf("%v is not temporary", got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "12": 12 * time.Second, "-1": 0, "soon": 0, "9999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("Retry-After: %s is %v, want %v", text, got, want)
		}
	}
}

// Whatever an index names, the files are the model's own, beside the index, and no pickles.
func FuzzShards(f *testing.F) {
	f.Add(`{"weight_map": {"a": "model-1.safetensors", "b": "../x.safetensors"}}`)
	f.Add(`{"weight_map": {"a": "x.bin"}}`)
	f.Add(`{"weight_map": {"a": "a/b.safetensors"}}`)
	f.Add(`{"weight_map": []}`)
	path := filepath.Join(f.TempDir(), indexFile)
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		names := []string{"model-1.safetensors", "../x.safetensors", "a/b.safetensors", "x.bin", ".safetensors"}
		files, err := shards(path, names)
		if err != nil {
			return
		}
		for _, file := range files {
			if !slices.Contains(names, file.name) || filepath.Base(file.name) != file.name ||
				!strings.HasSuffix(file.name, ".safetensors") || hubcache.CheckFile(file.name) != nil {
				t.Errorf("%s names %q", text, file.name)
			}
		}
	})
}

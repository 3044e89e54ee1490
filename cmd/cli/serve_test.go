package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lockedLog is a log that may be read while it is written.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// awaited returns the first group of a pattern, once the log has it.
func (l *lockedLog) awaited(t *testing.T, pattern string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(l.String()); found != nil {
			return found[1]
		}
	}
	t.Fatalf("no %s in the log\n%s", pattern, l.String())
	return ""
}

// serving starts jenga serve, and returns its address and log. end ends it and returns its error.
func serving(t *testing.T, args ...string) (address string, log *lockedLog, end func() error) {
	t.Helper()
	log = &lockedLog{}
	c := &commands{in: strings.NewReader(""), out: io.Discard, log: log}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	root := c.root()
	root.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	go func() { ended <- root.ExecuteContext(ctx) }()
	return log.awaited(t, `address=(\S+)`), log, func() error {
		cancel()
		return <-ended
	}
}

func postText(client *http.Client, url, authorization string) (int, string, error) {
	r, err := http.NewRequest("POST", url+"/v1/predict", strings.NewReader(`{"text": "the card"}`))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", authorization)
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestServe(t *testing.T) {
	trainMails(t)
	address, log, end := serving(t, "runs/mails", "--log-texts")
	status, text, err := postText(http.DefaultClient, "http://"+address, "")
	if err != nil || status != 200 || !strings.Contains(text, `"team"`) {
		t.Errorf("%d, %v\n%s", status, err, text)
	}
	if runtime.GOOS != "windows" {
		process, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		log.awaited(t, `(a run was opened again)`)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"url=http://localhost:", "runs=[mails] precision=[float32]", `text="the card"`, "path=/v1/predict status=200", "ending",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log\n%s", want, log.String())
		}
	}
}

func TestServeEndsAfterTheRequestsAtHand(t *testing.T) {
	trainMails(t)
	address, _, end := serving(t, "runs/mails")
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	const body = `{"text": "the card"}`
	fmt.Fprintf(connection, "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body[:5]) // it is at hand
	time.Sleep(100 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	time.Sleep(100 * time.Millisecond)
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("a new connection is accepted")
	}
	io.WriteString(connection, body[5:])
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.Contains(string(answer), "200 OK") || !strings.Contains(string(answer), `"team"`) {
		t.Errorf("%v\n%s", err, answer)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServeWithoutThePage(t *testing.T) {
	trainMails(t)
	for flag, want := range map[string]int{"--no-page": http.StatusNotFound, "--no-page=false": http.StatusOK} {
		address, _, end := serving(t, "runs/mails", flag)
		response, err := http.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: / is %s, want %d", flag, response.Status, want)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func TestServeDrains(t *testing.T) {
	trainMails(t)
	address, log, end := serving(t, "runs/mails", "--drain", "500ms")
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	log.awaited(t, "(ending)")
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz is %s", response.Status)
	}
	if status, text, err := postText(http.DefaultClient, "http://"+address, ""); err != nil || status != 200 {
		t.Errorf("%d, %v\n%s", status, err, text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheJSONLogHasTimesInSeconds(t *testing.T) {
	var log strings.Builder
	serveFlags{logFormat: "json"}.log(&log).Info("request", "took", 1500*time.Microsecond, "status", 200)
	if !strings.Contains(log.String(), `"took":0.0015,"status":200`) {
		t.Errorf("the log is %s", log.String())
	}
}

func TestServeWithTLSAndAToken(t *testing.T) {
	trainMails(t)
	writeCertificate(t)
	writeFile(t, ".", "token", "a token\n")
	address, _, end := serving(t, "runs/mails", "--tls-cert", "cert.pem", "--tls-key", "key.pem",
		"--token-file", "token")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for authorization, want := range map[string]int{"": 401, "Bearer a token": 200} {
		if status, text, err := postText(client, "https://"+address, authorization); err != nil || status != want {
			t.Errorf("with %q: %d, %v, want %d\n%s", authorization, status, err, want, text)
		}
	}
	client.CloseIdleConnections()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// writeCertificate writes cert.pem and key.pem.
func writeCertificate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		writeFile(t, ".", name, string(pem.EncodeToMemory(block)))
	}
}

func TestIdleConnectionsGiveWayToOthers(t *testing.T) {
	trainMails(t)
	address, _, end := serving(t, "runs/mails", "--max-connections", "2")
	defer end()
	for range 2 {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	if _, _, err := postText(&http.Client{Timeout: 10 * time.Second}, "http://"+address, ""); err != nil {
		t.Error(err)
	}
}

func TestServeRejectsMistakes(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "empty", "\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"", exitUsage, "an argument is missing; usage: jenga serve RUN [RUN…]"},
		{"nowhere", exitMistake, "nowhere: no such folder"},
		{"runs/mails runs/mails", exitMistake, `both runs are called "mails"`},
		{"runs/mails --batch-tokens 0", exitUsage, "--batch-tokens 0: want a number from 1 on"},
		{"runs/mails --max-queue 10", exitUsage,
			"--max-texts 256: a request of so many texts exceeds --max-queue 10; lower --max-texts too"},
		{"runs/mails --max-body 100000000", exitUsage,
			"--max-body 100000000: a request of so many bytes exceeds --max-bytes 3145728"},
		{"runs/mails --listen 8080", exitUsage,
			"--listen 8080: want an address with a port, as 127.0.0.1:8080 or :8080"},
		{"runs/mails --listen localhost", exitUsage, "--listen localhost: want an address with a port, as "},
		{"runs/mails --listen 99999", exitUsage, "--listen 99999: want an address with a port, as 127.0.0.1:8080"},
		{"runs/mails --listen :99999", exitUsage, "--listen :99999: want a port from 0 to 65535"},
		{"runs/mails --listen foo:bar", exitUsage, "--listen foo:bar: want a port from 0 to 65535"},
		{"runs/mails --drain -1s", exitUsage, "--drain -1s: want a time"},
		{"runs/mails --timeout 0s", exitUsage, "--timeout 0s: want a time"},
		{"runs/mails --max-wait -1s", exitUsage, "--max-wait -1s: want a time"},
		{"runs/mails --tls-cert a.pem", exitUsage, "--tls-cert and --tls-key: want both, or none"},
		{"runs/mails --tls-cert a.pem --tls-key b.pem", exitMistake, "a.pem"},
		{"runs/mails --log-format xml", exitUsage, `--log-format "xml": want one of text, json`},
		{"runs/mails --precision int4", exitUsage, `--precision "int4": want one of`},
		{"runs/mails --token-file nowhere", exitMistake,
			"--token-file nowhere: no such file; want a file with the token that requests must have\n"},
		{"runs/mails --token-file emtpy", exitMistake, `--token-file emtpy: no such file; did you mean "empty"?`},
		{"runs/mails --token-file runs", exitMistake, "--token-file runs: is a directory"},
		{"runs/mails --token-file empty", exitMistake, "--token-file empty: the file is empty"},
		{"runs/mails --listen " + taken.Addr().String(), exitMistake,
			"; want another port, as --listen 127.0.0.1:0, which takes a free one\n"},
		{"runs/mails --listen 192.0.2.1:0", exitMistake, // of RFC 5737, for documentation
			"; want an address of this machine, as --listen 127.0.0.1:0, which takes a free port\n"},
	} {
		status, out, log := call("", append([]string{"serve"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(log, test.want) || out != "" {
			t.Errorf("serve %s: status %d, want %d and %q\n%s%s", test.args, status, test.status, test.want, out, log)
		}
	}
}

func TestServeAnswersToItsOwnNamesAlone(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "token", "a token\n")
	for _, test := range []struct {
		args  []string
		hosts map[string]int
	}{
		{nil, map[string]int{"localhost:8080": 200, "evil.example": 403}},
		{[]string{"--allow-host", "jenga.example"}, map[string]int{"jenga.example": 200, "evil.example": 403}},
		{[]string{"--token-file", "token"}, map[string]int{"any.example": 200}},
		{[]string{"--listen", ":0"}, map[string]int{"any.example": 200}},
	} {
		address, _, end := serving(t, append([]string{"runs/mails"}, test.args...)...)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range test.hosts {
			r, err := http.NewRequest("GET", "http://127.0.0.1:"+port+"/v1/tasks", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Authorization", "Bearer a token")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("serve %v, host %s: %s, want %d", test.args, host, response.Status, want)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

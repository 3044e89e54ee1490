package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/serve"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/predict"
)

type serveFlags struct {
	options                                 serve.Options
	listen, tokenFile, cert, key, logFormat string
	machine                                 machineFlags
	maxConnections                          int
	drain                                   time.Duration
}

func (c *commands) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve RUN [RUN…]",
		Short: "Answer texts over HTTP, by all tasks in one pass",
		Args:  between(1, math.MaxInt),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.serve(cmd.Context(), f, args) },
	}
	flags, o := cmd.Flags(), &f.options
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080",
		"`ADDRESS` to listen on; :8080 is every network of this machine")
	f.machine.flag(cmd)
	flags.IntVar(&o.Model.BatchTokens, "batch-tokens", predict.DefaultBatchTokens,
		"most `TOKENS` of a batch, but for a longer text")
	flags.DurationVar(&o.Model.Wait, "max-wait", predict.DefaultWait,
		"how long after a batch of several requests the next one waits for as many to come")
	flags.IntVar(&o.Model.MaxWaiting, "max-queue", 1024, "most `TEXTS` that wait; more are refused (429)")
	flags.IntVar(&o.MaxTexts, "max-texts", 256, "most `TEXTS` of a request")
	flags.Int64Var(&o.MaxBody, "max-body", 1<<20, "most `BYTES` of a request's body")
	flags.Int64Var(&o.MaxBytes, "max-bytes", 3<<20,
		fmt.Sprintf("most `BYTES` of the bodies of all requests at hand (429); %d of an answer that is not read yet "+
			"count as one", serve.AnswerPerByte))
	flags.IntVar(&o.Model.MaxTextTokens, "max-tokens", 1<<14, "most `TOKENS` of a text that is read in windows")
	flags.IntVar(&f.maxConnections, "max-connections", 1024, "most `CONNECTIONS` at once; for more, those "+
		"without a request are closed")
	flags.IntVar(&o.MaxExplained, "max-explained", 256,
		"most `TOKENS` of a text that is explained: a number for each two of them in each attention map")
	flags.DurationVar(&f.drain, "drain", 0,
		"how long after SIGTERM requests are still accepted, while /readyz is 503 already")
	flags.DurationVar(&o.Timeout, "timeout", 30*time.Second, "how long a request may take, its wait included")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"`FILE` with the bearer token that requests must have, read at the start alone")
	flags.StringSliceVar(&o.Hosts, "allow-host", nil,
		"also answer requests to `NAME`; without a token, on this machine alone, those to other names than localhost "+
			"are refused; may be repeated")
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` with the TLS certificate, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` with its key")
	oneOfVar(cmd, &f.logFormat, "log-format", "text", "of the log on stderr: text, or json with times in seconds",
		"text", "json")
	flags.BoolVar(&o.NoPage, "no-page", false, "serve no web page at /")
	flags.BoolVar(&o.LogTexts, "log-texts", false, "write the texts of requests to the log")
	return cmd
}

func (f serveFlags) check() error {
	o := f.options
	for _, number := range []struct {
		flag  string
		value int64
	}{{"batch-tokens", int64(o.Model.BatchTokens)}, {"max-queue", int64(o.Model.MaxWaiting)},
		{"max-texts", int64(o.MaxTexts)}, {"max-body", o.MaxBody}, {"max-bytes", o.MaxBytes},
		{"max-tokens", int64(o.Model.MaxTextTokens)}, {"max-connections", int64(f.maxConnections)},
		{"max-explained", int64(o.MaxExplained)}} {
		if number.value < 1 {
			return usageErrorf("--%s %d: want a number from 1 on", number.flag, number.value)
		}
	}
	switch {
	case o.MaxTexts > o.Model.MaxWaiting:
		return usageErrorf("--max-texts %d: a request of so many texts exceeds --max-queue %d; lower --max-texts too",
			o.MaxTexts, o.Model.MaxWaiting)
	case o.MaxBody > o.MaxBytes:
		return usageErrorf("--max-body %d: a request of so many bytes exceeds --max-bytes %d; change --max-body too",
			o.MaxBody, o.MaxBytes)
	case f.drain < 0:
		return usageErrorf("--drain %v: want a time, as 5s, or 0", f.drain)
	case o.Timeout <= 0:
		return usageErrorf("--timeout %v: want a time, as 30s", o.Timeout)
	case o.Model.Wait < 0:
		return usageErrorf("--max-wait %v: want a time, as 2ms, or 0", o.Model.Wait)
	case (f.cert == "") != (f.key == ""):
		return usageErrorf("--tls-cert and --tls-key: want both, or none")
	}
	return nil
}

// settle sets the options of the server that no flag is by itself.
func (f *serveFlags) settle() error {
	o := &f.options
	o.Model.Wait = cmp.Or(o.Model.Wait, -1) // 0 is the default there
	if len(o.Hosts) > 0 || f.tokenFile == "" && isLoopback(f.listen) {
		o.Hosts = append([]string{"localhost"}, o.Hosts...)
	}
	var err error
	if o.Model.Device, err = f.machine.checked(); err != nil {
		return err
	}
	err = f.machine.precision.set(func(precision nn.Precision) error {
		o.Model.Precision = &precision
		return nil
	})
	if err != nil || f.tokenFile == "" {
		return err
	}
	text, err := os.ReadFile(f.tokenFile)
	var of *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		near := suggest.File(f.tokenFile, f.tokenFile, suggest.AnyFile)
		return fmt.Errorf("--token-file %s: no such file%s", f.tokenFile,
			cmp.Or(near, "; want a file with the token that requests must have"))
	case errors.As(err, &of):
		return fmt.Errorf("--token-file %s: %w", f.tokenFile, of.Err)
	case err != nil:
		return fmt.Errorf("--token-file: %w", err)
	}
	if o.Token = strings.TrimSpace(string(text)); o.Token == "" {
		return fmt.Errorf("--token-file %s: the file is empty", f.tokenFile)
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func (c *commands) serve(ctx context.Context, f serveFlags, folders []string) error {
	if err := f.check(); err != nil {
		return err
	}
	log := f.log(c.log)
	f.options.Log = log
	if err := f.settle(); err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // which does not end the process from here on; Windows never sends it
	defer signal.Stop(hangups)
	server, err := serve.New(ctx, folders, f.options)
	if err != nil {
		return ofPrecision(ofDevice(err))
	}
	defer boundMemory(f.options.MaxBytes)()
	listener, connections, err := f.listener()
	if err != nil {
		return errors.Join(err, server.Close())
	}
	address := listener.Addr().String()
	about := []any{"address", address, "url", f.url(address), "runs", server.Runs(), "precision", server.Precisions()}
	if devices := server.Devices(); slices.Max(devices) != "" {
		about = append(about, "device", devices)
	}
	log.Info("listening", about...)
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for range hangups {
			server.Reload() // which writes errors to the log, and waits for another reload
		}
	})
	err = f.answer(ctx, server, listener, connections, log)
	signal.Stop(hangups)
	close(hangups)
	err = errors.Join(err, server.Close()) // which ends a reload
	reloads.Wait()
	return err
}

// url is where a browser of this machine finds the server that listens on address.
func (f serveFlags) url(address string) string {
	scheme := "http"
	if f.cert != "" {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip.IsLoopback() || ip.IsUnspecified() {
		host = "localhost" // a name that is answered to, and that 0.0.0.0 is not
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// boundMemory makes garbage collections more frequent before requests reach the memory that docs/serving.md names, and
// returns what ends that. GOMEMLIMIT and GOGC take its place.
func boundMemory(requests int64) (end func()) {
	limit := debug.SetMemoryLimit(-1)
	if limit != math.MaxInt64 || os.Getenv("GOGC") != "" {
		return func() {}
	}
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	models := 2 * int64(now.Sys-now.HeapReleased) // while the runs are opened again
	debug.SetMemoryLimit(models + 2*serve.AnswerPerByte/3*requests)
	// By default as much garbage waits to be collected as there are weights and memory of requests.
	garbage := serve.AnswerPerByte / 6 * requests
	percent := debug.SetGCPercent(int(min(50, max(10, 100*garbage/int64(now.HeapAlloc+1)))))
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// log returns the log of the flags: text, or lines of JSON with times as numbers of seconds.
func (f serveFlags) log(w io.Writer) *slog.Logger {
	inJSON := f.logFormat == "json"
	replaced := func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			return slog.Any(a.Key, withFlags(err))
		}
		if a.Key == "warning" {
			return slog.String(a.Key, warningWithFlags(a.Value.String()))
		}
		if inJSON && a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key, a.Value.Duration().Seconds())
		}
		return a
	}
	o := &slog.HandlerOptions{ReplaceAttr: replaced}
	if inJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func (f serveFlags) answer(ctx context.Context, server *serve.Server, listener net.Listener,
	connections *serve.Connections, log *slog.Logger) error {
	web := &http.Server{
		Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: f.options.Timeout,
		WriteTimeout: 2 * f.options.Timeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		ConnState: connections.State, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.Info("ending, after the requests at hand", "drain", f.drain)
	server.Drain()
	time.Sleep(f.drain)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.options.Timeout)
	defer cancel()
	if err := web.Shutdown(late); err != nil {
		return errors.Join(err, web.Close())
	}
	return nil
}

// listenError is the error of an address that cannot be listened on, with what works in its place.
func listenError(address string, err error) error {
	host, port, split := net.SplitHostPort(address)
	_, unknown := net.LookupPort("tcp", port)
	switch {
	case split != nil:
		if _, portErr := net.LookupPort("tcp", address); portErr == nil {
			return usageErrorf("--listen %[1]s: want an address with a port, as 127.0.0.1:%[1]s or :%[1]s", address)
		}
		return usageErrorf("--listen %s: want an address with a port, as 127.0.0.1:8080 or :8080", address)
	case unknown != nil:
		return usageErrorf("--listen %s: want a port from 0 to 65535, as 8080, or 0 for a free one", address)
	}
	instead := "an address of this machine, as --listen 127.0.0.1:0, which takes a free port"
	switch another := net.JoinHostPort(host, "0"); {
	case errors.Is(err, syscall.EADDRINUSE):
		instead = fmt.Sprintf("another port, as --listen %s, which takes a free one", another)
	case errors.Is(err, fs.ErrPermission):
		instead = fmt.Sprintf("a port from 1024 on, or --listen %s, which takes a free one", another)
	}
	return fmt.Errorf("--listen %s: %w; want %s", address, err, instead)
}

// listener listens for the web server. The connections are those of the listener, or those below its TLS.
func (f serveFlags) listener() (net.Listener, *serve.Connections, error) {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, nil, listenError(f.listen, err)
	}
	connections := serve.Limit(listener, f.maxConnections)
	if f.cert == "" {
		return connections, connections, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		err = fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.cert, f.key, err)
		return nil, nil, errors.Join(err, connections.Close())
	}
	return tls.NewListener(connections, &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
	}), connections, nil
}

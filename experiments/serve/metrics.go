package serve

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec   // by path and status
	seconds  *prometheus.HistogramVec // by path
	texts    *prometheus.CounterVec   // by run
	tokens   prometheus.Counter
	batches  prometheus.Histogram // texts of each
	passes   prometheus.Histogram // seconds of each
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jenga_requests_total",
			Help: "Requests, by path and HTTP status."}, []string{"path", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jenga_request_seconds",
			Help: "Time to answer a request, its wait included.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)},
			[]string{"path"}),
		texts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jenga_texts_total",
			Help: "Texts answered, by run."}, []string{"run"}),
		tokens: prometheus.NewCounter(prometheus.CounterOpts{Name: "jenga_tokens_total", Help: "Tokens encoded."}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "jenga_batch_texts",
			Help: "Texts of a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "jenga_batch_seconds",
			Help: "Time to encode a batch.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.texts, m.tokens, m.batches, m.passes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds the number of texts that wait.
func (m *metrics) watch(waiting func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jenga_texts_waiting",
		Help: "Texts that wait for an answer."}, func() float64 { return float64(waiting()) }))
}

func (m *metrics) batch(texts, tokens int, took time.Duration) {
	m.batches.Observe(float64(texts))
	m.tokens.Add(float64(tokens))
	m.passes.Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// counted counts requests by the path of their route in mux, "other" for none, and writes a line for each to the log.
func (s *Server) counted(mux *http.ServeMux, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		path := "other"
		if _, pattern := mux.Handler(r); pattern != anyPath {
			_, path, _ = strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
		}
		noted := &noted{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(noted, r)
		took := time.Since(start)
		s.metrics.requests.WithLabelValues(path, strconv.Itoa(noted.status)).Inc()
		s.metrics.seconds.WithLabelValues(path).Observe(took.Seconds())
		s.options.Log.Info("request", "method", r.Method, "path", path, "status", noted.status, "took", took)
	})
}

type noted struct {
	http.ResponseWriter
	status int
}

func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

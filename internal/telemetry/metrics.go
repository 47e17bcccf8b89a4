package telemetry

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewMetrics makes the server's one registry. It holds what is known about the
// process and the Go runtime; packages register their own metrics in it.
func NewMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return r
}

// MetricsHandler serves the registry's metrics. A collector that fails costs its
// own metrics and a line in the log, not the page.
func MetricsHandler(r *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog:      errorLog{log},
		ErrorHandling: promhttp.ContinueOnError,
		Registry:      r,
	})
}

// errorLog gives promhttp the one method it wants of a log.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) { l.log.Error("collect metrics", "problem", v) }

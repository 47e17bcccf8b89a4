package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// Two servers in one process share nothing.
func TestMetricsAreSeparate(t *testing.T) {
	t.Parallel()
	one, two := NewMetrics(), NewMetrics()
	tasks := prometheus.NewCounter(prometheus.CounterOpts{Name: "claudomator_test_total", Help: "A test."})
	one.MustRegister(tasks)
	tasks.Add(3)
	log := slog.New(slog.DiscardHandler)
	page := scrape(t, MetricsHandler(one, log))
	for _, want := range []string{"claudomator_test_total 3\n", "go_goroutines ", "go_build_info{"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(scrape(t, MetricsHandler(two, log)), "claudomator_test_total") {
		t.Error("the other registry has it too")
	}
}

type failing struct{ desc *prometheus.Desc }

func (f failing) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }
func (f failing) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(f.desc, errors.New("the database is away"))
}

// A collector that fails leaves the others' metrics on the page, and a log line.
func TestMetricsSurviveACollector(t *testing.T) {
	t.Parallel()
	r := NewMetrics()
	r.MustRegister(failing{prometheus.NewDesc("claudomator_broken", "Fails.", nil, nil)})
	var out bytes.Buffer
	page := scrape(t, MetricsHandler(r, slog.New(slog.NewTextHandler(&out, nil))))
	if !strings.Contains(page, "go_goroutines ") {
		t.Error("the page is empty")
	}
	if !strings.Contains(out.String(), "the database is away") {
		t.Errorf("the log does not say why: %q", out.String())
	}
}

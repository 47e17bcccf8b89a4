package telemetry

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	broken := false
	r := NewMetrics()
	r.MustRegister(NewCounts("claudomator_tasks", "Tasks by state.", "state", func() (map[string]float64, error) {
		if broken {
			return nil, errors.New("the database is busy")
		}
		return map[string]float64{"READY": 2, "RUNNING": 1}, nil
	}))
	scrape := func() string {
		out := httptest.NewRecorder()
		MetricsHandler(r, slog.New(slog.DiscardHandler)).ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
		return out.Body.String()
	}
	if text := scrape(); !strings.Contains(text, `claudomator_tasks{state="READY"} 2`) || !strings.Contains(text, `claudomator_tasks{state="RUNNING"} 1`) {
		t.Errorf("counts are missing:\n%s", text)
	}
	broken = true
	if text := scrape(); strings.Contains(text, "claudomator_tasks{") || !strings.Contains(text, "go_goroutines") {
		t.Errorf("a count that cannot be read costs more than itself:\n%s", text)
	}
}

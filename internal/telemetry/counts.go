package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Counts is a gauge per label value, read anew at each scrape: the server's own
// counts live in its database, not beside it.
type Counts struct {
	desc *prometheus.Desc
	read func() (map[string]float64, error)
}

// NewCounts makes a collector of gauges that differ in one label.
func NewCounts(name, help, label string, read func() (map[string]float64, error)) *Counts {
	return &Counts{desc: prometheus.NewDesc(name, help, []string{label}, nil), read: read}
}

// Describe implements prometheus.Collector.
func (c *Counts) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector. What cannot be read costs these gauges
// and a line in the log.
func (c *Counts) Collect(to chan<- prometheus.Metric) {
	counts, err := c.read()
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.desc, err)
		return
	}
	for _, label := range slices.Sorted(maps.Keys(counts)) {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, counts[label], label)
	}
}

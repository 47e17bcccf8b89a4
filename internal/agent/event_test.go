package agent

import (
	"math"
	"testing"
	"time"
)

func TestUnix(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]time.Time{
		1796029887:   time.Date(2026, 11, 30, 9, 11, 27, 0, time.UTC),
		1796029887.5: time.Date(2026, 11, 30, 9, 11, 27, 5e8, time.UTC),
		253402300799: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		253402300800: {}, 1e300: {}, 0: {}, -1: {}, math.Inf(1): {}, math.Inf(-1): {}, math.NaN(): {},
	} {
		if got := Unix(seconds); !got.Equal(want) {
			t.Errorf("%v: %v, want %v", seconds, got, want)
		}
	}
}

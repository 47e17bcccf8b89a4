//go:build !linux || !amd64

package chaos_test

import (
	"os"
	"testing"
)

func trapped() {}

// testSweep holds system calls as Linux on amd64 has them.
func testSweep(t *testing.T, _ string) {
	if os.Getenv("CLAUDOMATOR_CI") != "" {
		t.Fatal("nothing may be skipped in CI, and the sweep runs on Linux on amd64")
	}
	t.Skip("the sweep runs on Linux on amd64 alone")
}

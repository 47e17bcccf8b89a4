package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/work"
)

// The client says what is wrong when something else than the endpoint answers.
func TestCallOfOtherServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		code   work.Code
		says   string
	}{
		"a page":          {200, "<html>", work.Internal, "read the run endpoint's answer"},
		"nothing":         {200, "{}", work.Internal, "no result"},
		"text alone":      {200, `{"result":{"content":[{"type":"text","text":"x"}]}}`, work.Internal, "no result"},
		"no error object": {200, `{"result":{"isError":true,"structuredContent":[1]}}`, work.Internal, "read the tool's error"},
		"a broken server": {200, `{"error":{"code":-32603,"message":"broken"}}`, work.Internal, "broken"},
		"not found":       {404, strings.Repeat("not found ", 1000), work.Invalid, "404"},
		"too large":       {413, "request body exceeds 16777216 bytes", work.Invalid, "exceeds"},
		"a proxy":         {502, "bad gateway", work.Unavailable, "502"},
		"a crash":         {500, "", work.Internal, "500"},
		"a redirection":   {307, "", work.Invalid, "307"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		out, err := mcp.Call(t.Context(), s.URL, "t", "get_context", nil)
		s.Close()
		if err == nil || work.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
			t.Errorf("%s: %s, %v, want %s %q", name, out, err, c.code, c.says)
		}
		if _, err := mcp.Call(t.Context(), s.URL, "t", "get_context", nil); work.CodeOf(err) != work.Unavailable {
			t.Errorf("%s, gone: %v", name, err)
		}
	}
	if _, err := mcp.Call(t.Context(), ":", "t", "get_context", nil); work.CodeOf(err) != work.Invalid {
		t.Errorf("no address: %v", err)
	}
}

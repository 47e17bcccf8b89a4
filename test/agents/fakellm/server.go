package fakellm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is a running model server on loopback.
type Server struct {
	*httptest.Server
	scripts Scripts

	mu       sync.Mutex
	faults   map[string]int // how often a turn has failed, by script and turn
	requests []Request
}

// Request is one that was answered.
type Request struct {
	Path, Model   string
	Scripts       []string // named in the conversation so far, in order; nil: one without tools
	Turn          int
	Tools, Called []string
	Result        string // the last tool result in it
	Fault         Kind
	Miss          string // why the script could not go on
	Authorization string // both headers that may hold a key
	Status        int    // where it is no answer of a script
}

// Start starts a server; the caller closes it.
func Start(scripts Scripts) *Server {
	s := &Server{scripts: scripts, faults: make(map[string]int)}
	s.Server = httptest.NewServer(s)
	return s
}

// Requests are those answered so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) log(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// protocol is one wire format.
type protocol interface {
	parse(body []byte) (*conversation, error)
	write(w http.ResponseWriter, c *conversation, r reply)
	fault(w http.ResponseWriter, f *Fault)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	path := r.URL.Path[strings.LastIndex(strings.TrimSuffix(r.URL.Path, "/"), "/")+1:] // the base may or may not hold /v1
	switch {
	case err != nil: // the program has gone
	case r.Method == http.MethodPost && path == "messages":
		s.answer(w, r, body, anthropic{})
	case r.Method == http.MethodPost && path == "responses":
		s.answer(w, r, body, responses{})
	case path == "count_tokens":
		writeJSON(w, http.StatusOK, object{"input_tokens": len(body) / 4})
	default:
		s.log(Request{Path: r.URL.Path, Status: http.StatusNotFound})
		writeJSON(w, http.StatusNotFound, object{"error": object{"type": "not_found_error", "message": "not found"}})
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte, p protocol) {
	entry := Request{Path: r.URL.Path, Authorization: r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")}
	c, err := p.parse(body)
	if err != nil {
		entry.Miss, entry.Status = err.Error(), http.StatusBadRequest
		s.log(entry)
		writeJSON(w, entry.Status, object{"error": object{"type": "invalid_request_error", "message": entry.Miss}})
		return
	}
	rep := s.scripts.decide(c)
	if !s.fails(c.word, rep) {
		rep.fault = nil
	}
	entry.Model, entry.Turn, entry.Result, entry.Miss = c.model, rep.turn, c.result, rep.miss
	for _, t := range c.tools {
		entry.Scripts = c.words
		entry.Tools = append(entry.Tools, t.full())
	}
	for _, call := range rep.calls {
		entry.Called = append(entry.Called, call.tool.full())
	}
	if rep.fault != nil {
		entry.Fault = rep.fault.Kind
	}
	s.log(entry)
	switch {
	case rep.fault == nil:
		for name, value := range rep.head {
			w.Header().Set(name, strings.ReplaceAll(value, "{{now+1h}}", inSeconds(3600)))
		}
		p.write(w, c, rep)
	case rep.fault.Kind == Hang:
		<-r.Context().Done()
	default:
		if rep.fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(rep.fault.RetryAfter))
		}
		p.fault(w, rep.fault)
	}
}

// fails says whether the fault of a turn strikes this time.
func (s *Server) fails(word string, r reply) bool {
	if r.fault == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(word, r.turn)
	s.faults[key]++
	return r.fault.Times == 0 || s.faults[key] <= r.fault.Times
}

func inSeconds(n int) string { return strconv.FormatInt(time.Now().Unix()+int64(n), 10) }

// object and the readers below are for JSON whose form is not ours.
type object = map[string]any

func str(v any) string  { s, _ := v.(string); return s }
func list(v any) []any  { l, _ := v.([]any); return l }
func dict(v any) object { m, _ := v.(map[string]any); return m }

// text joins the texts of a content field.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var parts []string
	for _, part := range list(v) {
		if s := str(dict(part)["text"]); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the program may have gone
}

// stream writes server-sent events.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return stream{w}
}

func (e stream) send(event string, v object) {
	v["type"] = event
	data, _ := json.Marshal(v)
	_, _ = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, data)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// halves cuts a text in two, so that programs have to join it.
func halves(s string) []string {
	r := []rune(s)
	return []string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

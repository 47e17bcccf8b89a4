package apptest

import (
	"io"
	"net/http"
)

// Ask sends a request and reads the whole answer; edits change the request
// before.
func (w *World) Ask(c *http.Client, r *http.Request, edits ...func(*http.Request)) (status int, header http.Header, body []byte) {
	w.Helper()
	for _, edit := range edits {
		edit(r)
	}
	resp, err := c.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, resp.Header, data
}

// Header sets a header of a request; an empty value removes it.
func Header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
}

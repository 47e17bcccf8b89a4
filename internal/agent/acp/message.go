package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	// maxMessage is how many bytes of one message are kept.
	maxMessage = 4 << 20
	maxDepth   = 64 // of a message that is read although it was cut
	maxTries   = 16 // places in a line where a message may begin behind other text
)

// message is a request, a notification (no ID) or an answer (no Method). It holds
// what is read of each, and takes anything else for granted.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

func (m *message) request() bool { return m.Method != "" && given(m.ID) }

func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// number is the number of the request that m answers, 0 for none of ours.
func (m *message) number() int {
	n, _ := strconv.Atoi(string(bytes.Trim(m.ID, `"`))) // what is no number is none of ours
	return n
}

// read finds the message in a line. rest is the text before it, or the whole line
// where there is none.
func read(line agent.Line) (m *message, rest []byte) {
	text := bytes.TrimSpace(line.Text)
	if line.Cut > 0 && len(text) > 0 && text[0] == '{' {
		if m := decode(salvage(text)); m != nil {
			return m, nil
		}
	}
	if m := decode(text); m != nil {
		return m, nil
	}
	// Programs print beside the protocol, perhaps without ending the line.
	mark := []byte(`{"jsonrpc"`)
	for from, tries := 1, 0; tries < maxTries && from < len(text); tries++ {
		at := bytes.Index(text[from:], mark)
		if at < 0 {
			break
		}
		if m := decode(text[from+at:]); m != nil {
			return m, text[:from+at]
		}
		from += at + 1
	}
	return nil, line.Text
}

func decode(text []byte) *message {
	var m message
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &m) != nil {
		return nil
	}
	if m.Method == "" && (!given(m.ID) || m.Result == nil && !given(m.Error)) {
		return nil
	}
	return &m
}

// lenient reads JSON; a field of another type than expected is as if it were not
// there.
func lenient(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err //nolint:wrapcheck // callers say what they read
}

// salvage makes JSON of the beginning of JSON: everything before the value in
// which it was cut.
func salvage(text []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, _ := whole(dec, 0) // the error is where it was cut
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return data
}

// whole reads the next value; with an error it is as much of it as was there, nil
// for nothing.
func whole(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth++; depth > maxDepth {
		return nil, fmt.Errorf("read message: deeper than %d", maxDepth)
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			value, err := whole(dec, depth)
			if err != nil {
				return list, err
			}
			list = append(list, value)
		}
		_, err = dec.Token()
		return list, err //nolint:wrapcheck // where it was cut; nobody reads it
	}
	object := map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return object, fmt.Errorf("read message: %w", err)
		}
		name, _ := key.(string) // the decoder takes nothing else
		value, err := whole(dec, depth)
		if value != nil {
			object[name] = value
		}
		if err != nil {
			return object, err
		}
	}
	_, err = dec.Token()
	return object, err //nolint:wrapcheck // where it was cut; nobody reads it
}

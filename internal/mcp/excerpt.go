package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const (
	// excerptBytes is the most that a tool shows of a diff or a log: an agent
	// pays for every byte it reads.
	excerptBytes = 128 << 10
	newestLines  = 50
	mostLines    = 1000
)

// newest is how many of the newest lines or events are asked for.
func newest(asked int) (int, error) {
	switch {
	case asked == 0:
		return newestLines, nil
	case asked < 1 || asked > mostLines:
		return 0, work.Errorf(work.Invalid, "last is %d, it must be 1 to %d", asked, mostLines).WithReason("arguments")
	}
	return asked, nil
}

// diffExcerpt is the beginning of a patch.
type diffExcerpt struct {
	Diff string `json:"diff"`
	Cut  bool   `json:"cut"` // there is more of it
}

var errEnough = errors.New("enough was read")

// head keeps the first lines that are written to it, and refuses the rest.
type head struct {
	kept bytes.Buffer
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	room := excerptBytes - h.kept.Len()
	if len(p) <= room {
		return h.kept.Write(p)
	}
	h.full = true
	_, _ = h.kept.Write(p[:room]) // never fails
	h.kept.Truncate(bytes.LastIndexByte(h.kept.Bytes(), '\n') + 1)
	return room, errEnough
}

func diffOf(ctx context.Context, api app.API, task string) (any, error) {
	var h head
	if err := api.TaskDiff(ctx, task, &h); err != nil && !h.full {
		return nil, err
	}
	return diffExcerpt{Diff: h.kept.String(), Cut: h.full}, nil
}

// logExcerpt is the end of what an execution printed. A line is the object that
// it holds, or text where it holds none.
type logExcerpt struct {
	ExecutionID work.ExecutionID `json:"execution_id"`
	Lines       []any            `json:"lines"`
	Cut         bool             `json:"cut"` // there is more before them
}

func logOf(ctx context.Context, api app.API, execution string, last int) (any, error) {
	x, err := api.Execution(ctx, execution)
	if err != nil {
		return nil, err
	}
	from := max(0, x.LogBytes-excerptBytes)
	log, err := api.Transcript(ctx, string(x.ID), from)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	text, cut, err := tail(log)
	if err != nil {
		return nil, work.Errorf(work.Unavailable, "read the log of %s: %w", x.ID, err)
	}
	cut = cut || from > 0
	if cut { // the first line is not whole
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if len(text) == 0 {
		lines = nil
	}
	if len(lines) > last {
		lines, cut = lines[len(lines)-last:], true
	}
	out := logExcerpt{ExecutionID: x.ID, Lines: []any{}, Cut: cut}
	for _, line := range lines {
		if json.Valid(line) {
			out.Lines = append(out.Lines, json.RawMessage(line))
		} else {
			out.Lines = append(out.Lines, string(line))
		}
	}
	return out, nil
}

// tail reads to the end and keeps the last bytes; cut says that there were more.
func tail(r io.Reader) (kept []byte, cut bool, err error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		kept = append(kept, buffer[:n]...)
		if len(kept) > 2*excerptBytes {
			kept, cut = append([]byte{}, kept[len(kept)-excerptBytes:]...), true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	if len(kept) > excerptBytes {
		kept, cut = kept[len(kept)-excerptBytes:], true
	}
	return kept, cut, nil
}

package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// LogOptions say what a log looks like; the names are those of the settings.
type LogOptions struct {
	Level  string // debug, info, warn, error
	Format string // text, json
	Mask   *Mask  // hides secrets; nil hides nothing
}

// NewLogger writes records to w, one Write call each.
func NewLogger(w io.Writer, o LogOptions) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, fmt.Errorf("set up the log: %w", err)
	}
	if o.Mask != nil {
		w = o.Mask.Writer(w)
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("set up the log: unknown format %q", o.Format)
}

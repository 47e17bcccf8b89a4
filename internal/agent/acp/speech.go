package acp

import (
	"strings"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	maxText  = 256 << 10 // bytes of one text of a tool call
	maxPiece = 8 << 10   // bytes of speech held back to be joined
)

// speech joins the pieces in which text arrives: an event is a paragraph, or what
// there is of it when something else happens.
type speech struct {
	emit func(agent.Event)
	kind agent.Kind
	id   string
	text strings.Builder
}

func (s *speech) say(kind agent.Kind, id, text string) {
	if kind != s.kind || id != s.id && id != "" && s.id != "" {
		s.flush()
	}
	s.kind, s.id = kind, id
	s.text.WriteString(text)
	held := s.text.String()
	if end := strings.LastIndex(held, "\n\n"); end >= 0 {
		s.put(held[:end], held[end+2:])
	} else if len(held) > maxPiece {
		end := strings.LastIndexByte(held, '\n')
		if end <= 0 { // a line without end is not held back
			end = len(held)
		}
		s.put(held[:end], held[end:])
	}
}

func (s *speech) flush() { s.put(s.text.String(), "") }

// put emits text and holds the rest back.
func (s *speech) put(text, rest string) {
	if text = strings.Trim(text, "\n"); strings.TrimSpace(text) != "" {
		event := agent.Event{Kind: s.kind, Text: text}
		if s.kind == agent.KindLog {
			event.Stream = agent.Stdout
		}
		s.emit(event)
	}
	s.text.Reset()
	s.text.WriteString(rest)
}

// clip cuts text to at most limit bytes and says how many were left out.
func clip(text string, limit int) (string, int64) {
	if len(text) <= limit {
		return text, 0
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], int64(len(text) - end)
}

func clipped(text string, limit int) string {
	text, cut := clip(text, limit)
	if cut > 0 {
		text += "…"
	}
	return text
}

package app

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/work"
)

// How much of a text a prompt holds, in bytes. What a task itself is asked to do,
// its criteria and a person's words are never cut.
const (
	mostShort    = 600      // an item of a list
	mostLong     = 8 << 10  // a summary, a reasoning, a comment
	mostGoal     = 4 << 10  // what a story is for, as its builders see it
	mostSpec     = 32 << 10 // what a story specifies; and its plan
	mostLessons  = 4 << 10  // all of them
	mostHappened = 32 << 10 // what a retro looks back on
	mostItems    = 25       // of a list that agents wrote
)

// fenced is a text between marks of which the last does not occur in it: agents
// write texts that judges read, and must not end them early.
func fenced(name, text string) string {
	mark := name
	for n := 2; ends(text, mark); n++ {
		mark = fmt.Sprintf("%s-%d", name, n)
	}
	return "<<<" + mark + "\n" + text + "\n" + mark
}

// ends says whether a line of the text could be taken for the mark.
func ends(text, mark string) bool {
	for line := range strings.Lines(text) {
		if strings.EqualFold(strings.TrimSpace(line), mark) {
			return true
		}
	}
	return false
}

// item is what an item of a list says: its further lines are indented, and so are
// no headings and items of the prompt itself.
func item(value any) string { return strings.ReplaceAll(fmt.Sprint(value), "\n", "\n    ") }

func short(text string) string { return clipped(text, mostShort) }

func long(text string) string { return clipped(text, mostLong) }

// clipped keeps the beginning and the end of a text that is longer than most bytes,
// since output says what failed at its end, and says how much is left out; most is
// at least 100.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most -= len("\n[… 1234567 bytes left out …]\n") // the notice counts
	head, tail := most*2/3, len(text)-most/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", text[:head], tail-head, text[tail:])
}

// lines are the items of a list that agents wrote, each cut, and not too many.
func lines(list []string) []string {
	var out []string
	for _, text := range list[:min(len(list), mostItems)] {
		out = append(out, short(text))
	}
	if n := len(list) - mostItems; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return out
}

// objections are findings as lines.
func objections(list work.Findings) []string { return lines(marked(list, nil)) }

// objection is a finding with all that makes its identity: by its kind, a later
// judge names it again.
func objection(f work.Finding) string {
	if f.Kind == "" {
		return f.String()
	}
	return "[" + f.Kind + "] " + f.String()
}

// recent are the newest lessons of a project, newest last, that fit into what a
// prompt gives them: the oldest are dropped first, and a person who wants them
// kept shortens the list. A newest one that does not fit is cut.
func recent(lessons []string) []string {
	left := mostLessons
	for i, lesson := range slices.Backward(lessons) {
		left -= len(item(lesson)) + len("- \n")
		if left < 0 && i < len(lessons)-1 {
			return lessons[i+1:]
		}
		if left < 0 {
			return []string{clipped(lesson, mostLessons/2)}
		}
	}
	return lessons
}

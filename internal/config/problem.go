package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Origin  string // "FILE:LINE", "environment NAME", "flag --NAME" or "default"
	Key     string // empty where no single setting is meant
	Message string
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Origin + ": " + p.Message
	}
	return p.Origin + ": " + p.Key + ": " + p.Message
}

// Error is everything that is wrong with the settings.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "settings: " + strings.Join(lines, "\n          ")
}

// unknown describes a key that does not exist, and the one that was meant.
func unknown(key string, known []string) string {
	best, distance := "", 3 // more than two slips is another word
	for _, k := range known {
		if d := slips(key, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "there is no such setting"
	}
	return fmt.Sprintf("there is no such setting; %s is meant?", best)
}

// slips counts the letters to insert, remove or replace between two words.
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

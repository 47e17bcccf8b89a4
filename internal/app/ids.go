package app

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// RandomIDs makes identifiers of 16 lower-case letters and digits (80 bits),
// legal in git refs and file names. Derived ones are the head of a SHA-256.
type RandomIDs struct{}

// New gives a fresh identifier.
func (RandomIDs) New() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return spell(b[:])
}

// Derive gives the identifier that belongs to parts.
func (RandomIDs) Derive(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return spell(sum[:10])
}

func spell(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

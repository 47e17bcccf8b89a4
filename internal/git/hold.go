package git

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// HeldBack is a new file, or a whole folder (path ends in "/"), that the server
// does not commit on its own: a person decides. It is kept in a snapshot.
type HeldBack struct {
	Path   string
	Reason string // secret, large, build_tree, nested_repository
	Size   int64
}

const (
	heldSecret = "secret"
	heldLarge  = "large"
	heldTree   = "build_tree"
	heldNested = "nested_repository"
)

// largeFile is the size above which a new file is held back.
const largeFile = 10 << 20

// isBuildTree names folders that hold what a tool made or downloaded.
func isBuildTree(name string) bool {
	switch name {
	case "node_modules", "bower_components", "__pycache__", ".venv", "venv", "target",
		".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".terraform",
		".next", ".nuxt", ".turbo", ".parcel-cache", ".cache", ".eggs":
		return true
	}
	return false
}

// secretName matches names under which people keep credentials.
func secretName(p string) bool {
	name := strings.ToLower(path.Base(p))
	if rest, ok := strings.CutPrefix(name, ".env"); ok && (rest == "" || rest[0] == '.') {
		switch rest {
		case ".example", ".sample", ".template", ".dist", ".defaults":
			return false
		}
		return true
	}
	switch name {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
		".netrc", "_netrc", ".git-credentials", ".pypirc", ".htpasswd", ".pgpass",
		"credentials.json", "client_secret.json", "terraform.tfstate":
		return true
	}
	switch path.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk":
		return true
	}
	return false
}

var keyMaterial = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)

// holdReason judges a new file by name, size and first bytes; "" lets it pass.
func holdReason(p string, size int64, first []byte) string {
	switch {
	case secretName(p):
		return heldSecret
	case size > largeFile:
		return heldLarge
	case bytes.Contains(first, []byte("-----BEGIN")) && keyMaterial.Match(first):
		return heldSecret
	}
	return ""
}

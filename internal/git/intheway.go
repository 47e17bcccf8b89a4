package git

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// inTheWay names what a checkout that is clean would lose by the changes: whatever
// is not tracked and stands where an added path or one of its folders goes. git
// itself overwrites what is ignored, whole folders of it too.
func (c *checkout) inTheWay(changes []FileStat) (paths []string, err error) {
	leaves := map[string]bool{}
	for _, f := range changes {
		leaves[f.Path] = f.Status == "D"
	}
	said := map[string]bool{}
	for _, f := range changes {
		if f.Status != "A" || !safePath(f.Path) {
			continue
		}
		found, err := c.obstacle(f.Path, leaves)
		if err != nil {
			return nil, storageError("look at what lies in "+c.dir, err)
		}
		if found != "" && !said[found] {
			said[found], paths = true, append(paths, found)
		}
	}
	return paths, nil
}

// obstacle finds what would have to go for the path; leaves are the tracked paths
// that go anyway.
func (c *checkout) obstacle(path string, leaves map[string]bool) (string, error) {
	for end := 0; end < len(path); end++ {
		if end = end + strings.IndexByte(path[end:]+"/", '/'); end == len(path) {
			break
		}
		switch st, err := lstat(filepath.Join(c.dir, path[:end])); {
		case missing(err):
			return "", nil
		case err != nil:
			return "", err
		case st.dir:
		case leaves[path[:end]]:
			return "", nil // it makes room, and nothing can lie below it
		default:
			return path[:end], nil
		}
	}
	var found string
	err := filepath.WalkDir(filepath.Join(c.dir, path), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(c.dir, at)
		if err != nil || leaves[filepath.ToSlash(rel)] {
			return err
		}
		found = filepath.ToSlash(rel)
		return fs.SkipAll
	})
	if missing(err) {
		err = nil
	}
	return found, err
}

package forge

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// place is what a remote's address says about its forge.
type place struct {
	scheme string // of its web pages: https, or http where the remote says so
	host   string // with the port of its web pages; "" for a path on this machine
	web    bool   // the address is one of its web pages
	prefix string // then: path below which they are, such as /gitea
	owner  string
	repo   string
}

var (
	shortPattern = regexp.MustCompile(`^(?:[^@/\s]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):([^:\s]+)$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// parseRemote takes an address apart. Its errors do not repeat it: it may hold a
// password.
func parseRemote(remote string) (place, error) {
	unknown := fail(KindUnknown, "the remote's address names no repository of a forge").
		hint("pull requests need a remote such as https://HOST/OWNER/REPOSITORY.git or git@HOST:OWNER/REPOSITORY.git")
	at := place{scheme: "https"}
	var where string
	switch {
	case strings.Contains(remote, "://"):
		u, err := url.Parse(remote)
		if err != nil {
			return place{}, unknown
		}
		where = u.Path
		switch u.Scheme {
		case "http", "https":
			at.scheme, at.host, at.web = u.Scheme, u.Host, true
		case "ssh", "git", "git+ssh", "ssh+git":
			at.host = u.Hostname() // the port is not that of the web pages
		case "file":
		default:
			return place{}, unknown
		}
		if at.host == "" && u.Scheme != "file" {
			return place{}, unknown
		}
	case strings.HasPrefix(remote, "/"), strings.HasPrefix(remote, "."):
		where = remote
	default:
		m := shortPattern.FindStringSubmatch(remote)
		if m == nil {
			return place{}, unknown
		}
		at.host, where = m[1], m[2]
	}
	parts := strings.Split(strings.Trim(where, "/"), "/")
	if len(parts) < 2 {
		return place{}, unknown
	}
	owner := len(parts) - 2
	at.owner, at.repo = parts[owner], strings.TrimSuffix(parts[owner+1], ".git")
	names := []string{at.owner, at.repo}
	if at.web && owner > 0 {
		at.prefix = "/" + path.Join(parts[:owner]...)
		names = append(names, parts[:owner]...)
	}
	for _, name := range names {
		if !namePattern.MatchString(name) || strings.Trim(name, ".") == "" {
			return place{}, unknown
		}
	}
	at.host = strings.ToLower(at.host)
	if slices.Contains([]string{"www.github.com", "ssh.github.com"}, at.host) {
		at.host = gitHubHost
	}
	return at, nil
}

const gitHubHost = "github.com"

// kindOf is what the settings say, else what the host's name or the API's path
// gives away.
func kindOf(at place, c Config) (string, error) {
	switch {
	case c.Kind == GitHub || c.Kind == Gitea:
		return c.Kind, nil
	case c.Kind != "":
		return "", fail(KindUnknown, "%q is no kind of forge", c.Kind).hint("set the forge's kind to github or gitea (Forgejo too)")
	case strings.Contains(at.host, "github"), strings.HasSuffix(strings.TrimRight(c.API, "/"), "/api/v3"):
		return GitHub, nil
	case strings.Contains(at.host, "gitea"), strings.Contains(at.host, "forgejo"), strings.HasSuffix(strings.TrimRight(c.API, "/"), "/api/v1"):
		return Gitea, nil
	case at.host == "":
		return "", fail(KindUnknown, "the remote is a path on this machine, which is no forge").hint("set the forge's kind and the address of its API, or ship without pull requests")
	}
	return "", fail(KindUnknown, "it cannot be told from its name what kind of forge %s is", at.host).
		hint("set the forge's kind to github or gitea (Forgejo too)")
}

// apiBase is the API's address without a slash at its end.
func apiBase(kind string, at place, override string) (string, error) {
	if override != "" {
		u, err := url.Parse(override)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return "", fail(KindUnknown, "the address of the forge's API is not an http or https URL of host and path alone").
				hint("set it to something like https://git.example.org/api/v1")
		}
		return strings.TrimRight(u.String(), "/"), nil
	}
	switch {
	case at.host == "":
		return "", fail(KindUnknown, "the remote is a path on this machine, which is no forge").hint("set the address of the forge's API")
	case kind == GitHub && at.prefix != "":
		return "", fail(KindUnknown, "the remote's path at %s is not OWNER/REPOSITORY", at.host).hint("check the remote's address and the forge's kind")
	case at.host == gitHubHost && kind == GitHub:
		return "https://api." + gitHubHost, nil
	case kind == GitHub:
		return at.scheme + "://" + at.host + "/api/v3", nil
	}
	return at.scheme + "://" + at.host + at.prefix + "/api/v1", nil
}

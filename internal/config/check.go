package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check finds values that are of the right kind and still make no sense.
func (c *Config) check() []Problem {
	var problems []Problem
	wrong := func(key, format string, args ...any) {
		problems = append(problems, Problem{c.originOf(key), key, fmt.Sprintf(format, args...)})
	}
	for _, v := range values(c) {
		f, _ := fieldFor(v.key)
		if message := outOfRange(f, v.value); message != "" {
			wrong(v.key, "%s", message)
		}
	}
	if message := badAddress(c.Addr); message != "" {
		wrong("addr", "%q is no address to listen on: %s", c.Addr, message)
	}
	if c.DataDir == "" {
		wrong("data_dir", "there is no home folder to put it in: set it")
	}
	if message := badDatabase(c.Database.Reveal()); message != "" {
		wrong("database", "%s", message)
	}
	for _, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "*/: \t") {
			wrong("allowed_hosts", "%q is not the exact name of a host", host)
		}
	}
	if c.Limits.Task > c.Limits.Wall {
		wrong("limits.task", "%s is more than limits.wall allows (%s)", formatDuration(c.Limits.Task), formatDuration(c.Limits.Wall))
	}
	return problems
}

// outOfRange holds a value against the enum and min tags of its field.
func outOfRange(f field, value any) string {
	if enum := f.enum(); enum != nil && !slices.Contains(enum, fmt.Sprint(value)) {
		return fmt.Sprintf("%q is not one of %s", value, strings.Join(enum, ", "))
	}
	lowest, hasMin := f.tag.Lookup("min")
	if !hasMin {
		return ""
	}
	least, err := f.parse(lowest)
	if err != nil {
		return fmt.Sprintf("the lowest value %q is none: %v", lowest, err)
	}
	switch v := value.(type) {
	case int:
		if v < least.(int) {
			return fmt.Sprintf("%d is less than %d", v, least)
		}
	case time.Duration:
		if v < least.(time.Duration) {
			return fmt.Sprintf("%s is less than %s", formatDuration(v), lowest)
		}
	}
	return ""
}

func badAddress(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "HOST:PORT is wanted"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "the port is not a number from 0 to 65535"
	}
	return ""
}

// badDatabase never repeats the URL: it may hold a password.
func badDatabase(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "is not a URL that begins with postgres://; leave it empty for SQLite"
	}
	return ""
}

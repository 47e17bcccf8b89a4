package forge

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// Both forges close a pull request, and comment on it, in the same words.

// close comments on an open pull request and closes it.
func (c *client) close(ctx context.Context, number int, comment string) (Pull, error) {
	p, err := c.pull(ctx, number)
	if err != nil || p.State != StateOpen {
		return p, err
	}
	unsaid := c.comment(ctx, number, comment)
	if unsaid != nil && !lasts(unsaid) {
		return p, unsaid // it is said when this is tried again
	}
	var body pullBody
	err = c.call(ctx, http.MethodPatch, "/pulls/"+strconv.Itoa(number), nil, map[string]string{"state": "closed"}, &body)
	if KindOf(err) == KindRefused { // it may have been merged just now
		if now, lost := c.pull(ctx, number); lost == nil && now.State != StateOpen {
			return now, nil
		}
	}
	if err != nil {
		return p, err
	}
	closed, err := body.pull()
	if err != nil {
		return p, err
	}
	if closed.State == StateOpen {
		return closed, badAnswer("the pull request that it was to close as open")
	}
	return closed, unsaid
}

// lasts is true for a refusal of one request that says nothing about the next.
func lasts(err error) bool {
	kind := KindOf(err)
	return kind == KindForbidden || kind == KindRefused || kind == KindNotFound
}

// comment says something below a pull request, unless it is said there. Some versions
// of Gitea give all comments on every page.
func (c *client) comment(ctx context.Context, number int, text string) error {
	text = beginning(text, maxBody)
	path := "/issues/" + strconv.Itoa(number) + "/comments"
	seen := map[int64]bool{}
	for page, fresh := 1, true; fresh && page <= giteaPages; page++ {
		var said []struct {
			ID   int64  `json:"id"`
			Body string `json:"body"`
		}
		query := pageQuery(page, "per_page", perPage)
		query.Set("limit", strconv.Itoa(giteaPage))
		if err := c.call(ctx, http.MethodGet, path, query, nil, &said); err != nil {
			return err
		}
		fresh = false
		for _, s := range said {
			if strings.TrimSpace(strings.ReplaceAll(s.Body, "\r\n", "\n")) == strings.TrimSpace(text) {
				return nil
			}
			fresh = fresh || !seen[s.ID]
			seen[s.ID] = true
		}
	}
	var made struct {
		ID int64 `json:"id"`
	}
	return c.call(ctx, http.MethodPost, path, nil, map[string]string{"body": text}, &made)
}

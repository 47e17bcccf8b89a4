package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/forge"
	"github.com/claudomator/claudomator/internal/telemetry"
	"github.com/claudomator/claudomator/internal/work"
)

// pulls is the engine's forge: GitHub and Gitea, with tokens from the server's
// environment. A token is hidden in log and transcripts from its first use on, and
// refused where agents are given it.
type pulls struct {
	getenv func(name string) string
	agents map[string]config.Agent
	masks  []*telemetry.Mask

	mu    sync.Mutex
	known map[string]bool // tokens that are hidden
}

var _ engine.Forge = (*pulls)(nil)

// Open implements engine.Forge.
func (p *pulls) Open(ctx context.Context, r engine.PullRequest) (work.Pull, error) {
	f, err := p.forge(r)
	if err != nil {
		return work.Pull{}, err
	}
	got, err := f.Open(ctx, forge.PullSpec{Title: r.Title, Body: r.Body, Head: r.Branch, Base: r.Target})
	return pullOf(got), forgeError(err)
}

// Look implements engine.Forge.
func (p *pulls) Look(ctx context.Context, r engine.PullRequest, number int) (engine.PullLook, error) {
	f, err := p.forge(r)
	if err != nil {
		return engine.PullLook{}, err
	}
	got, err := f.Look(ctx, number)
	look := lookOf(got)
	if got.Checks == forge.ChecksFailed {
		look.Red = red(got.Failed)
	}
	return look, forgeError(err)
}

// Close implements engine.Forge.
func (p *pulls) Close(ctx context.Context, r engine.PullRequest, number int, comment string) (engine.PullLook, error) {
	f, err := p.forge(r)
	if err != nil {
		return engine.PullLook{}, err
	}
	if number == 0 {
		found, err := f.Find(ctx, r.Branch, r.Target)
		if err != nil || found.Number == 0 {
			return engine.PullLook{}, forgeError(err)
		}
		number = found.Number
	}
	got, err := f.Close(ctx, number, comment)
	return lookOf(got), forgeError(err)
}

// forge is the one that the project's remote belongs to.
func (p *pulls) forge(r engine.PullRequest) (forge.Forge, error) {
	settings := forge.Config{Kind: r.Forge.Kind, API: r.Forge.API}
	kind, err := forge.Which(r.Remote, settings)
	if err != nil {
		return nil, forgeError(err)
	}
	name := cmp.Or(r.Forge.TokenEnv, usualToken(kind))
	for agent, a := range p.agents {
		if slices.Contains(a.Inherit, name) {
			return nil, work.Errorf(work.Forbidden, "the forge's token %s is handed to the agents of type %s", name, agent).WithReason("forge_token").
				WithHint("take it out of agents.%s.inherit, or keep the forge's token in another variable (the project's forge token_env)", agent)
		}
	}
	if settings.Token = p.getenv(name); settings.Token == "" {
		return nil, work.Errorf(work.Unauthenticated, "the server's environment has no %s with a token for the forge", name).WithReason("forge_token").
			WithHint("start the server with it, or name another variable: the project's forge token_env")
	}
	p.hide(settings.Token)
	f, err := forge.For(r.Remote, settings)
	return f, forgeError(err)
}

// hide masks a token for good.
func (p *pulls) hide(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]bool{}
	}
	if !p.known[token] {
		p.known[token] = true
		for _, m := range p.masks {
			m.Add(token)
		}
	}
}

// usualToken is the variable in which the tools of a kind of forge look for its token.
func usualToken(kind string) string {
	if kind == forge.GitHub {
		return "GITHUB_TOKEN"
	}
	return "GITEA_TOKEN"
}

func lookOf(p forge.Pull) engine.PullLook {
	return engine.PullLook{Pull: pullOf(p), Commit: p.MergeCommit}
}

func pullOf(p forge.Pull) work.Pull {
	return work.Pull{Number: p.Number, URL: p.URL, Head: p.Head, State: work.PullState(p.State), Checks: string(p.Checks)}
}

const mostRed = 32 << 10 // bytes of failed checks that a fix attempt is told

// red is what the failed checks say, as it is told to who mends them.
func red(failed []forge.Check) string {
	var b strings.Builder
	for _, c := range failed {
		text := fmt.Sprintf("\n%s: failed %s\n%s\n", c.Name, c.URL, strings.TrimSpace(c.Excerpt))
		if b.Len()+len(text) > mostRed {
			fmt.Fprintf(&b, "\n%s: failed %s\n", c.Name, c.URL)
			continue
		}
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String())
}

// forgeError is a forge's error in the words the engine knows.
func forgeError(err error) error {
	f, ok := errors.AsType[*forge.Error](err)
	if !ok {
		return err
	}
	code := work.Conflict
	switch f.Kind {
	case forge.KindRateLimited:
		e := work.Errorf(work.Exhausted, "%w", err).WithReason(string(f.Kind))
		e.Hint = f.Hint
		return &engine.LaterError{At: cmp.Or(f.RetryAt, time.Now().Add(time.Minute)), Err: e}
	case forge.KindUnreachable, forge.KindBadAnswer: // a proxy before it may speak instead
		code = work.Unavailable
	case forge.KindUnauthenticated:
		code = work.Unauthenticated
	case forge.KindForbidden:
		code = work.Forbidden
	case forge.KindNotFound:
		code = work.NotFound
	case forge.KindUnknown:
		code = work.Invalid
	case forge.KindRefused, forge.KindMoved:
	}
	e := work.Errorf(code, "%w", err).WithReason(string(f.Kind))
	e.Hint = f.Hint
	return e
}

package agents_test

// program is an agent program, and what of it differs from the others.
type program struct {
	name string
	// prepare writes what it reads of its home, and adds to the server's
	// environment, so that it asks the model server at base.
	prepare func(w *world, base string)
	inherit []string // variables it gets from the server
	costs   bool     // it reports a cost
}

func programs() map[string]program {
	return map[string]program{
		"claude": {
			name: "claude",
			prepare: func(w *world, base string) {
				w.environ = append(w.environ, "ANTHROPIC_BASE_URL="+base)
				if w.subscribed {
					w.environ = append(w.environ, "CLAUDE_CODE_OAUTH_TOKEN="+key)
				} else {
					w.environ = append(w.environ, "ANTHROPIC_API_KEY="+key)
				}
			},
			inherit: []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
			costs:   true,
		},
	}
}

// key is what the programs log in with.
const key = "dummy-key-of-the-tests"

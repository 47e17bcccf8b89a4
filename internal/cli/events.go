package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newAttentionCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "attention", Short: "List all that needs a person", Args: takes(), Example: "  claudomator attention",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			items, err := api.Attention(ctx)
			if err != nil {
				return err
			}
			return s.show(list(items), func(p *page) {
				if len(items) == 0 {
					p.line("nothing needs you")
				}
				p.attention(items, "")
			})
		}),
	}
}

func (p *page) attention(items []work.Item, indent string) {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = itemID(item)
	}
	short := shorten(ids)
	for i, item := range items {
		p.line("%s%s  %s  %s", indent, short(ids[i]), p.style(yellow, string(item.Kind)), p.style(bold, inert(item.Name)))
		if text := cmp.Or(item.Text, strings.TrimPrefix(holdText(item.Hold), ", ")); text != "" {
			p.paragraph("", indent+"  ", inert(text))
		}
		if possible := append(actWords(item.Acts), wordsOf(item.Actions)...); len(possible) > 0 {
			p.paragraph(dim, indent+"  ", "possible: "+strings.Join(possible, ", "))
		}
	}
}

func itemID(item work.Item) string { return cmp.Or(string(item.TaskID), string(item.StoryID)) }

func newEventsCommand(s *shell) *cobra.Command {
	var after int64
	var task string
	var limit int
	c := &cobra.Command{
		Use: "events", Short: "Follow what happens, or list what happened to a task", Args: takes(),
		Long: "Follow what happens, from now on or after a sequence number, until interrupted. With\n" +
			"--task: list what happened to that task, and end. With -o json every line is one event.",
		Example: "  claudomator events --after 0 -o json\n  claudomator events --task basket",
	}
	c.Flags().Int64Var(&after, "after", -1, "begin after this sequence number; 0: from the first, -1: from now on")
	c.Flags().StringVar(&task, "task", "", "list those of one task")
	c.Flags().IntVar(&limit, "limit", 0, "end after so many; 0: do not")
	_ = c.RegisterFlagCompletionFunc("task", s.completeTasks) // fails only for a flag that does not exist
	c.RunE = s.call(func(ctx context.Context, api app.API, _ []string) error {
		if task != "" {
			events, err := api.TaskEvents(ctx, task)
			if err != nil {
				return err
			}
			events = slices.DeleteFunc(events, func(e work.Event) bool { return e.Seq <= after })
			if limit > 0 {
				events = events[:min(limit, len(events))]
			}
			for _, e := range events {
				if err := s.printEvent(e); err != nil {
					return err
				}
			}
			return nil
		}
		return s.followEvents(ctx, api, after, limit)
	})
	return c
}

func (s *shell) followEvents(ctx context.Context, api app.API, after int64, limit int) error {
	for e, err := range api.Events(ctx, after) {
		if err != nil {
			return err
		}
		if err := s.printEvent(e); err != nil {
			return err
		}
		if limit--; limit == 0 {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return work.Errorf(work.Unavailable, "the event stream has ended").WithHint("go on with --after and the last number")
}

// printEvent prints one event at once: someone may be waiting for it.
func (s *shell) printEvent(e work.Event) error {
	if s.format == jsonFormat {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("print the event: %w", err)
		}
		_, err = s.Out.Write(append(escape(data), '\n'))
		return err
	}
	p := s.page()
	by := strings.TrimSuffix(string(e.Actor.Kind)+" "+e.Actor.ID, " ")
	p.line("%d  %s  %s  %s  %s%s", e.Seq, e.At.UTC().Format(time.RFC3339), p.style(cyan, inert(e.Kind)), cmp.Or(string(e.Task), "-"), inert(by), inert(bodyText(e.Body)))
	return s.flush(p)
}

func bodyText(body map[string]any) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(body)) {
		data, err := json.Marshal(body[key])
		if err != nil {
			data = []byte("?")
		}
		b.WriteString("  " + key + "=" + string(data))
	}
	return b.String()
}

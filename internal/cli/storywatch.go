package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newStoryWatchCommand(s *shell) *cobra.Command {
	var through, asJSON bool
	c := &cobra.Command{
		Use: "watch STORY", Short: "Follow a story until it needs a person, or is over", Args: takes("STORY"),
		Long: "Follow a story until something in it needs a person, or it is over. On a terminal its tree\n" +
			"is drawn and kept up to date, else every event is a line; --json (or -o json) prints events\n" +
			"as objects. Ctrl-C leaves; the story goes on. With --through it is followed past what needs\n" +
			"a person, as long as something else goes on. Exit codes are those of `story wait`.",
		Example: "  claudomator story watch gift-cards", ValidArgsFunction: s.completeStories,
	}
	c.Flags().BoolVar(&through, "through", false, "go on while a person is needed, as long as something moves")
	c.Flags().BoolVar(&asJSON, "json", false, "print events, one JSON object a line")
	c.RunE = func(c *cobra.Command, args []string) error {
		if asJSON {
			s.format = jsonFormat
		}
		return s.call(func(ctx context.Context, api app.API, args []string) error {
			w := storyWatch{shell: s, waiter: storyWaiter{api: api, ref: args[0]}, through: through, canvas: canvas{shell: s}}
			w.live = s.Terminal && s.format != jsonFormat && s.env("TERM") != "dumb"
			return w.run(ctx)
		})(c, args)
	}
	return c
}

// storyWatch shows how a story goes.
type storyWatch struct {
	shell   *shell
	waiter  storyWaiter
	through bool
	live    bool // the tree is drawn again and again
	canvas  canvas

	items []work.Item // that need a person
	root  *app.TreeNode
	told  string // how the story stood at first, when lines are printed
}

func (w *storyWatch) run(ctx context.Context) error {
	watch := w.waiter.watch()
	watch.look = w.look
	if !w.live {
		watch.heard = w.shell.printEvent
	}
	if err := watch.run(ctx); err != nil {
		return err
	}
	if w.shell.format != jsonFormat {
		p := w.shell.page()
		if p.storyLine(w.waiter.view); p.text.String() == w.told {
			p.text.Reset() // it has stood there since the beginning
		}
		p.attention(slices.DeleteFunc(slices.Clone(w.items), func(i work.Item) bool { return i.Kind == work.ItemStory }), "  ")
		if err := w.shell.flush(p); err != nil {
			return err
		}
	}
	return w.waiter.verdict()
}

func (w *storyWatch) look(ctx context.Context) (bool, error) {
	api := w.waiter.api
	over, err := w.waiter.look(ctx)
	if err != nil {
		return false, err
	}
	v := w.waiter.view
	if w.items, err = itemsOf(ctx, api, v.ID); err != nil {
		return false, err
	}
	if w.live {
		if w.root, err = api.StoryTree(ctx, string(v.ID)); err != nil {
			return false, err
		}
		if err := w.canvas.draw(w.picture()); err != nil {
			return false, err
		}
	} else if w.told == "" && w.shell.format != jsonFormat {
		p := w.shell.page()
		p.storyLine(v)
		w.told = p.text.String()
		if err := w.shell.flush(p); err != nil {
			return false, err
		}
	}
	return over || !w.through && slices.ContainsFunc(w.items, func(i work.Item) bool { return !i.Kind.Resumes() }), nil
}

// picture is the tree with a line below it that sums up, as high as the terminal:
// where it is too high, what is COMPLETED is folded, and then the end is left out.
func (w *storyWatch) picture() []string {
	const usual = 24
	height := usual
	if w.shell.Height != nil {
		if known := w.shell.Height(); known > 0 {
			height = known
		}
	}
	foot := w.shell.page()
	w.footer(foot)
	below := linesOf(foot)
	most := max(height-1-len(below), 1) // the cursor stands on a line of its own
	var tree []string
	for _, folded := range []bool{false, true} {
		p := w.shell.page()
		p.tree(w.root, folded)
		if tree = linesOf(p); len(tree) <= most {
			return append(tree, below...)
		}
	}
	p := w.shell.page()
	left := fmt.Sprintf("%d more lines: claudomator story tree %s", len(tree)-most+1, w.waiter.view.ID)
	return append(append(tree[:most-1:most-1], p.style(dim, p.clip(left, 0))), below...)
}

func (w *storyWatch) footer(p *page) {
	v := w.waiter.view
	facts := []string{string(v.Status)}
	if text := progressText(v.Progress); text != "" {
		facts = append(facts, text)
	}
	if v.SpentUSD > 0 {
		facts = append(facts, dollars(v.SpentUSD))
	}
	if n := len(w.items); n > 0 {
		facts = append(facts, count(n, "thing")+" for you")
	}
	facts = append(facts, p.now.Local().Format("15:04:05"))
	if text := inert(firstLine(storyState(p, v))); text != "" {
		facts = append(facts, text)
	}
	separator := " · "
	if p.ascii {
		separator = " | "
	}
	p.line("%s", p.style(dim, p.clip(strings.Join(facts, separator), 0)))
}

func linesOf(p *page) []string {
	return slices.Collect(strings.Lines(p.text.String()))
}

// canvas shows lines on a terminal, in place of those it showed before: each is
// overwritten in one go, so that nothing flickers.
type canvas struct {
	shell *shell
	shown []string
	width int // of the terminal, when they were shown
}

func (c *canvas) draw(lines []string) error {
	if slices.Equal(lines, c.shown) {
		return nil
	}
	var out strings.Builder
	if n := c.rows(); n > 0 {
		fmt.Fprintf(&out, "\r\x1b[%dA", n)
	}
	for _, line := range lines {
		out.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	c.shown, c.width = lines, c.columns()
	if _, err := io.WriteString(c.shell.Out, out.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (c *canvas) columns() int {
	if c.shell.Width == nil {
		return 0
	}
	return c.shell.Width()
}

// rows is how many lines of the terminal the last picture takes: a terminal that
// has become narrower has broken those that are too long now.
func (c *canvas) rows() int {
	width := c.columns()
	if width == 0 || width >= c.width {
		return len(c.shown)
	}
	n := 0
	for _, line := range c.shown {
		n += max((columns(uncolored(strings.TrimSuffix(line, "\n")))+width-1)/width, 1)
	}
	return n
}

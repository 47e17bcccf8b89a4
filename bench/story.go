package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// commitOwn is what a builder of a story does: one line, in a file of its own.
const commitOwn = "echo x >f-$CLAUDOMATOR_TASK_ID; git add .; git commit -qm x"

// story measures what the orchestration of a story costs: a large one, all of whose
// nodes are built, gated, judged by four evaluators and an arbiter, and integrated;
// then small ones beside many that are finished, and what a person looks at there.
func (b *bench) story(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "story")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil { //nolint:gosec // as git makes them
		return nil, err
	}
	if err := repository(ctx, repo, 20); err != nil {
		return nil, err
	}
	nodes := b.pick(100, 3)
	if rows, err = b.largeStory(ctx, dir, repo, nodes); err != nil {
		return rows, err
	}
	many := b.pick(1000, 20)
	data := filepath.Join(dir, "full")
	began := time.Now()
	stories, last, err := fillStories(ctx, data, many)
	if err != nil {
		return rows, err
	}
	_, _ = fmt.Fprintf(b.progress, "    (%d stories stored in %.0f s)\n", many, time.Since(began).Seconds())
	empty, err := b.storyServer(ctx, filepath.Join(dir, "empty"), repo, 0)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	full, err := b.storyServer(ctx, data, repo, last)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	found, err := full.storyPages(ctx, stories, b.pick(500, 10))
	rows = append(rows, found...)
	if err != nil {
		return rows, err
	}
	found, err = b.storiesBeside(ctx, empty, full, many)
	return append(rows, found...), err
}

// storyServer starts a server on a data folder whose last event is known, with a
// project and all who judge a story.
func (b *bench) storyServer(ctx context.Context, data, repo string, last int64) (*server, error) {
	s, err := b.start(ctx, data, 4, last)
	if err != nil {
		return nil, err
	}
	name, agent, gates := "told", "command", []string{"true"}
	_, err = s.AddProject(ctx, app.ProjectInput{Name: &name, Repository: &repo, Agent: &agent, Validate: &gates})
	for _, role := range panel() {
		if err == nil {
			argv := []string{"true"}
			_, err = s.SetRole(ctx, string(role), app.RoleInput{Command: &argv})
		}
	}
	if err == nil {
		_, err = s.tell(ctx, "first", 1) // a vault is made at its first use
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare for stories: %w", err), s.close())
	}
	return s, nil
}

// told is one story, from its approval until it waits for a person.
type told struct {
	id   work.StoryID
	wall time.Duration
	used cpu
	runs int // executions: of builders, gates and judges
}

func (t told) each() cpu { return t.used.by(max(1, t.runs)) }

// tell lets a story of so many nodes below its root be built and judged.
func (s *server) tell(ctx context.Context, name string, nodes int) (told, error) {
	plan := app.PlanInput{Name: name, Goal: "exit 1"}
	for i := range nodes {
		plan.Tasks = append(plan.Tasks, app.PlanTaskInput{Name: fmt.Sprint("node ", i), Instructions: commitOwn})
	}
	before, err := s.cpu()
	if err != nil {
		return told{}, err
	}
	runs, began := s.runs(), time.Now()
	made, err := s.ApprovePlan(ctx, app.ApproveInput{Project: "told", PlanInput: plan})
	if err != nil {
		return told{}, fmt.Errorf("approve a plan: %w", err)
	}
	done, err := s.events.await(ctx, made.Story.RootTaskID, "story.review_ready")
	if err != nil {
		return told{}, err
	}
	after, err := s.cpu()
	return told{made.Story.ID, done.arrived.Sub(began), after.minus(before), s.runs() - runs}, err
}

// runs counts the executions that are over: of agents, and of gates.
func (s *server) runs() int {
	return s.events.count("execution.ended") + s.events.count("gates.passed")
}

func (b *bench) largeStory(ctx context.Context, dir, repo string, nodes int) (rows []row, err error) {
	s, err := b.storyServer(ctx, filepath.Join(dir, "large"), repo, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	small, err := s.tell(ctx, "small", max(1, nodes/10))
	if err != nil {
		return nil, err
	}
	large, err := s.tell(ctx, "large", nodes)
	if err != nil {
		return nil, err
	}
	rows = []row{
		{
			fmt.Sprintf("own CPU per execution, story of %d nodes, full review, trivial agents", nodes), "≤ 10 ms beyond agent and git",
			fmt.Sprintf("%s ms (git and agent %s); %d executions", millis(large.each().own), millis(large.each().reaped), large.runs),
			digits(float64(large.each().own)/float64(max(1, small.each().own))) + fmt.Sprintf(" of one of %d nodes", max(1, nodes/10)),
			within(large.each().own, stepGoal),
		},
		{
			what:     "the same: wall",
			measured: fmt.Sprintf("%.1f s, %s executions/s", large.wall.Seconds(), digits(float64(large.runs)/large.wall.Seconds())),
		},
	}
	for _, path := range []string{"", "/task-tree"} {
		took, size, err := s.fetches(ctx, "/api/stories/"+string(large.id)+path, b.pick(100, 5))
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{what: "that story, /api/stories/ID" + path, measured: fmt.Sprintf("%s, %.1f kB", took, float64(size)/1000)})
	}
	return rows, nil
}

// storyPages measures what a person looks at; a story that is looked at is another
// one each time, so that none is in the server's memory.
func (s *server) storyPages(ctx context.Context, stories []work.StoryID, n int) (rows []row, err error) {
	beside := fmt.Sprintf(", %d finished stories", len(stories))
	measure := func(what string, path func(i int) string) error {
		var all samples
		size := 0
		for i := range n {
			took, last, err := s.fetches(ctx, path(i), 1)
			if err != nil {
				return err
			}
			all, size = append(all, took...), last
		}
		rows = append(rows, row{what + beside, "p99 ≤ 10 ms", fmt.Sprintf("%s, %.1f kB", all, float64(size)/1000), "", within(all.p99(), pageGoal)})
		return nil
	}
	one := func(i int) string { return "/api/stories/" + string(stories[i*7%len(stories)]) }
	err = errors.Join(
		measure("first page of 50 stories", func(int) string { return "/api/stories?limit=50" }),
		measure("first page of stories that are open", func(int) string { return "/api/stories?limit=50&status=IN_PROGRESS&status=REVIEW_READY" }),
		measure("a story of 5 nodes", one),
		measure("its tree", func(i int) string { return one(i) + "/task-tree" }),
	)
	return rows, err
}

// storiesBeside measures steps and small stories in turns on both servers.
func (b *bench) storiesBeside(ctx context.Context, empty, full *server, many int) ([]row, error) {
	var steps [2]samples
	var sums [2]told
	for round := range b.pick(5, 1) {
		for i, s := range []*server{empty, full} {
			took, err := s.storySteps(ctx, fmt.Sprint("edited ", round), b.pick(60, 3))
			if err != nil {
				return nil, err
			}
			steps[i] = append(steps[i], took...)
			one, err := s.tell(ctx, fmt.Sprint("round ", round), b.pick(10, 1))
			if err != nil {
				return nil, err
			}
			sums[i].used, sums[i].runs, sums[i].wall = sums[i].used.plus(one.used), sums[i].runs+one.runs, sums[i].wall+one.wall
		}
	}
	ratio := func(full, empty time.Duration) string {
		return digits(float64(full)/float64(max(1, empty))) + " of the empty one's"
	}
	where := fmt.Sprintf(" beside %d finished stories", many)
	return []row{
		{
			what: "a step (edit a draft)" + where, measured: steps[1].String() + ", empty database " + steps[0].String(),
			ratio: ratio(steps[1].p50(), steps[0].p50()),
		},
		{
			what: "own CPU per execution of small stories" + where, ratio: ratio(sums[1].each().own, sums[0].each().own),
			measured: fmt.Sprintf("%s ms, empty database %s (%d executions each)", millis(sums[1].each().own), millis(sums[0].each().own), sums[1].runs),
		},
		{
			what: "the same: wall", ratio: ratio(sums[1].wall, sums[0].wall),
			measured: fmt.Sprintf("%.1f s, empty database %.1f", sums[1].wall.Seconds(), sums[0].wall.Seconds()),
		},
	}, nil
}

// storySteps edits a draft: the smallest command that a story settles after.
func (s *server) storySteps(ctx context.Context, name string, n int) (took samples, err error) {
	plan := app.PlanInput{Name: name, Goal: "exit 1"}
	made, err := s.ApprovePlan(ctx, app.ApproveInput{Project: "told", PlanInput: plan, Draft: true})
	if err != nil {
		return nil, fmt.Errorf("keep a draft: %w", err)
	}
	for i := range n {
		spec := fmt.Sprint("edit ", i)
		began := time.Now()
		if _, err := s.EditStory(ctx, string(made.Story.ID), app.StoryPatch{Spec: &spec}); err != nil {
			return nil, fmt.Errorf("edit a draft: %w", err)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

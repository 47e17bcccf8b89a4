package app

import (
	"context"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// maxLessons bounds what a project keeps of lessons, and what one retro adds.
const (
	maxLessons      = 200
	maxRetroLessons = 10
	maxLesson       = 1000 // bytes
)

// reportLessons keeps what a retro has learned with the project, in place of what
// it reported before; planners and builders are told, and people can edit it.
func (s *Service) reportLessons(ctx context.Context, c RunCaller, lessons []string) error {
	if err := s.use(ctx, c, ToolLessons); err != nil {
		return err
	}
	if len(lessons) > maxRetroLessons {
		return work.Errorf(work.Invalid, "%d lessons, at most %d are taken", len(lessons), maxRetroLessons).WithHint("keep those that matter most")
	}
	clean := []string{}
	for _, l := range lessons {
		l = strings.Join(strings.Fields(l), " ")
		if err := work.CheckText("a lesson", l, maxLesson, false); err != nil {
			return err
		}
		if l != "" && !slices.Contains(clean, l) {
			clean = append(clean, l)
		}
	}
	var project work.ProjectID
	var before []string
	err := s.own(ctx, c, func(tree *work.Tree, t *work.Task) error {
		project, before = tree.Project.ID, slices.Clone(t.Lessons)
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Do(ctx, c.Tree, c.actor(), work.Report{Execution: c.Execution, Lessons: &clean}); err != nil {
		return err
	}
	return s.learn(ctx, project, before, clean)
}

// learn replaces lessons of a project by others; a person's edit at the same
// moment is kept, and looked at again.
func (s *Service) learn(ctx context.Context, project work.ProjectID, before, now []string) error {
	for range tries {
		p, err := s.o.Settings.Project(ctx, string(project))
		if err != nil {
			return err
		}
		all := slices.DeleteFunc(slices.Clone(p.Lessons), func(l string) bool { return slices.Contains(before, l) && !slices.Contains(now, l) })
		for _, l := range now {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
		if len(all) > maxLessons {
			return work.Errorf(work.Exhausted, "the project has %d lessons, at most %d are kept", len(p.Lessons), maxLessons).WithReason("too_many").
				WithHint("a person removes some: claudomator project set NAME --lesson …")
		}
		if slices.Equal(all, p.Lessons) {
			return nil
		}
		p.Lessons, p.UpdatedAt = all, s.o.Now()
		err = s.o.Settings.SaveProject(ctx, p)
		if work.CodeOf(err) != work.Conflict {
			return err
		}
	}
	return work.Errorf(work.Conflict, "the project kept changing").WithReason("busy").WithHint("report the lessons again")
}

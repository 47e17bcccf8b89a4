package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

// The chapters of the demo, in order.

const demoStory = "New voices" // as the demo's planner calls it

// sample makes the repository that the demo works on, and what its agents do.
func (s *show) sample() error {
	s.say("One story, from a goal to what is shipped, in about ten seconds. The agents")
	s.say("follow a script in the place of a model; all else is real. It is all made in")
	s.say("%s%s.", s.dir, map[bool]string{true: ", and stays there", false: ", and removed in the end"}[s.keeps])
	s.chapter("A repository: a greeter with one voice")
	if _, err := s.shell(s.dir, demoSample); err != nil {
		return err
	}
	if err := os.Mkdir(s.site, 0o755); err != nil {
		return fmt.Errorf("make the folder to deploy to: %w", err)
	}
	if err := os.WriteFile(s.script(), demoAgents, 0o600); err != nil {
		return fmt.Errorf("write what the agents do: %w", err)
	}
	return s.sees("sh greet.sh Ada && git log --oneline")
}

func (s *show) script() string { return filepath.Join(s.dir, "agents.yaml") }

// project tells the server of the repository: how it is checked, and deployed.
func (s *show) project() error {
	_, err := s.types("project", "add", "greeter", "--repo", s.repo, "--agent", "scripted", "--validate", "sh check.sh",
		"--deploy", `sh poster.sh Ada | tee "$SITE/poster.txt"`, "--env", "SITE="+s.site, "--env", "SCRIPTED_AGENT_SCRIPT="+s.script())
	return err
}

// plan has a plan made for a goal.
func (s *show) plan() error {
	s.chapter("A goal becomes a plan")
	if _, err := s.types("story", "elaborate", "--project", "greeter", "The greeter can shout and whisper, and print a poster"); err != nil {
		return err
	}
	err := s.follow(func(e work.Event) bool { return e.Kind == "task.completed" && s.role(e.Task) == work.Planner })
	if err != nil {
		return err
	}
	story, err := s.api.Story(s.ctx, demoStory)
	if err != nil {
		return err
	}
	s.say("")
	s.drawPlan(&story.Story)
	return nil
}

// build begins the work, and goes on until nothing is left to do but to answer.
func (s *show) build() error {
	s.chapter("Approved: built side by side, judged at every level, mended")
	if _, err := s.types("story", "approve", demoStory); err != nil {
		return err
	}
	s.say("   On all that is built the server runs sh check.sh; then four agents judge it")
	s.say("   at once, and an arbiter decides.")
	left := []string{"Whisper", "A poster"}
	return s.follow(func(e work.Event) bool {
		if e.Kind == "task.completed" {
			left = slices.DeleteFunc(left, func(name string) bool { return name == s.tasks[e.Task].Name })
		}
		return len(left) == 0 && s.asking != ""
	})
}

// answer answers what a builder has asked; the rest of the tree follows.
func (s *show) answer() error {
	s.chapter("A question: only its part has waited for you")
	out, err := s.types("attention")
	if err != nil {
		return err
	}
	s.paste(out)
	if _, err := s.types("task", "answer", s.tasks[s.asking].Name, "!!!"); err != nil {
		return err
	}
	return s.follow(func(e work.Event) bool { return e.Kind == "story.review_ready" })
}

// review shows what a person decides about, who then sides with the judge that the
// arbiter did not follow.
func (s *show) review() error {
	s.chapter("Your decision: all is built, and your branch is as it was")
	if err := s.sees("git log --oneline main && git status --short"); err != nil {
		return err
	}
	root, err := s.api.StoryTree(s.ctx, demoStory)
	if err != nil {
		return err
	}
	story, err := s.api.Story(s.ctx, demoStory)
	if err != nil {
		return err
	}
	s.say("")
	s.drawTree(root, story.Status)
	s.say("")
	s.drawProof(root)
	s.say("\n   You side with quality, and send it back:")
	if _, err := s.types("story", "reject", demoStory, "--at", "greet.sh:2=name the voices that there are"); err != nil {
		return err
	}
	if err := s.follow(func(e work.Event) bool { return e.Kind == "story.review_ready" }); err != nil {
		return err
	}
	_, err = s.types("story", "accept", demoStory)
	return err
}

// ship lands what was accepted, and deploys it.
func (s *show) ship() error {
	s.chapter("Shipped: landed with the improvement, deployed, and looked at")
	if _, err := s.types("story", "ship", demoStory); err != nil {
		return err
	}
	if err := s.follow(func(e work.Event) bool { return e.Kind == "ship.done" }); err != nil {
		return err
	}
	story, err := s.api.Story(s.ctx, demoStory)
	if err != nil {
		return err
	}
	if story.Status != work.Deployed {
		return fmt.Errorf("the story is %s: %s", story.Status, story.Ship.Error)
	}
	executions, err := s.api.Executions(s.ctx, string(story.RootID))
	if err != nil {
		return err
	}
	for _, x := range executions {
		if x.Kind == work.DeployRun {
			out, err := s.types("task", "logs", string(x.TaskID), "--execution", fmt.Sprint(x.Number))
			if err != nil {
				return err
			}
			s.paste(out)
		}
	}
	return s.sees("git log --oneline --first-parent main && git diff --stat HEAD~2")
}

// learn waits for what is to be remembered.
func (s *show) learn() error {
	s.chapter("Afterwards: what later agents of this project are told")
	if err := s.follow(func(e work.Event) bool { return e.Kind == "task.completed" && s.role(e.Task) == work.Retro }); err != nil {
		return err
	}
	project, err := s.api.Project(s.ctx, "greeter")
	if err != nil {
		return err
	}
	for _, lesson := range project.Lessons {
		s.row("a lesson", lesson)
	}
	if s.keeps {
		s.say("\nTo look around: claudomator serve --data-dir %s", filepath.Join(s.dir, "data"))
	}
	s.say("\nYour own: claudomator serve, then project add, story elaborate, story approve;")
	s.say("docs/guides/stories.md tells how.")
	return nil
}

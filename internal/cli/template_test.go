package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func shelf() *fake {
	file := func(kind app.TemplateKind, path, text, problem string) app.Template {
		name := path[strings.LastIndex(path, "/")+1 : strings.LastIndex(path, ".")]
		return app.Template{Kind: kind, Name: name, Path: ".claudomator/" + path, Branch: "main", Commit: strings.Repeat("abcd", 10), Text: text, Problem: problem}
	}
	return &fake{projects: []*work.Project{{ID: "p1", Name: "shop"}}, files: []app.Template{
		file(app.StoryTemplate, "stories/broken.yaml", "name: x\ntusks: []\n", ""),
		file(app.StoryTemplate, "stories/release.yaml", "name: Release\nepic: Spring\nproject_id: other\ntasks: [{name: notes, instructions: \"write \\x1b[31mthem\"}]\n", ""),
		file(app.StoryTemplate, "stories/vast.json", "", "it is too large to be a template"),
		file(app.TaskTemplate, "tasks/release.yml", "name: one\n---\nname: two\nproject: other\n", ""),
		file(app.TaskTemplate, "tasks/upgrade.yaml", "name: Upgrade\nagent: {instructions: make upgrade}\n", ""),
	}}
}

// TestTemplateOutput holds what people and programs read of templates to golden files.
func TestTemplateOutput(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"template-list": "template list", "template-list-json": "template list --project shop -o json", "template-show": "template show upgrade",
		"template-show-json": "template show .claudomator/tasks/release.yml -o json", "template-show-broken": "template show broken",
		"template-show-ambiguous": "template show release", "template-show-missing": "template show upgrad",
		"template-approve-broken": "story approve --template broken", "template-approve-vast": "story approve --template vast",
		"template-create": "task create --template upgrade --start",
	} {
		golden(t, "output/"+name, run(t.Context(), shelf(), nil, strings.Fields(args)...).String())
	}
	if r := run(t.Context(), &fake{projects: shelf().projects}, nil, "template", "list", "-o", "json"); r.out != "[]\n" {
		t.Errorf("none: %+v", r)
	}
	if r := run(t.Context(), shelf(), nil, "template", "show", ".claudomator/stories/release.yaml"); strings.Contains(r.out+r.err, "\x1b") {
		t.Errorf("it moves the cursor: %q", r.out)
	}
}

// TestTemplateUse: a template is read as the file of -f is, the flags win over it,
// and where it comes from is said apart from the answer.
func TestTemplateUse(t *testing.T) {
	t.Parallel()
	f := shelf()
	r := run(t.Context(), f, nil, strings.Fields("story approve --template release --project shop --epic Summer --draft --idempotency-key k -o json")...)
	if in := f.plan; r.code != 0 || in.Name != "Release" || in.Project != "shop" || in.ProjectID != "" || in.Epic != "Summer" || !in.Draft || in.IdempotencyKey != "k" || len(in.Tasks) != 1 {
		t.Errorf("%+v asked for %+v", r, f.plan)
	}
	if want := "template release: .claudomator/stories/release.yaml of branch main at abcdabcdabcd\n"; r.err != want {
		t.Errorf("it says %q", r.err)
	}
	f = shelf()
	if r := run(t.Context(), f, nil, strings.Fields("story approve --template release")...); r.code != 0 || f.plan.ProjectID != "other" || f.plan.Epic != "Spring" || f.plan.Draft {
		t.Errorf("%+v asked for %+v", r, f.plan)
	}
	f = shelf()
	r = run(t.Context(), f, nil, strings.Fields("task create --template release --project shop --start --idempotency-key k")...)
	if r.code != 0 || len(f.requests) != 2 || f.requests[0].Project != "shop" || f.requests[1].Project != "other" || !f.requests[1].Start || f.requests[1].IdempotencyKey != "k/2" {
		t.Errorf("%+v asked for %+v", r, f.requests)
	}
	if !slices.Contains(f.asked, "templates of shop") {
		t.Errorf("asked: %q", f.asked)
	}
}

// TestTemplateMistakes are refused before anything is made.
func TestTemplateMistakes(t *testing.T) {
	t.Parallel()
	several := shelf()
	several.projects = append(several.projects, &work.Project{ID: "p2", Name: "till"})
	for args, want := range map[string]struct {
		api  *fake
		code int
		says string
	}{
		"template list": {several, 2, "--project: shop, till"},
		"template show release --project nobody -o json":        {shelf(), 2, "ambiguous"},
		"story approve --template nothing":                      {shelf(), 3, "no story template"},
		"story approve --template upgrade":                      {shelf(), 3, "no story template"},
		"story approve --template release -f x":                 {nil, 2, "together"},
		"story approve gift --template release":                 {nil, 2, "does not go with STORY"},
		"task create --template upgrade -f x":                   {nil, 2, "together"},
		"task create --template upgrade --name x":               {nil, 2, "does not go with a task file"},
		"task create --template broken":                         {shelf(), 3, "no task template"},
		"task create --template upgrade --instructions nothing": {nil, 2, "write it into the file"},
		"template list --project":                               {nil, 2, "project"},
		"template show x":                                       {&fake{}, 2, "no project yet"},
	} {
		if r := run(t.Context(), want.api, nil, strings.Fields(args)...); r.code != want.code || !strings.Contains(r.err, want.says) {
			t.Errorf("%s: %+v", args, r)
		}
		if want.api != nil && (len(want.api.requests) > 0 || want.api.plan.Name != "") {
			t.Errorf("%s made something", args)
		}
	}
}

// TestTemplateCompletion offers the templates that fit.
func TestTemplateCompletion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"__complete template show ":                  {"broken", "release", "vast", "release", "upgrade"},
		"__complete story approve --template ":       {"broken", "release", "vast"},
		"__complete task create --template ":         {"release", "upgrade"},
		"__complete template list --project ":        {"shop"},
		"__complete template show upgrade more this": nil,
	} {
		words := strings.Split(args, " ")
		r := run(t.Context(), shelf(), nil, words...)
		var got []string
		for line := range strings.Lines(r.out) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); name != "" && name[0] != ':' {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", args, r.out)
		}
	}
}

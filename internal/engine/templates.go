package engine

import (
	"context"
	"path"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// templateFolders are where a repository keeps its templates, by kind.
func templateFolders() []app.Template {
	return []app.Template{
		{Kind: app.StoryTemplate, Path: ".claudomator/stories"},
		{Kind: app.TaskTemplate, Path: ".claudomator/tasks"},
	}
}

// mostTemplate is the largest template that is read, in bytes.
const mostTemplate = 256 << 10

// Templates reads the templates of a project at the head of its default branch:
// YAML and JSON files directly in their folders.
func (v *Vaults) Templates(ctx context.Context, p work.Project) ([]app.Template, error) {
	vault, err := v.get(ctx, p)
	if err != nil {
		return nil, named(err)
	}
	head, err := vault.BranchHead(ctx, p.Branch)
	if err != nil {
		return nil, named(err)
	}
	out := []app.Template{}
	for _, folder := range templateFolders() {
		files, err := vault.Files(ctx, head, folder.Path)
		if err != nil {
			return nil, named(err)
		}
		for _, f := range files {
			name, ok := templateName(f.Name)
			if !ok {
				continue
			}
			t := app.Template{Kind: folder.Kind, Name: name, Path: folder.Path + "/" + f.Name, Branch: p.Branch, Commit: head}
			if f.Size > mostTemplate {
				t.Problem = "it is too large to be a template"
			} else if text, err := vault.File(ctx, head, t.Path, mostTemplate); err != nil {
				t.Problem = explain(err)
			} else {
				t.Text = strings.ToValidUTF8(string(text), "\uFFFD")
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// templateName is a template's name: that of its file, without what says its form.
func templateName(file string) (string, bool) {
	switch ext := path.Ext(file); ext {
	case ".yaml", ".yml", ".json":
		name := strings.TrimSuffix(file, ext)
		return name, name != "" && strings.ToValidUTF8(name, "") == name
	}
	return "", false
}

package mcp_test

import (
	"fmt"
	"slices"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

func of(id work.StoryID, more string) string { return fmt.Sprintf(`{"story":%q%s}`, id, more) }

func (p *person) storyView(tool, arguments string) app.StoryView {
	p.Helper()
	return decoded[app.StoryView](p.world, p.use(tool, arguments))
}

// planned is a story whose plan a planner and a person write; it is given up.
func (p *person) planned() {
	p.use("add_epic", `{"name":"spring"}`)
	elaborate := `{"project":"p","goal":"sell gift cards","epic":"spring","idempotency_key":"e"}`
	begun := decoded[app.Elaborated](p.world, p.use("elaborate_story", elaborate))
	if again := decoded[app.Elaborated](p.world, p.use("elaborate_story", elaborate)); again != begun {
		p.Errorf("the same key made %+v and %+v", begun, again)
	}
	r := p.begin(begun.TaskID)
	p.call(r, "report_plan", `{"plan":{"name":"Cards"}}`)
	p.end(r)
	changed := p.storyView("change_story", of(begun.StoryID, `,"name":"Gifts","acceptance_criteria":"they sell","plan":{"name":"x","tasks":[
		{"name":"till","instructions":"sell"}],"validation":{"type":"smoke","steps":["curl"]}}`))
	if changed.Name != "Gifts" || len(changed.Plan.Tasks) != 1 || len(changed.Validation) != 1 || !slices.Equal(changed.AcceptanceCriteria, []string{"they sell"}) {
		p.Errorf("changed: %+v", changed)
	}
	approved := decoded[app.Approved](p.world, p.use("approve_story", of(begun.StoryID, "")))
	if len(approved.TaskIDs) != 1 || p.get(approved.TaskIDs[0]).State != work.Queued {
		p.Errorf("approved: %+v", approved)
	}
	if got := p.storyView("cancel_story", of(begun.StoryID, "")); got.Status != work.StoryCancelled {
		p.Errorf("cancelled: %s", got.Status)
	}
	page := decoded[app.Page[*work.Story]](p.world, p.use("list_stories", `{"epic":"spring","status":["CANCELLED"]}`))
	if len(page.Items) != 1 || page.Items[0].ID != begun.StoryID {
		p.Errorf("page: %+v", page)
	}
}

// shipped is a story that is rejected, accepted, and shipped as far as its
// deployment.
func (p *person) shipped() work.StoryID {
	p.use("change_project", `{"project":"p","deploy":"make deploy"}`)
	approve := `{"project":"p","name":"Small","goal":"do <it>","idempotency_key":"a"}`
	made := decoded[app.Approved](p.world, p.use("approve_plan", approve))
	if again := decoded[app.Approved](p.world, p.use("approve_plan", approve)); again.Story.ID != made.Story.ID {
		p.Errorf("the same key made %s and %s", made.Story.ID, again.Story.ID)
	}
	id := made.Story.ID
	p.Run(made.Story.RootID, apptest.Changed())
	rejected := p.storyView("reject_story", of(id, `,"comment":"not so"`))
	if got := p.get(rejected.RootID); rejected.Attempts != 2 || got.RejectionComment != "not so" {
		p.Errorf("rejected: %+v", got)
	}
	p.Run(rejected.RootID, apptest.Changed())
	if got := p.storyView("accept_story", of(id, "")); got.Status != work.Shippable || !slices.Contains(got.Actions, work.ActShip) {
		p.Errorf("accepted: %s %v", got.Status, got.Actions)
	}
	for range 2 {
		if got := decoded[app.Shipment](p.world, p.use("ship_story", of(id, `,"idempotency_key":"s"`))); got.StoryID != id || got.Message == "" {
			p.Errorf("shipment: %+v", got)
		}
	}
	p.land(string(id))
	if got := p.storyView("stop_deploy", of(id, "")); got.Status != work.DeployFailed {
		p.Errorf("stopped: %s", got.Status)
	}
	return id
}

package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func (s *server) stories(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodPost, path: "/api/stories/elaborate", id: "Elaborate", summary: "Begin a story: a planner makes its plan", status: http.StatusAccepted,
		about: "The answer comes before the plan: the story is a DRAFT, and the task reads the repository for it. What it plans is approved by a person."},
		func(ctx context.Context, in *struct {
			Key  string `header:"Idempotency-Key" hidden:"true"`
			Body app.ElaborateInput
		},
		) (*app.Elaborated, error) {
			in.Body.IdempotencyKey = in.Key
			return api.Elaborate(ctx, in.Body)
		})
	add(s, h, endpoint{method: http.MethodPost, path: "/api/stories/approve", id: "ApprovePlan", summary: "Begin a story with a whole plan, which is approved as it stands", status: http.StatusCreated,
		about: "Its tasks are queued at once; task_ids are theirs, in the order of the plan. With draft it is only kept, to be approved later. A plan that breaks a rule is refused with everything that is wrong. /plan.schema.json describes it for editors."},
		func(ctx context.Context, in *struct {
			Key  string `header:"Idempotency-Key" hidden:"true"`
			Body app.ApproveInput
		},
		) (*app.Approved, error) {
			in.Body.IdempotencyKey = in.Key
			return api.ApprovePlan(ctx, in.Body)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/stories", id: "Stories", summary: "List stories, newest first, in pages",
		about: "The next page is asked for with the next of this one as after."},
		func(ctx context.Context, in *app.StoryQuery) (app.Page[*work.Story], error) {
			page, err := api.Stories(ctx, *in)
			page.Items, err = list(page.Items, err)
			return page, err
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/stories/{id}", id: "Story", summary: "Show a story, what can be asked of it, and how far it is",
		about: "current_root_id names the attempt that stands at its root."},
		func(ctx context.Context, in *Ref) (*app.StoryView, error) { return api.Story(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodPatch, path: "/api/stories/{id}", id: "EditStory", summary: "Change a story; what is left out stays",
		about: "Its plan is edited while it is a DRAFT and no planner is at work; a plan that is given replaces the old one whole. Afterwards only name, epic and, until it is shipped, branch_name can be changed."},
		func(ctx context.Context, in *struct {
			Ref
			Body app.StoryPatch
		},
		) (*app.StoryView, error) {
			return api.EditStory(ctx, in.ID, in.Body)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/stories/{id}/task-tree", id: "StoryTree", summary: "Show a story's tree, from its root on",
		about: "Each place has its current attempt, those before it, the tasks that judged it, and the places below."},
		func(ctx context.Context, in *Ref) (*app.TreeNode, error) { return api.StoryTree(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/epics", id: "Epics", summary: "List the epics by name",
		about: "Each with its stories, counted by status."},
		func(ctx context.Context, _ *struct{}) ([]work.EpicProgress, error) { return list(api.Epics(ctx)) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/epics", id: "AddEpic", summary: "Make an epic, a name to group stories under", status: http.StatusCreated,
		about: "Stories are put under it when they are made, or by changing them."},
		func(ctx context.Context, in *struct{ Body app.EpicInput }) (*work.EpicProgress, error) {
			return api.AddEpic(ctx, in.Body)
		})
}

func (s *server) storyActions(h huma.API) {
	api := s.o.API
	action := func(verb, id, summary, about string) endpoint {
		return endpoint{method: http.MethodPost, path: "/api/stories/{id}/" + verb, id: id, summary: summary, about: about}
	}
	plain := func(e endpoint, call func(context.Context, string) (*app.StoryView, error)) {
		add(s, h, e, func(ctx context.Context, in *Ref) (*app.StoryView, error) { return call(ctx, in.ID) })
	}
	add(s, h, action("approve", "ApproveStory", "Turn a story's plan into work",
		"Its tasks are queued at once; task_ids are theirs, in the order of the plan."),
		func(ctx context.Context, in *Ref) (*app.Approved, error) { return api.ApproveStory(ctx, in.ID) })
	plain(action("accept", "AcceptStory", "Accept what stands at a story's root",
		"The same as accepting that task. The story is then SHIPPABLE; nothing is landed before it is shipped."), api.AcceptStory)
	add(s, h, action("reject", "RejectStory", "Send a story's work back",
		"A fix attempt starts at its root with the comment and the findings. At the limit of attempts extra allows more."),
		func(ctx context.Context, in *rejection) (*app.StoryView, error) {
			return api.RejectStory(ctx, in.ID, in.Body)
		})
	ship := action("ship", "ShipStory", "Land a story, and deploy it",
		"The answer comes before the end: the story's ship tells how far it is. A story that is DEPLOY_FAILED goes on where it stopped. Refused where it is not SHIPPABLE, with the ship that is under way, or the commit that it was shipped as.")
	ship.status = http.StatusAccepted
	add(s, h, ship,
		func(ctx context.Context, in *struct {
			Ref
			Key string `header:"Idempotency-Key" hidden:"true"`
		},
		) (*app.Shipment, error) {
			return api.ShipStory(ctx, in.ID, app.ShipRequest{IdempotencyKey: in.Key})
		})
	plain(action("stop-deploy", "StopDeploy", "End a running deployment",
		"The story is then DEPLOY_FAILED: what was landed stays, and shipping it again deploys again."), api.StopDeploy)
	plain(action("cancel", "CancelStory", "End a story and all work for it",
		"Agents are stopped, what they did is kept. While it is shipped only before its target has moved."), api.CancelStory)
}

package client

import (
	"context"
	"net/http"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Elaborate begins a story: a planner makes its plan.
func (c *Client) Elaborate(ctx context.Context, in app.ElaborateInput) (*app.Elaborated, error) {
	return call[*app.Elaborated](ctx, c, keyed(post(path("stories", "elaborate"), in), in.IdempotencyKey))
}

// ApprovePlan begins a story with a whole plan.
func (c *Client) ApprovePlan(ctx context.Context, in app.ApproveInput) (*app.Approved, error) {
	return call[*app.Approved](ctx, c, keyed(post(path("stories", "approve"), in), in.IdempotencyKey))
}

// Stories is one page of stories, newest first.
func (c *Client) Stories(ctx context.Context, q app.StoryQuery) (app.Page[*work.Story], error) {
	r := list(path("stories"), q.Limit, map[string]string{"project": q.Project, "epic": q.Epic, "text": q.Text, "after": q.After})
	for _, status := range q.Statuses {
		r.query.Add("status", string(status))
	}
	return call[app.Page[*work.Story]](ctx, c, r)
}

// Story is one story and what can be asked of it.
func (c *Client) Story(ctx context.Context, ref string) (*app.StoryView, error) {
	return call[*app.StoryView](ctx, c, get(path("stories", ref)))
}

// EditStory changes a story, and its plan while it is a draft.
func (c *Client) EditStory(ctx context.Context, ref string, in app.StoryPatch) (*app.StoryView, error) {
	return call[*app.StoryView](ctx, c, change(http.MethodPatch, path("stories", ref), in))
}

func (c *Client) actStory(ctx context.Context, ref, verb string, body any) (*app.StoryView, error) {
	return call[*app.StoryView](ctx, c, post(path("stories", ref, verb), body))
}

// ApproveStory turns a story's plan into work.
func (c *Client) ApproveStory(ctx context.Context, ref string) (*app.Approved, error) {
	return call[*app.Approved](ctx, c, post(path("stories", ref, "approve"), nil))
}

// AcceptStory accepts what stands at the story's root.
func (c *Client) AcceptStory(ctx context.Context, ref string) (*app.StoryView, error) {
	return c.actStory(ctx, ref, "accept", nil)
}

// RejectStory sends a story's work back with a comment.
func (c *Client) RejectStory(ctx context.Context, ref string, in app.RejectInput) (*app.StoryView, error) {
	return c.actStory(ctx, ref, "reject", in)
}

// ShipStory lands a story and deploys it.
func (c *Client) ShipStory(ctx context.Context, ref string, in app.ShipRequest) (*app.Shipment, error) {
	return call[*app.Shipment](ctx, c, keyed(post(path("stories", ref, "ship"), nil), in.IdempotencyKey))
}

// StopDeploy ends a running deployment.
func (c *Client) StopDeploy(ctx context.Context, ref string) (*app.StoryView, error) {
	return c.actStory(ctx, ref, "stop-deploy", nil)
}

// CancelStory ends a story and all work for it.
func (c *Client) CancelStory(ctx context.Context, ref string) (*app.StoryView, error) {
	return c.actStory(ctx, ref, "cancel", nil)
}

// StoryTree is a story's tree from its root on.
func (c *Client) StoryTree(ctx context.Context, ref string) (*app.TreeNode, error) {
	return call[*app.TreeNode](ctx, c, get(path("stories", ref, "task-tree")))
}

// Epics lists the epics with how far their stories are.
func (c *Client) Epics(ctx context.Context) ([]work.EpicProgress, error) {
	return call[[]work.EpicProgress](ctx, c, get(path("epics")))
}

// AddEpic makes an epic.
func (c *Client) AddEpic(ctx context.Context, in app.EpicInput) (*work.EpicProgress, error) {
	return call[*work.EpicProgress](ctx, c, post(path("epics"), in))
}

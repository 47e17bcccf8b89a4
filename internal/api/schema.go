package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// registry names the types that are described; prefix is where a reference finds
// them.
func registry(prefix string) huma.Registry {
	schemas := huma.NewMapRegistry(prefix, huma.DefaultSchemaNamer)
	describe[app.StringList, stringList](schemas)
	describe[work.Duration, duration](schemas)
	describe[work.State, state](schemas)
	describe[work.Kind, kind](schemas)
	describe[work.Priority, priority](schemas)
	describe[work.ExecutionState, executionState](schemas)
	describe[work.ExecutionKind, executionKind](schemas)
	describe[work.Outcome, outcome](schemas)
	describe[work.MergeStatus, mergeStatus](schemas)
	describe[work.Code, code](schemas)
	describe[app.SnapshotKind, snapshotKind](schemas)
	describe[app.ValidationList, validations](schemas)
	describe[work.ValidationType, validationType](schemas)
	describe[work.StoryStatus, storyStatus](schemas)
	describe[work.Act, act](schemas)
	describe[work.ShipMode, shipMode](schemas)
	describe[work.ShipStep, shipStep](schemas)
	return schemas
}

func humaConfig(version string) huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Claudomator", Version: version,
				Description: "Turns goals into shipped code with coding agents. Ids may be shortened to an unambiguous prefix; a name works wherever an id does.",
				License:     &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
			},
			Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from"}},
			Tags:    tags(),
			Components: &huma.Components{
				Schemas:         registry("#/components/schemas/"),
				Responses:       map[string]*huma.Response{},
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "A token of `claudomator token create`, or the first one, in the data directory's file `token`"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": exactJSON(), "json": exactJSON()},
		DefaultFormat:                "application/json",
		Transformers:                 []huma.Transformer{ownProblems},
		RejectUnknownQueryParameters: true,
	}
}

// tags are the second segments of the paths, by name.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "agents", Description: "The agent programs of the server's machine"},
		{Name: "attention", Description: "What waits for a person"},
		{Name: "disk", Description: "What the server's data uses, and freeing it"},
		{Name: "epics", Description: "Names to group stories under"},
		{Name: "events", Description: "What happens, as it happens"},
		{Name: "executions", Description: "Single runs of an agent or of gates, and what they printed"},
		{Name: "merges", Description: "Landings of accepted work on a branch"},
		{Name: "projects", Description: "Repositories, with their commands, policies and limits"},
		{Name: "rescue", Description: "What is kept of tasks beside their results"},
		{Name: "roles", Description: "Who plays builder, checker and the other roles, and how"},
		{Name: "stats", Description: "Counts"},
		{Name: "stories", Description: "Deliverables: a goal, its plan, the tasks that build it, and the decision to ship"},
		{Name: "tasks", Description: "Units of work, from words to a landed commit"},
		{Name: "tokens", Description: "Credentials of people and of their programs"},
	}
}

// describe lets a type of the domain be described by a type of ours.
func describe[T, As any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[As]())
}

type (
	stringList     []string
	duration       string
	state          string
	kind           string
	priority       string
	executionState string
	executionKind  string
	outcome        string
	mergeStatus    string
	code           string
	snapshotKind   string
	validations    []work.Validation
	validationType string
	storyStatus    string
	act            string
	shipMode       string
	shipStep       string
)

func (stringList) Schema(huma.Registry) *huma.Schema {
	text := func() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }
	return &huma.Schema{
		Description: "A list of texts, or one text",
		OneOf:       []*huma.Schema{{Type: huma.TypeArray, Items: text()}, text()},
	}
}

// Schema describes a list that app reads itself. As an extension the framework
// shows it and does not hold a request to it: of two alternatives it could only say
// that none fits, where app names everything that is wrong.
func (validations) Schema(r huma.Registry) *huma.Schema {
	one := r.Schema(reflect.TypeFor[work.Validation](), true, "")
	return &huma.Schema{
		Description: "A list of validations, or one",
		Extensions:  map[string]any{alternatives: []*huma.Schema{{Type: huma.TypeArray, Items: one}, one}},
	}
}

// alternatives is the keyword of a schema for what may be one of several.
const alternatives = "oneOf"

func (duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "A duration such as 90s, 30m or 1h30m", Examples: []any{"30m"}}
}

func (state) Schema(huma.Registry) *huma.Schema          { return oneOf(work.States()) }
func (kind) Schema(huma.Registry) *huma.Schema           { return oneOf(work.Kinds()) }
func (priority) Schema(huma.Registry) *huma.Schema       { return oneOf(work.Priorities()) }
func (executionState) Schema(huma.Registry) *huma.Schema { return oneOf(work.ExecutionStates()) }
func (executionKind) Schema(huma.Registry) *huma.Schema  { return oneOf(work.ExecutionKinds()) }
func (outcome) Schema(huma.Registry) *huma.Schema        { return oneOf(work.Outcomes()) }
func (mergeStatus) Schema(huma.Registry) *huma.Schema    { return oneOf(work.MergeStatuses()) }
func (code) Schema(huma.Registry) *huma.Schema           { return oneOf(work.Codes()) }
func (snapshotKind) Schema(huma.Registry) *huma.Schema   { return oneOf(app.SnapshotKinds()) }

func (storyStatus) Schema(huma.Registry) *huma.Schema { return oneOf(work.StoryStatuses()) }
func (act) Schema(huma.Registry) *huma.Schema         { return oneOf(work.Acts()) }
func (validationType) Schema(huma.Registry) *huma.Schema {
	return oneOf([]work.ValidationType{work.BuildValidation, work.TestValidation, work.SmokeValidation})
}

func (shipMode) Schema(huma.Registry) *huma.Schema {
	return oneOf([]work.ShipMode{work.ShipDirectly, work.ShipPullRequest})
}

func (shipStep) Schema(huma.Registry) *huma.Schema {
	return oneOf([]work.ShipStep{work.ShipAccept, work.ShipValidate, work.ShipLand, work.ShipPull, work.ShipPush, work.ShipDeploy, work.ShipSmoke})
}

func oneOf[T ~string](values []T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// endpoint is one route: METHOD and path, its operation id, what it does, and
// what one must know besides.
type endpoint struct {
	method, path       string
	id, summary, about string
	status             int // of success; 0: 200, or 204 without an answer
}

type body[T any] struct{ Body T }

// add registers a route: decode, call, encode, or answer with the problem.
func add[I, O any](s *server, h huma.API, e endpoint, call func(context.Context, *I) (O, error)) {
	huma.Register(h, e.operation(h), func(ctx context.Context, in *I) (*body[O], error) {
		out, err := call(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, e.id, err)
		}
		return &body[O]{out}, nil
	})
}

// addQuiet registers a route whose success has nothing to say.
func addQuiet[I any](s *server, h huma.API, e endpoint, call func(context.Context, *I) error) {
	huma.Register(h, e.operation(h), func(ctx context.Context, in *I) (*struct{}, error) {
		if err := call(ctx, in); err != nil {
			return nil, s.problem(ctx, e.id, err)
		}
		return nil, nil //nolint:nilnil // huma's word for an empty answer
	})
}

func (e endpoint) operation(h huma.API) huma.Operation {
	op := huma.Operation{
		Method: e.method, Path: e.path, OperationID: e.id, Summary: e.summary, Description: e.about, DefaultStatus: e.status,
		Tags: []string{strings.Split(e.path, "/")[2]}, Responses: map[string]*huma.Response{},
		// One more than the limit: the framework refuses a body that fills it.
		MaxBodyBytes: app.MaxBody + 1,
		// The deadline would stay on the connection and end long requests; who
		// sends a body slowly has a credential.
		BodyReadTimeout: -1,
	}
	statuses := []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	if strings.Contains(e.path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if e.method != http.MethodGet {
		statuses = append(statuses, http.StatusConflict, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
		op.Parameters = []*huma.Param{{
			Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Repeating a request with its key gives the first answer and does nothing again",
		}}
	}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Ref: refusals(h.OpenAPI(), status)}
	}
	return op
}

// refusals describes a status of refusal once, for all routes to point at.
func refusals(doc *huma.OpenAPI, status int) string {
	name := strings.ReplaceAll(http.StatusText(status), " ", "")
	doc.Components.Responses[name] = &huma.Response{
		Description: http.StatusText(status),
		Content: map[string]*huma.MediaType{"application/problem+json": {
			Schema: doc.Components.Schemas.Schema(reflect.TypeFor[Problem](), true, ""),
		}},
	}
	return "#/components/responses/" + name
}

// finish takes the framework's own error document out of the description: no
// answer has it.
func finish(doc *huma.OpenAPI) *huma.OpenAPI {
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
	return doc
}

// list is a list that is never null.
func list[T any](items []T, err error) ([]T, error) {
	if items == nil {
		items = []T{}
	}
	return items, err
}

// Ref names one thing in the path.
type Ref struct {
	ID string `path:"id" doc:"Id, unambiguous prefix of one, or name"`
}

package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// documents serves what the surface says about itself: to programs, and to
// people, who need no other site for it.
func (s *server) documents() {
	spec, err := json.Marshal(s.doc)
	if err != nil {
		panic(err) // it was just built, from types that marshal: a test has done it
	}
	var page bytes.Buffer
	if err := template.Must(template.New("docs").Parse(docsPage)).Execute(&page, reference(s.doc)); err != nil {
		panic(err)
	}
	serve := func(pattern, mediaType, csp string, content []byte) {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			if csp != "" {
				w.Header().Set("Content-Security-Policy", csp)
			}
			_, _ = w.Write(content)
		})
	}
	sum := sha256.Sum256([]byte(docsStyle))
	serve("GET /openapi.json", "application/openapi+json", "", spec)
	serve("GET /plan.schema.json", "application/schema+json", "", planSchema())
	serve("GET /docs", "text/html; charset=utf-8", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", page.Bytes())
}

// What the page shows.
type (
	docsView struct {
		Title, Version, Description string
		Style                       template.CSS
		Groups                      []docsGroup
		Schemas                     []docsSchema
	}
	docsGroup struct {
		Name       string
		Operations []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary, About string
		Parameters                       []docsParameter
		Body                             *docsType
		Answers                          []docsAnswer
		Refusals                         []string
	}
	docsParameter struct {
		Name, In, Type, About string
		Required              bool
	}
	docsAnswer struct {
		Status, About string
		Type          *docsType
	}
	docsSchema struct {
		Name   string
		Fields []docsField
	}
	docsField struct {
		Name, About string
		Type        docsType
		Required    bool
	}
	docsType struct{ Before, Schema string }
)

// reference is the document as a page shows it.
func reference(doc *huma.OpenAPI) docsView {
	view := docsView{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description, Style: template.CSS(docsStyle)} //nolint:gosec // our own file
	groups := map[string][]docsOperation{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				groups[op.Tags[0]] = append(groups[op.Tags[0]], docsOf(op))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		view.Groups = append(view.Groups, docsGroup{name, groups[name]})
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := docsSchema{Name: name}
		for _, field := range slices.Sorted(maps.Keys(schemas[name].Properties)) {
			p := schemas[name].Properties[field]
			s.Fields = append(s.Fields, docsField{field, p.Description, typeOf(p), slices.Contains(schemas[name].Required, field)})
		}
		view.Schemas = append(view.Schemas, s)
	}
	return view
}

func docsOf(op *huma.Operation) docsOperation {
	d := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, About: op.Description}
	for _, p := range op.Parameters {
		d.Parameters = append(d.Parameters, docsParameter{p.Name, p.In, typeOf(p.Schema).Before, p.Description, p.Required})
	}
	if op.RequestBody != nil {
		d.Body = firstType(op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if r.Ref != "" {
			d.Refusals = append(d.Refusals, status)
			continue
		}
		d.Answers = append(d.Answers, docsAnswer{status, r.Description, firstType(r.Content)})
	}
	return d
}

func firstType(content map[string]*huma.MediaType) *docsType {
	for _, mediaType := range slices.Sorted(maps.Keys(content)) {
		t := typeOf(content[mediaType].Schema)
		return &t
	}
	return nil
}

// typeOf is a schema in a few words, with the name of the one to look up.
func typeOf(s *huma.Schema) docsType {
	switch {
	case s.Ref != "":
		return docsType{Schema: s.Ref[strings.LastIndex(s.Ref, "/")+1:]}
	case s.Type == huma.TypeArray:
		of := typeOf(s.Items)
		return docsType{"list of " + of.Before, of.Schema}
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i], _ = v.(string)
		}
		return docsType{Before: strings.Join(words, " | ")}
	case len(s.OneOf) > 0:
		return anyType(s.OneOf)
	}
	if all, ok := s.Extensions[alternatives].([]*huma.Schema); ok {
		return anyType(all)
	}
	if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
		t := typeOf(of)
		return docsType{"map of " + t.Before, t.Schema}
	}
	return docsType{Before: cmp.Or(s.Type, "anything")}
}

// anyType is the types of alternatives, of which the last one's schema is looked up.
func anyType(all []*huma.Schema) (t docsType) {
	for i, one := range all {
		next := typeOf(one)
		if i > 0 {
			next.Before = t.Before + t.Schema + ", or " + next.Before
		}
		t = next
	}
	return t
}

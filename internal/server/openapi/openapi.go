// Package openapi describes the routes of a server and their types.
package openapi

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Route describes a route.
type Route struct {
	Method, Path string
	Access       auth.Access
	Does         string
	In, Out      any      // zero values of the request and response types; nil: no body, []byte: a file in gzip
	Stream       string   // media type of a response that is not one JSON value
	Query        []string // "NAME: description"
}

// Describe returns an OpenAPI 3.1 document for the routes and their types. It derives the document from the Go
// types, so both always agree.
func Describe(version string, routes []Route) []byte {
	g := &schemas{made: map[string]any{}, names: map[reflect.Type]string{}, asked: map[reflect.Type]bool{}}
	for _, t := range routes {
		if _, file := t.In.([]byte); t.In != nil && !file {
			g.ask(reflect.TypeOf(t.In))
		}
	}
	problem := map[string]any{"description": "Refused or failed, and what fixes it",
		"content": map[string]any{"application/problem+json": map[string]any{"schema": g.of(reflect.TypeFor[api.Problem]())}}}
	paths := map[string]any{}
	for _, t := range routes {
		item, _ := paths[t.Path].(map[string]any)
		if item == nil {
			item = map[string]any{}
			paths[t.Path] = item
		}
		item[strings.ToLower(t.Method)] = operationOf(g, t, problem)
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "scrimp", "version": version,
			"description": "Trains on time for the least money. Amounts of money are decimal strings beside their currency; " +
				"numbers named _usd are estimates; spans named _ns are nanoseconds; null is unknown, never zero. A length of a " +
				"text is in bytes, as JSON writes them in UTF-8; a value above its limit is refused as a whole, and so is a " +
				"number out of its bounds, but for those in agents' reports, which count as not said.",
			"license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths":    paths,
		"security": []any{map[string]any{"token": []any{}}},
		"components": map[string]any{"schemas": maps.Clone(g.made), "securitySchemes": map[string]any{
			"token": map[string]any{"type": "http", "scheme": "bearer", "description": "A user's token: scrimp tokens new"},
			"machine": map[string]any{"type": "apiKey", "in": "header", "name": "Scrimp-Signature",
				"description": "An Ed25519 signature by the key that the machine registered, over method, path, Scrimp-Instance, " +
					"Scrimp-Time, Scrimp-Nonce and the SHA-256 of the body; good once and for a minute"},
			"joiner": map[string]any{"type": "http", "scheme": "bearer",
				"description": "A token with which your own machine joins the server, and nothing else: " +
					"scrimp engine token"},
			"agent": map[string]any{"type": "http", "scheme": "bearer",
				"description": "A token that allows one task, which the server gives to the machine that it rents: it reads " +
					"that job's work folder, reads and writes the blobs whose keys begin with jobs/JOB/, and ends with its attempt"},
		}},
	}
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(err) // maps and lists of strings always encode
	}
	return append(text, '\n')
}

// operationOf describes a route.
func operationOf(g *schemas, t Route, problem any) map[string]any {
	op := map[string]any{"summary": t.Does, "operationId": operation(t)}
	if params := parameters(t); len(params) > 0 {
		op["parameters"] = params
	}
	if _, file := t.In.([]byte); file {
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/gzip": map[string]any{}}}
	} else if t.In != nil {
		content := map[string]any{"application/json": map[string]any{"schema": g.of(reflect.TypeOf(t.In))}}
		if submits(t) {
			examples(g, content)
		}
		limitList(content, reflect.TypeOf(t.In))
		op["requestBody"] = map[string]any{"required": true, "content": content,
			"description": fmt.Sprintf("At most %d KiB", limits.Body(reflect.TypeOf(t.In))>>10)}
	}
	responses := map[string]any{"default": problem}
	if t.Out == nil && t.Stream == "" {
		responses["204"] = map[string]any{"description": "Done"}
	} else {
		responses["200"] = answered(g, t)
	}
	op["responses"] = responses
	switch t.Access.Scope {
	case auth.Open:
		op["security"] = []any{}
	case auth.Bootstraps, auth.Attempts:
		op["security"] = []any{map[string]any{"agent": []any{}}}
	case auth.Machines:
		op["security"] = []any{map[string]any{"machine": []any{}}}
	case auth.Joiners:
		op["security"] = []any{map[string]any{"joiner": []any{}}}
	case auth.AnyTeam, auth.AllTeams, auth.OfJob, auth.OfOwnJob:
		op["x-role"] = t.Access.Role.String()
		op["x-where"] = map[auth.Scope]string{auth.AnyTeam: "in one team", auth.AllTeams: "in all teams",
			auth.OfJob:    "in the team of the job",
			auth.OfOwnJob: "in the team of the job; operator in a job of another user"}[t.Access.Scope]
	}
	return op
}

// parameters describes the path, query and header parameters of a route.
func parameters(t Route) (params []any) {
	text := map[string]any{"type": "string"}
	for part := range strings.SplitSeq(t.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			params = append(params, map[string]any{"name": name, "in": "path", "required": true, "schema": text})
		}
	}
	for _, q := range t.Query {
		name, says, _ := strings.Cut(q, ": ")
		params = append(params, map[string]any{"name": name, "in": "query", "description": says, "schema": text})
	}
	if submits(t) {
		params = append(params, map[string]any{"name": "Idempotency-Key", "in": "header",
			"description": "The same key submits once; with another body it is a conflict",
			"schema":      map[string]any{"type": "string", "maxLength": 255}})
	}
	return params
}

// operation returns the operation ID of a route, such as getJobsLog.
func operation(t Route) string {
	name := strings.ToLower(t.Method)
	for part := range strings.SplitSeq(strings.NewReplacer("/v1", "", "{id}", "").Replace(t.Path), "/") {
		part = strings.ReplaceAll(part, ".", "")
		if part != "" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	if strings.HasSuffix(t.Path, "{id}") {
		name += "ByID"
	}
	return name
}

func answered(g *schemas, t Route) map[string]any {
	r := map[string]any{"description": "Done"}
	kind, schema := "application/json", map[string]any{"type": "string"}
	if t.Out != nil {
		schema = g.of(reflect.TypeOf(t.Out))
	}
	if t.Path == "/v1/jobs/{id}/spec" {
		schema = g.jobFile()
	}
	if t.Stream != "" {
		kind = t.Stream
	}
	r["content"] = map[string]any{kind: map[string]any{"schema": schema}}
	return r
}

// schemas builds a named schema for each struct that it meets.
type schemas struct {
	made  map[string]any
	names map[reflect.Type]string
	asked map[reflect.Type]bool // types of requests, whose fields have bounds
}

func (g *schemas) of(t reflect.Type) map[string]any {
	if schema := known(t); schema != nil {
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer: // nil is null
		return map[string]any{"anyOf": []any{g.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return map[string]any{"$ref": "#/components/schemas/" + g.name(t)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	default:
		return map[string]any{"type": "integer", "format": "int64"}
	}
}

// known returns the schema of a type with its own encoding; nil if it has none.
func known(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer", "format": "int64", "description": "nanoseconds"}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case reflect.TypeFor[client.Code]():
		return map[string]any{"type": "string", "examples": []client.Code{client.JobUnknown},
			"description": "Code of the problem, for programs; texts may change, codes do not"}
	case reflect.TypeFor[client.Role]():
		return map[string]any{"type": "string", "enum": []string{"none", "viewer", "submitter", "operator", "admin"}}
	}
	text := reflect.TypeFor[encoding.TextMarshaler]()
	if t.Kind() != reflect.Pointer && (t.Implements(text) || reflect.PointerTo(t).Implements(text)) {
		return map[string]any{"type": "string"}
	}
	return nil
}

// schemaNames holds the names of schemas that differ from those of their types. Names must not change, since users
// generate programs from the document.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[client.Decision]():        "ApiDecision",
	reflect.TypeFor[client.ReceiptDecision](): "Decision",
	reflect.TypeFor[client.LimitUse]():        "Use",
	reflect.TypeFor[client.Work]():            "ApiWork",
	reflect.TypeFor[client.Workload]():        "Work",
}

// name builds the schema of a struct and returns its name.
func (g *schemas) name(t reflect.Type) string {
	if name, known := g.names[t]; known {
		return name
	}
	name := cmp.Or(schemaNames[t], t.Name())
	if _, taken := g.made[name]; taken {
		panic("two types are described as " + name) // a bug of ours: give one a name in schemaNames
	}
	g.names[t] = name
	properties, required := map[string]any{}, []string{}
	g.made[name] = properties // set first, for types that refer to themselves
	g.fields(t, properties, &required)
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	g.made[name] = schema
	return name
}

func (g *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			g.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		schema := g.of(f.Type)
		if g.asked[t] {
			limit(schema, f.Type, limits.Of(t, name))
			number(schema, f.Type, limits.KindOf(t, name, f.Type))
		}
		if name == "spec" && (t == reflect.TypeFor[client.Submission]() || t == reflect.TypeFor[client.PlanRequest]()) {
			schema = g.jobSchema()
		}
		if !strings.Contains(rest, "omitempty") && !strings.Contains(rest, "omitzero") {
			*required = append(*required, name)
			if kind, named := schema["type"].(string); named &&
				(f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map) {
				schema["type"] = []string{kind, "null"} // a nil list is null
			}
		}
		properties[name] = schema
	}
}
